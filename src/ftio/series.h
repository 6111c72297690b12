/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * series: what is analysed: points in time, cleaned, differentiated when they are a running total, cut to a window.
 * Pure; any thread.
 */
#ifndef FTIO_SERIES_H
#define FTIO_SERIES_H

#include "ftio/ftio.h"

/* Points up to which the derivative of a total is 0, as in the reference. */
#define FTIO_SERIES_FLAT_MAX 10

/*
 * The derivative of `totals` by `times_s`, [count] each, count > 1: difference quotients over the neighbours on both
 * sides, at the ends over one. Equal times give what a division by zero gives.
 */
void ftio_series_derive(const double *times_s, const double *totals, size_t count, double *out_rates);

/* Fills times_s, rates and points_count of `analysis`. -EINVAL: less than two points, nothing in the window; -ENOMEM.
 */
MUST_CHECK int ftio_series_take(const struct ftio_options *options, const struct ftio_series *series,
                                struct ftio_analysis *analysis, struct error *err);

#endif
