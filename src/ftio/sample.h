/* SPDX-License-Identifier: BSD-3-Clause */
/* sample: a series at equal steps, by sample and hold. Pure; any thread. */
#ifndef FTIO_SAMPLE_H
#define FTIO_SAMPLE_H

#include "ftio/ftio.h"

/*
 * Makes `samples` of the points of `analysis`, and sets the result's freq_hz, samples_count, start_s and end_s.
 * -EINVAL: a freq that is none, or no sample at all; -E2BIG: more than the memory limit holds; -ENOMEM.
 */
MUST_CHECK int ftio_sample(const struct ftio_options *options, struct ftio_analysis *analysis, struct error *err);

/*
 * samples[k] is the value of the last point at or before times_s[0] + k / freq_hz, [samples_count] of [count] points.
 * After a time that runs backwards the last value is held to the end, as in the reference.
 */
void ftio_sample_hold(const double *times_s, const double *values, size_t count, double freq_hz, double *samples,
                      size_t samples_count);

#endif
