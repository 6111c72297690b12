/* SPDX-License-Identifier: BSD-3-Clause */
#include "ftio/autocorrelation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "ftio/fft.h"

/* A power of two that holds the signal and as many zeros: no lag wraps around. */
static size_t autocorrelation_padded(size_t count)
{
    size_t padded = 2;
    while (padded < 2 * count)
        padded *= 2;
    return padded;
}

/* By the theorem of Wiener and Khinchin: the transform of the power spectrum, which is real and even. */
int ftio_autocorrelation(const double *samples, size_t count, double *out_lags, struct error *err)
{
    size_t padded = autocorrelation_padded(count);
    CLEANUP(memory_cleanup) double *reals = ftio_fft_reals(padded);
    CLEANUP(memory_cleanup) double(*lines)[2] = ftio_fft_lines(padded / 2 + 1);
    if (reals == NULL || lines == NULL)
        return error_set(err, -ENOMEM, "no memory for an autocorrelation of %zu samples", count);
    double sum = 0;
    for (size_t n = 0; n < count; n++)
        sum += samples[n];
    for (size_t n = 0; n < padded; n++)
        reals[n] = n < count ? samples[n] - sum / (double)count : 0;
    int rc = ftio_fft_forward(reals, padded, lines, err);
    if (rc < 0)
        return rc;
    for (size_t k = 0; k <= padded / 2; k++) {
        reals[k] = lines[k][0] * lines[k][0] + lines[k][1] * lines[k][1];
        if (k > 0)
            reals[padded - k] = reals[k];
    }
    rc = ftio_fft_forward(reals, padded, lines, err);
    for (size_t l = 0; l < count && rc == 0; l++)
        out_lags[l] = lines[l][0] / lines[0][0];
    return rc;
}

size_t ftio_autocorrelation_peaks(const double *values, size_t count, double lowest, size_t *out_places)
{
    size_t found = 0;
    for (size_t left = 1; left + 1 < count;) {
        size_t right = left;
        while (right + 1 < count && values[right + 1] == values[left])
            right++;
        bool is_peak = right + 1 < count && values[left - 1] < values[left] && values[right + 1] < values[left];
        if (is_peak && values[left] >= lowest)
            out_places[found++] = (left + right) / 2;
        left = right + 1;
    }
    return found;
}

struct autocorrelation_step {
    double seconds;
    double weight; /* signed: the reference weighs falling heights against rising ones */
};

/* Weighted mean and deviation of the steps; both NAN when the weights add up to nothing. */
static void autocorrelation_spread(const struct autocorrelation_step *steps, size_t count, double *out_mean,
                                   double *out_deviation)
{
    double weights = 0;
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        weights += steps[i].weight;
        sum += steps[i].weight * steps[i].seconds;
    }
    *out_mean = weights != 0 ? sum / weights : NAN;
    for (size_t i = 0; i < count; i++)
        squares += steps[i].weight * (steps[i].seconds - *out_mean) * (steps[i].seconds - *out_mean);
    *out_deviation = weights != 0 ? sqrt(fabs(squares / weights)) : NAN;
}

int ftio_autocorrelation_rhythm(const double *lags, size_t count, double freq_hz, struct ftio_rhythm *rhythm,
                                struct error *err)
{
    *rhythm = (struct ftio_rhythm){.period_s = NAN, .confidence = NAN};
    CLEANUP(memory_cleanup) size_t *places = calloc(count, sizeof *places);
    CLEANUP(memory_cleanup) struct autocorrelation_step *steps = calloc(count, sizeof *steps);
    if (places == NULL || steps == NULL)
        return error_set(err, -ENOMEM, "no memory for the peaks of %zu lags", count);
    size_t peaks = ftio_autocorrelation_peaks(lags, count, FTIO_AUTOCORRELATION_PEAK_MIN, places);
    for (size_t i = 0; i + 1 < peaks; i++) {
        steps[i].seconds = (double)(places[i + 1] - places[i]) / freq_hz;
        steps[i].weight = lags[places[i + 1]] - lags[places[i]];
    }
    double mean;
    double deviation;
    size_t kept = 0;
    size_t all = peaks > 0 ? peaks - 1 : 0;
    autocorrelation_spread(steps, all, &mean, &deviation);
    for (size_t i = 0; i < all; i++) {
        if (!(fabs(steps[i].seconds - mean) / deviation > 1) || deviation == 0)
            steps[kept++] = steps[i];
    }
    autocorrelation_spread(steps, kept, &mean, &deviation);
    rhythm->period_s = mean;
    rhythm->confidence = 1 - fabs(deviation / mean);
    return 0;
}
