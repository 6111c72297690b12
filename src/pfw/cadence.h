/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cadence: how often one host was sampled, and when it was not.
 *
 * The interval is the median of the time between two samples of the same series. A gap is a time of more than
 * PFW_CADENCE_GAP_INTERVALS of it without any sample of the host: a series that is sampled less often, or that comes
 * and goes, is none. As the interval is known only in the end, the PFW_CADENCE_GAPS_MAX longest silences are kept.
 * All times in nanoseconds. One thread.
 */
#ifndef PFW_CADENCE_H
#define PFW_CADENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pfw/sketch.h"
#include "util/error.h"

#define PFW_CADENCE_GAPS_MAX 128
/* The first tick comes up to one and a half intervals after the first sample. */
#define PFW_CADENCE_GAP_INTERVALS 1.75

/* Nothing came between these two instants. */
struct pfw_silence {
    int64_t from_ns;
    int64_t to_ns;
};

/* Zero-initialise it to begin. */
struct pfw_cadence {
    struct pfw_sketch steps; /* in seconds */
    struct pfw_silence longest[PFW_CADENCE_GAPS_MAX];
    size_t longest_count;
    size_t shortest; /* index of the shortest of a full list */
    int64_t last_ns;
    bool has_last;
};

void pfw_cadence_fini(struct pfw_cadence *cadence);

/* A series was sampled again, `step_ns` after the last time. Steps that don't go forward are not counted. -ENOMEM. */
MUST_CHECK int pfw_cadence_step(struct pfw_cadence *cadence, int64_t step_ns, struct error *err);

/* A sample of any series. */
void pfw_cadence_sample(struct pfw_cadence *cadence, int64_t at_ns);

/* The sampler began anew: the time since its last sample is no gap. */
void pfw_cadence_restart(struct pfw_cadence *cadence);

/* 0 while no series came twice. */
double pfw_cadence_interval_s(const struct pfw_cadence *cadence);

/*
 * The gaps in the order of time, and their number; when it is PFW_CADENCE_GAPS_MAX there may be more, shorter ones.
 * `interval_s` is normally pfw_cadence_interval_s().
 */
size_t pfw_cadence_gaps(const struct pfw_cadence *cadence, double interval_s,
                        struct pfw_silence out_gaps[PFW_CADENCE_GAPS_MAX]);

#endif
