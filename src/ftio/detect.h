/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * detect: which lines of a spectrum stand out, and which of those are the dominant ones, by the z-score of a line's
 * power (or amplitude) among all lines but the mean. Pure; any thread.
 */
#ifndef FTIO_DETECT_H
#define FTIO_DETECT_H

#include "ftio/ftio.h"

/* With more the reference calls none dominant. */
#define FTIO_DOMINANTS_MAX 2

/* Beyond so many standard deviations a line is an outlier. */
#define FTIO_ZSCORE_MIN 3.0

/* A remainder below this (Hz) makes a frequency a harmonic of a lower one. */
#define FTIO_HARMONIC_REMAINDER_HZ 1e-5

struct ftio_detected {
    size_t dominants[FTIO_DOMINANTS_MAX]; /* lines, ascending */
    size_t dominants_count;
};

/*
 * Detects in `analysis`, whose spectrum is there. `is_power`: on power, else on amplitude. A candidate reaches the
 * share `tolerance` of the highest z-score. `confidence` [half + 1] gets each line's share among the outliers, and
 * INFINITY for the mean, as the reference has it. -ENOMEM.
 */
MUST_CHECK int ftio_detect(const struct ftio_analysis *analysis, bool is_power, double tolerance, double *confidence,
                           struct ftio_detected *detected, struct error *err);

#endif
