/* SPDX-License-Identifier: BSD-3-Clause */
#include "ftio/detect.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ftio/spectrum.h"

/* z-scores of the lines 1 … half into z; returns the highest, 0 when all are alike. */
static double detect_scores(const struct ftio_analysis *analysis, bool is_power, double *z)
{
    double sum = 0;
    for (size_t k = 1; k <= analysis->half; k++) {
        double amplitude = analysis->amplitudes[k];
        z[k] = is_power ? amplitude * amplitude : amplitude;
        sum += z[k];
    }
    double mean = sum / (double)analysis->half;
    double squares = 0;
    for (size_t k = 1; k <= analysis->half; k++)
        squares += (z[k] - mean) * (z[k] - mean);
    double deviation = sqrt(squares / (double)analysis->half);
    double highest = 0;
    for (size_t k = 1; k <= analysis->half; k++) {
        z[k] = deviation > 0 ? fabs(z[k] - mean) / deviation : 0;
        highest = fmax(highest, z[k]);
    }
    return highest;
}

static bool detect_is_harmonic(const struct ftio_result *result, size_t k, const size_t *kept, size_t count)
{
    double freq_hz = ftio_spectrum_freq(result->freq_hz, k, result->samples_count);
    for (size_t i = 0; i < count; i++) {
        double base_hz = ftio_spectrum_freq(result->freq_hz, kept[i], result->samples_count);
        if (fmod(freq_hz, base_hz) < FTIO_HARMONIC_REMAINDER_HZ)
            return true;
    }
    return false;
}

/* Takes the harmonics out of z (their score becomes -1) and returns how many candidates stay, in `kept`. */
static size_t detect_candidates(const struct ftio_analysis *analysis, double lowest, double *z, size_t *kept)
{
    size_t count = 0;
    for (size_t k = 1; k <= analysis->half; k++) {
        if (!(z[k] > lowest && z[k] > FTIO_ZSCORE_MIN))
            continue;
        if (detect_is_harmonic(&analysis->result, k, kept, count))
            z[k] = -1;
        else
            kept[count++] = k;
    }
    return count;
}

/* Adds half of each line's share among those above `lowest`. */
static void detect_share(const double *z, size_t half, double lowest, double *confidence)
{
    double sum = 0;
    for (size_t k = 1; k <= half; k++)
        sum += z[k] > lowest ? z[k] : 0;
    for (size_t k = 1; k <= half; k++) {
        if (z[k] > lowest)
            confidence[k] += z[k] / sum / 2;
    }
}

int ftio_detect(const struct ftio_analysis *analysis, bool is_power, double tolerance, double *confidence,
                struct ftio_detected *detected, struct error *err)
{
    size_t half = analysis->half;
    *detected = (struct ftio_detected){0};
    memset(confidence, 0, (half + 1) * sizeof *confidence);
    confidence[0] = INFINITY;
    CLEANUP(memory_cleanup) double *z = calloc(half + 1, sizeof *z);
    CLEANUP(memory_cleanup) size_t *kept = calloc(half + 1, sizeof *kept);
    if (z == NULL || kept == NULL)
        return error_set(err, -ENOMEM, "no memory to compare %zu lines", half);
    double lowest = tolerance * detect_scores(analysis, is_power, z);
    size_t count = detect_candidates(analysis, lowest, z, kept);
    if (count == 0)
        return 0;
    detect_share(z, half, lowest, confidence);
    detect_share(z, half, FTIO_ZSCORE_MIN, confidence);
    if (count > FTIO_DOMINANTS_MAX)
        return 0;
    detected->dominants_count = count;
    memcpy(detected->dominants, kept, count * sizeof *kept);
    return 0;
}
