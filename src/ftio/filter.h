/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter: a digital Butterworth filter, run forwards and backwards so that it shifts nothing in time.
 *
 * Design: analog prototype with poles on the unit circle, moved to the wanted band, bilinear transform with prewarped
 * edges (Oppenheim and Schafer, Discrete-Time Signal Processing, section 7.1). Pure; any thread.
 */
#ifndef FTIO_FILTER_H
#define FTIO_FILTER_H

#include "ftio/ftio.h"

/* A band-pass filter of order n has 2 n poles. */
#define FTIO_FILTER_TERMS_MAX (2 * FTIO_FILTER_ORDER_MAX + 1)

/* Transfer function sum b z^-i / sum a z^-i, a[0] = 1. */
struct ftio_filter_terms {
    double b[FTIO_FILTER_TERMS_MAX];
    double a[FTIO_FILTER_TERMS_MAX];
    size_t count; /* of each */
};

/* The filter that `options` ask for at `freq_hz` samples a second. -EINVAL: cutoffs that are missing or out of range.
 */
MUST_CHECK int ftio_filter_design(const struct ftio_options *options, double freq_hz, struct ftio_filter_terms *terms,
                                  struct error *err);

/*
 * Filters `samples` in place, forwards and backwards, with both ends mirrored at their last value. -EINVAL: shorter
 * than what is mirrored; -ENOMEM.
 */
MUST_CHECK int ftio_filter_apply(const struct ftio_filter_terms *terms, double *samples, size_t count,
                                 struct error *err);

#endif
