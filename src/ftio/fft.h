/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fft: the discrete Fourier transform of real numbers, by FFTW, with plans that are kept.
 *
 * Nothing else includes FFTW's header. Any thread: FFTW's planner is the process's only one, so it and the kept plans
 * are behind one lock; transforms run outside it.
 */
#ifndef FTIO_FFT_H
#define FTIO_FFT_H

#include <stddef.h>

#include "util/error.h"

/* Memory for `count` doubles, aligned as the transforms want it. Returns owned (free()), NULL without memory. */
double *ftio_fft_reals(size_t count);

/* The same for `count` complex numbers. */
double (*ftio_fft_lines(size_t count))[2];

/*
 * lines[k] = sum of reals[n] exp(-2 pi i k n / count), k = 0 … count / 2. Both arrays are from the functions above;
 * `reals` is kept. -ENOMEM; -E2BIG beyond INT_MAX.
 */
MUST_CHECK int ftio_fft_forward(double *reals, size_t count, double (*lines)[2], struct error *err);

#endif
