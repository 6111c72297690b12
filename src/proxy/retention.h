/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * retention: how long profiles are kept, and how much room they may take.
 *
 * Once a minute what is older than allowed goes, and then the oldest until the rest fits. The profile of a job that is
 * here never goes. Files are removed by a worker, which looks again before it does; what went is said in the log.
 * Traces of the existing proxy, which can't be read here, are set aside once at the start, with a word, and nothing is
 * deleted of them. Loop thread only, but for retention_choose().
 */
#ifndef PROXY_RETENTION_H
#define PROXY_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "proxy/jobs.h"
#include "proxy/profiles.h"
#include "util/error.h"

struct retention;

#define RETENTION_DAYS_DEFAULT 365
#define RETENTION_MB_DEFAULT   4096

struct retention_config {
    uv_loop_t *loop; /* borrowed, as the next two, for its life */
    const struct jobs *jobs;
    struct profiles *profiles;
    const char *prefix; /* copied */
    unsigned days;      /* 0: for ever */
    unsigned mb;        /* 2^20 bytes; 0: without a limit */
};

/* Begins to set old traces aside. -ENOMEM. */
MUST_CHECK int retention_open(const struct retention_config *config, struct retention **out_retention,
                              struct error *err);

/* At each tick of the proxy; does something once a minute. */
void retention_tick(struct retention *retention, int64_t now_mono_ns, int64_t now_wall_ms);

/* What a worker is at, it finishes by itself. NULL is fine. */
void retention_free(struct retention *retention);

/* Files seen from far. */
struct retention_file {
    int64_t changed_wall_ms;
    uint64_t size_bytes;
    bool is_needed; /* never to go, but takes room */
    bool must_go;   /* the answer */
};

/*
 * Decides which of `files`, oldest first, must go: those older than `keep_ms`, then the oldest until the rest has at
 * most `keep_bytes`; 0 of either is no limit. How many. Pure.
 */
size_t retention_choose(struct retention_file *files, size_t count, int64_t now_wall_ms, int64_t keep_ms,
                        uint64_t keep_bytes);

#endif
