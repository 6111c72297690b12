/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scrape_tally: what the answers of one target have counted: an exporter's metrics, or a proxy's main and jobs.
 *
 * An answer is counted in slices, so that a large one doesn't keep the loop. Jobs that an answer lacks have ended, and
 * are remembered for a while: one that comes back goes on where it was. Loop thread only.
 */
#ifndef PROXY_SCRAPE_TALLY_H
#define PROXY_SCRAPE_TALLY_H

#include <stdbool.h>

#include "proxy/jobs.h"
#include "proxy/scrape_read.h"

struct scrape_tally;

/* `jobs` is borrowed. NULL without memory. */
struct scrape_tally *scrape_tally_new(struct jobs *jobs);

/* What it counted goes as if it had not been: for the end of the daemon. NULL is fine. */
void scrape_tally_free(struct scrape_tally *tally);

/* Takes an answer, in place of one that is not counted yet. A target of another kind than before counts as another. */
void scrape_tally_begin(struct scrape_tally *tally, struct scrape_answer *answer);

/* The answer that is being counted, borrowed; NULL: none. */
const struct scrape_answer *scrape_tally_answer(const struct scrape_tally *tally);

/* Counts for about a millisecond. True: all has been counted; the answer stays until scrape_tally_abandon(). */
bool scrape_tally_go_on(struct scrape_tally *tally);

/* Frees the answer, counted or not. */
void scrape_tally_abandon(struct scrape_tally *tally);

/* The target doesn't answer: gauges are set by nobody. */
void scrape_tally_lose(struct scrape_tally *tally);

/* Its jobs have ended. And with `is_all` it counts no more at all; counters stay. */
void scrape_tally_leave(struct scrape_tally *tally, bool is_all);

#endif
