/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * autocorrelation: a signal against itself, shifted: the distances between the peaks of that are candidates for the
 * period. Pure; any thread.
 */
#ifndef FTIO_AUTOCORRELATION_H
#define FTIO_AUTOCORRELATION_H

#include "ftio/ftio.h"

/* A lower peak of the autocorrelation is none. */
#define FTIO_AUTOCORRELATION_PEAK_MIN 0.15

struct ftio_rhythm {
    double period_s;   /* mean distance of peaks, weighted by their differences in height; NAN without any */
    double confidence; /* 1 - |deviation / period|, can be negative; NAN without a period */
};

/*
 * out_lags[l] = sum (x[n] - mean) (x[n + l] - mean) / (count variance), l = 0 … count - 1; NAN for a constant signal.
 * -ENOMEM, -E2BIG.
 */
MUST_CHECK int ftio_autocorrelation(const double *samples, size_t count, double *out_lags, struct error *err);

/*
 * The places of the maxima of at least `lowest` in values[count], into `out_places` [count]; returns how many. A
 * plateau counts once, at its middle (rounded down); the first and the last value are none.
 */
size_t ftio_autocorrelation_peaks(const double *values, size_t count, double lowest, size_t *out_places);

/* The period that lags[count] of a signal of `freq_hz` samples a second tell. -ENOMEM. */
MUST_CHECK int ftio_autocorrelation_rhythm(const double *lags, size_t count, double freq_hz, struct ftio_rhythm *rhythm,
                                           struct error *err);

#endif
