/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats: count, mean, quantiles and extremes of each number in a trace, by host, category, name and key.
 *
 * Counters give one number for each of their arguments that is a number; complete events give their duration under the
 * key "dur" (in the trace's unit). Memory is bounded for each of them (sketch.h) and grows with their count only. Pure.
 * One thread.
 */
#ifndef PFW_STATS_H
#define PFW_STATS_H

#include <stdint.h>

#include "pfw/args.h"
#include "pfw/hosts.h"
#include "pfw/series.h"
#include "pfw/sketch.h"

#define PFW_STATS_ROWS_MAX       (1u << 24)
#define PFW_STATS_ROWS_MAX_BYTES (256u << 20)

struct pfw_stats {
    uint32_t count; /* rows */
    struct pfw_hosts hosts;

    /* the rest is stats.c's */
    struct pfw_args args;
    struct pfw_series series;
    struct pfw_names rows; /* series and key */
    struct pfw_sketch *sketches;
    uint32_t capacity;
};

struct pfw_stats_row {
    uint32_t host;
    struct cursor category; /* a NUL follows each of the texts */
    struct cursor name;
    struct cursor key;
    const struct pfw_sketch *sketch;
};

/* Empty; allocates nothing yet. */
void pfw_stats_init(struct pfw_stats *stats);
void pfw_stats_fini(struct pfw_stats *stats);

static inline void pfw_stats_cleanup(struct pfw_stats *stats)
{
    pfw_stats_fini(stats);
}

/* The next event. -ENOSPC past the limits, -ENOMEM. */
MUST_CHECK int pfw_stats_add(struct pfw_stats *stats, const struct pfw_line *line, struct error *err);

/* Row `number` below `count`, in the order of arrival. Borrowed until the next pfw_stats_add(). */
struct pfw_stats_row pfw_stats_row(const struct pfw_stats *stats, uint32_t number);

#endif
