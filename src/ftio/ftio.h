/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ftio: the spectrum of a series of measurements, with the parameters and the numbers of the tool FTIO.
 *
 * One analysis takes one series (time, value), differentiates it when it is a running total and cuts a window
 * (series.h), resamples it by sample and hold (sample.h), filters it (filter.h), and lists its strongest waves
 * (spectrum.h), in this order. Which of them stand out detect.h says.
 *
 * No I/O, no clock. Any thread; an analysis belongs to one.
 */
#ifndef FTIO_FTIO_H
#define FTIO_FTIO_H

#include <stdbool.h>
#include <stddef.h>

#include "util/error.h"

enum ftio_filter { FTIO_FILTER_NONE, FTIO_LOWPASS, FTIO_HIGHPASS, FTIO_BANDPASS };

#define FTIO_CUTOFFS_MAX      2
#define FTIO_FILTER_ORDER_MAX 16

/* Zero-initialised it asks for all of the series, unfiltered; freq_hz and memory_limit_gb must be set. */
struct ftio_options {
    double freq_hz;         /* of the resampling; -1: twice the finest step of the series */
    double memory_limit_gb; /* of the resampled signal, 8 bytes a sample */
    double start_s, end_s;  /* window; 0: all */
    long top_max;           /* entries of the list of strongest waves */
    enum ftio_filter filter;
    double cutoffs_hz[FTIO_CUTOFFS_MAX];
    size_t cutoffs_count;
    long filter_order;
};

/* Rates are analysed as they are, running totals are differentiated. Rates have "deriv" in their name. */
bool ftio_is_rate(const char *metric);

struct ftio_series {
    const double *times_s; /* [count]; what isn't finite counts as 0, as in the reference */
    const double *values;  /* [count] */
    size_t count;
    bool is_rate;
};

/* A cosine: amplitude * cos(2 pi freq t + phase), t absolute. `amplitude` is |X|: half the wave's times the samples. */
struct ftio_wave {
    double freq_hz;
    double amplitude;
    double phase_rad;
};

struct ftio_result {
    struct ftio_wave *top; /* [top_count], strongest first */
    size_t top_count;
    double start_s, end_s;
    double freq_hz;
    size_t samples_count;
};

/* A result and what it was made from. Zero-initialise it to begin. */
struct ftio_analysis {
    struct ftio_result result;
    double *times_s; /* [points_count] of the window */
    double *rates;   /* [points_count] */
    size_t points_count;
    double *samples;    /* [result.samples_count], filtered */
    double (*lines)[2]; /* [half + 1] the spectrum, not scaled and not moved to absolute time */
    double *amplitudes; /* [half + 1] |lines| */
    size_t half;        /* samples_count / 2 */
};

/* Frees what the steps have put there, at whichever it stopped. */
void ftio_analysis_fini(struct ftio_analysis *analysis);

static inline void ftio_analysis_cleanup(struct ftio_analysis *analysis)
{
    ftio_analysis_fini(analysis);
}

#endif
