/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scrape_read: what a target answered, as values: of an exporter's text, or of a proxy's /job.
 *
 * One group of values for each place in which they count. Values that are not finite are left out, and so are counters
 * below 0. Names that would pass for the proxy's own (cicada_…, process_…) begin with exported_. Pure; any thread: a
 * large answer is read by a worker.
 */
#ifndef PROXY_SCRAPE_READ_H
#define PROXY_SCRAPE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metric/job.h"
#include "metric/value.h"
#include "util/buf.h"
#include "util/error.h"

#define SCRAPE_READ_VALUES_MAX 50000 /* of one target */
#define SCRAPE_READ_GROUPS_MAX 10000

enum scrape_group_kind {
    SCRAPE_GROUP_EXPORTER, /* counts in the node and main */
    SCRAPE_GROUP_MAIN,     /* `main` of a proxy: counts in main */
    SCRAPE_GROUP_JOB,      /* a job of a proxy: counts in that job; its main has it already */
};

struct scrape_value {
    size_t name_at, name_bytes; /* in the answer's texts, NUL-terminated */
    size_t doc_at;
    struct metric_value value;
};

struct scrape_group {
    enum scrape_group_kind kind;
    struct metric_job description; /* of a job */
    size_t first, count;           /* of its values */
    uint64_t ranks, processes;     /* MPI ranks and processes behind it, as a proxy tells */
};

struct scrape_answer {
    struct buf texts;
    struct scrape_value *values;
    size_t values_count, values_capacity;
    struct scrape_group *groups;
    size_t groups_count, groups_capacity;
    size_t bad;             /* lines, metrics or jobs that made no sense */
    size_t refused;         /* past the limits */
    struct error first_err; /* the first of them */
};

/* -ENOMEM; anything else is in `bad`. `*out_answer` is owned, freed by scrape_read_free(). */
MUST_CHECK int scrape_read_exporter(const char *text, size_t length, bool is_openmetrics, int64_t now_wall_us,
                                    struct scrape_answer **out_answer, struct error *err);

/* The same of /job. -EBADMSG: it isn't that of a proxy. */
MUST_CHECK int scrape_read_proxy(const char *text, size_t length, int64_t now_wall_us,
                                 struct scrape_answer **out_answer, struct error *err);

void scrape_read_free(struct scrape_answer *answer); /* NULL is fine */

#endif
