/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scrape_counts: one group of a target's values as a contributor, aware of resets.
 *
 * A target tells totals. A total replaces the one before and is never added, so an answer that comes twice counts once;
 * one that is smaller than before means that the target began anew, and what it had counted goes into the bases, which
 * a successor of this proxy has, too:
 *
 *     told    10  25   3   8          shown = base + told
 *     base     0   0  25  25          (a counter that has passed its old total between two scrapes hides its reset)
 *     shown   10  25  28  33
 *
 * When a group leaves, all goes into the bases; when it comes back, that much is taken out of them again, and its
 * totals go on from where they were. Loop thread only.
 */
#ifndef PROXY_SCRAPE_COUNTS_H
#define PROXY_SCRAPE_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/jobs.h"
#include "proxy/scrape_read.h"
#include "util/error.h"

struct scrape_counts;

/* Counts nowhere yet. NULL without memory. */
struct scrape_counts *scrape_counts_new(struct jobs *jobs, enum scrape_group_kind kind);

/* What it counted goes as if it had not been: for the end of the daemon. NULL is fine. */
void scrape_counts_free(struct scrape_counts *counts);

/* It counts from now on, in the place of its kind; `description` is that of a job. -ENOMEM. Already there: 0. */
MUST_CHECK int scrape_counts_enter(struct scrape_counts *counts, const struct metric_job *description,
                                   int64_t now_wall_ms, struct error *err);

/* It counts no more; its counters stay where they were counted. */
void scrape_counts_leave(struct scrape_counts *counts, int64_t now_mono_ns, int64_t now_wall_ms);
bool scrape_counts_is_in(const struct scrape_counts *counts);
enum scrape_group_kind scrape_counts_kind(const struct scrape_counts *counts);

/* An answer: begin, one scrape_counts_set() for each value, finish. What is told twice in one counts as first told. */
void scrape_counts_begin(struct scrape_counts *counts);
void scrape_counts_set(struct scrape_counts *counts, const char *name, size_t name_bytes, const char *doc,
                       const struct metric_value *value);

/* Gauges that the answer lacked are set by nobody; counters that a proxy's answer lacked are 0: it leaves zeros out. */
void scrape_counts_finish(struct scrape_counts *counts);

/* The target doesn't answer: gauges are set by nobody, counters stay. */
void scrape_counts_lose(struct scrape_counts *counts);

/* Ranks and processes behind it, in place of those before. */
void scrape_counts_set_clients(struct scrape_counts *counts, uint64_t ranks, uint64_t processes);

#endif
