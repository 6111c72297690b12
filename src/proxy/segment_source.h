/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment_source: one segment as a contributor: what its reader reads becomes metrics of a job.
 *
 * Owns the reader, the contributor and who of its processes lives. Histograms become what Prometheus makes of them:
 * cumulative `…_bucket{le="…"}`, `…_sum` and `…_count`, all counters. Loop thread only.
 */
#ifndef PROXY_SEGMENT_SOURCE_H
#define PROXY_SEGMENT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proxy/jobs.h"
#include "proxy/segment_reader.h"

struct segment_source;

struct segment_source_config {
    struct jobs *jobs;
    uint32_t uid;
    bool is_adoptable;      /* has a file in our directory: a successor finds it */
    pid_t peer_pid;         /* who sent it over the socket, as we see it; 0: unknown */
    uint64_t own_namespace; /* liveness_own_namespace() */
    size_t *pidfds_left;    /* shared by all: how many more may be held */
};

/* Takes `reader`. NULL without memory. */
struct segment_source *segment_source_new(struct segment_reader *reader, const struct segment_source_config *config);

/* It goes without being counted: a successor, or nobody, counts it. NULL is fine. */
void segment_source_free(struct segment_source *source);

/*
 * Reads it. True when nobody uses it any more: then all that was counted has been read, and segment_source_fold() is
 * due. A read that fails leaves the values of the turn before.
 */
bool segment_source_read(struct segment_source *source, int64_t now_wall_ms);

/* Its counters go into the bases, and the source is freed. */
void segment_source_fold(struct segment_source *source, int64_t now_mono_ns, int64_t now_wall_ms);

/* The reader, borrowed. */
const struct segment_reader *segment_source_reader(const struct segment_source *source);
uint64_t segment_source_failures(const struct segment_source *source); /* reads that failed */

#endif
