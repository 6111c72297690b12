/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * registry: the metrics of one job, found by name, and their values.
 *
 * Owns metrics, names and docs, and keeps their order of arrival, so that answers are stable. A metric's value is
 * computed anew at each tick: registry_begin() sets every one to its base, each contributor adds its own by
 * registry_add(), in the same order each time. So a contributor that repeats itself counts once, one that leaves can
 * leave its counters in the base, and sums of counters never fall by rounding (addition in a fixed order is monotone).
 * Memory: at most REGISTRY_METRIC_OVERHEAD_BYTES a metric beside its texts, which bench/registry measures.
 * Knows nothing of sockets or formats. Loop thread only.
 */
#ifndef METRIC_REGISTRY_H
#define METRIC_REGISTRY_H

#include <stddef.h>
#include <stdint.h>

#include "metric/value.h"
#include "util/error.h"

#define REGISTRY_METRIC_OVERHEAD_BYTES 192
#define REGISTRY_DOC_MAX_BYTES         1024 /* of a doc; the rest is cut off */
#define METRIC_NAME_SHOWN_BYTES        128  /* of a name in a message */

struct registry; /* opaque */

struct metric {
    const char *name;          /* legal, with labels; owned by the registry */
    const char *doc;           /* "" when nobody gave one */
    struct metric_value base;  /* of contributors that have ended, and of metrics that are set by hand */
    struct metric_value value; /* base and all contributors of the last tick */
};

/* Counts what all registries of a proxy hold together, so that it has one limit. */
struct registry_budget {
    size_t metrics_used;
    size_t metrics_max;
    uint64_t refused; /* declarations that found no room */
};

/* Returns owned, or NULL without memory. `budget` is borrowed for the registry's life and shared with others;
 * `metrics_max` is this one's. */
struct registry *registry_new(size_t metrics_max, struct registry_budget *budget);
void registry_free(struct registry *reg);

/*
 * Finds metric `name` (legal: see name.h), a new one starts at nothing. `doc` (may be NULL) is kept if the metric has
 * none, its first REGISTRY_DOC_MAX_BYTES, with '?' for what is not UTF-8. Both are copied. `*out_metric` is borrowed
 * until registry_free(), its address stable; unchanged on failure. Fails with -EEXIST (the other kind has that name),
 * -ENOSPC (full: this registry or the budget; counted), -ENOMEM.
 */
MUST_CHECK int registry_find_or_add(struct registry *reg, const char *name, size_t name_bytes, const char *doc,
                                    enum metric_kind kind, struct metric **out_metric, struct error *err);

/* The metric, or NULL. */
struct metric *registry_find(const struct registry *reg, const char *name, size_t name_bytes);

/* Metrics that it holds. */
size_t registry_count(const struct registry *reg);

/* In order of arrival: index below registry_count(). */
struct metric *registry_at(const struct registry *reg, size_t index);

/*
 * All metrics by name, [registry_count()]: those of one family (the name without labels) stand together. NULL without
 * memory, or when there are none. Borrowed until the next metric is added. The first call sorts, later ones put what
 * has come since into its place.
 */
struct metric *const *registry_sorted(struct registry *reg);

/* Where in this order the first name behind `name` is, which need not be there; "" is before all. */
size_t registry_sorted_after(struct registry *reg, const char *name);

/* Sets every value to its base: the beginning of a tick. */
void registry_begin(struct registry *reg);

/* Adds one contributor's value of this tick; false when it is of the other kind. */
static inline bool registry_add(struct metric *metric, const struct metric_value *contribution)
{
    return metric_merge(&metric->value, contribution);
}

/* A contributor has ended: its counter stays for ever in the base, its gauge goes with it. */
void registry_keep(struct metric *metric, const struct metric_value *last);

#endif
