/* SPDX-License-Identifier: BSD-3-Clause */
/* spectrum: the lines of a resampled signal, and the list of the strongest. Pure; any thread. */
#ifndef FTIO_SPECTRUM_H
#define FTIO_SPECTRUM_H

#include "ftio/ftio.h"

/* The frequency of line k of `samples_count` samples; the order of operations is the reference's. */
static inline double ftio_spectrum_freq(double freq_hz, size_t k, size_t samples_count)
{
    return freq_hz * (double)k / (double)samples_count;
}

/* Fills lines and amplitudes of `analysis` from its samples. -ENOMEM. */
MUST_CHECK int ftio_spectrum(struct ftio_analysis *analysis, struct error *err);

/* Line k as a wave in absolute time. */
struct ftio_wave ftio_spectrum_wave(const struct ftio_analysis *analysis, size_t k);

/*
 * The indices of the `most` largest of amplitudes[0 … count - 1], largest first, of equal ones the lower first, into
 * `out_indices` [most]; returns how many. `most` is at least 1.
 */
size_t ftio_spectrum_strongest(const double *amplitudes, size_t count, size_t most, size_t *out_indices);

/* Fills the result's list of the strongest waves, the mean among them. -ENOMEM. */
MUST_CHECK int ftio_spectrum_top(const struct ftio_options *options, struct ftio_analysis *analysis, struct error *err);

#endif
