/* SPDX-License-Identifier: BSD-3-Clause */
#include "ftio/spectrum.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "ftio/fft.h"

void ftio_analysis_fini(struct ftio_analysis *analysis)
{
    free(analysis->times_s);
    free(analysis->rates);
    free(analysis->samples);
    free(analysis->lines);
    free(analysis->amplitudes);
    free(analysis->result.top);
    *analysis = (struct ftio_analysis){0};
}

int ftio_spectrum(struct ftio_analysis *analysis, struct error *err)
{
    size_t lines = analysis->half + 1;
    analysis->lines = ftio_fft_lines(lines);
    analysis->amplitudes = calloc(lines, sizeof *analysis->amplitudes);
    if (analysis->lines == NULL || analysis->amplitudes == NULL)
        return error_set(err, -ENOMEM, "no memory for a spectrum of %zu lines", lines);
    int rc = ftio_fft_forward(analysis->samples, analysis->result.samples_count, analysis->lines, err);
    if (rc < 0)
        return rc;
    for (size_t k = 0; k < lines; k++) {
        double re = analysis->lines[k][0];
        double im = analysis->lines[k][1];
        analysis->amplitudes[k] = sqrt(re * re + im * im);
    }
    return 0;
}

/* A phase in [-pi, pi] moved from the first sample to time 0. */
static double spectrum_phase(const double line[2], double turns)
{
    double angle = -2 * M_PI * turns;
    double re = line[0] * cos(angle) - line[1] * sin(angle);
    double im = line[0] * sin(angle) + line[1] * cos(angle);
    return atan2(im, re);
}

struct ftio_wave ftio_spectrum_wave(const struct ftio_analysis *analysis, size_t k)
{
    const struct ftio_result *result = &analysis->result;
    double freq_hz = ftio_spectrum_freq(result->freq_hz, k, result->samples_count);
    return (struct ftio_wave){
        .freq_hz = freq_hz,
        .amplitude = analysis->amplitudes[k],
        .phase_rad = spectrum_phase(analysis->lines[k], freq_hz * result->start_s),
    };
}

/* Does line `a` come after line `b` in the list? */
static bool spectrum_is_after(const double *amplitudes, size_t a, size_t b)
{
    return amplitudes[a] < amplitudes[b] || (amplitudes[a] == amplitudes[b] && a > b);
}

/* Lets heap[at], whose children are heaps with the last of the list on top, sink to its place. */
static void spectrum_sink(const double *amplitudes, size_t *heap, size_t count, size_t at)
{
    for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && spectrum_is_after(amplitudes, heap[child + 1], heap[child]))
            child++;
        if (!spectrum_is_after(amplitudes, heap[child], heap[at]))
            return;
        size_t moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

size_t ftio_spectrum_strongest(const double *amplitudes, size_t count, size_t most, size_t *out_indices)
{
    size_t kept = count < most ? count : most;
    for (size_t i = 0; i < kept; i++)
        out_indices[i] = i;
    for (size_t i = kept / 2; i-- > 0;)
        spectrum_sink(amplitudes, out_indices, kept, i);
    for (size_t k = kept; k < count; k++) {
        if (!spectrum_is_after(amplitudes, out_indices[0], k))
            continue;
        out_indices[0] = k;
        spectrum_sink(amplitudes, out_indices, kept, 0);
    }
    for (size_t left = kept; left > 1; left--) { /* the last of the list goes to its end, and so on */
        size_t last = out_indices[0];
        out_indices[0] = out_indices[left - 1];
        out_indices[left - 1] = last;
        spectrum_sink(amplitudes, out_indices, left - 1, 0);
    }
    return kept;
}

int ftio_spectrum_top(const struct ftio_options *options, struct ftio_analysis *analysis, struct error *err)
{
    struct ftio_result *result = &analysis->result;
    if (options->top_max <= 0)
        return 0;
    size_t lines = result->samples_count - result->samples_count / 2; /* the line at half the frequency is not there */
    size_t most = (size_t)options->top_max < lines ? (size_t)options->top_max : lines;
    CLEANUP(memory_cleanup) size_t *indices = calloc(most, sizeof *indices);
    result->top = calloc(most, sizeof *result->top);
    if (indices == NULL || result->top == NULL)
        return error_set(err, -ENOMEM, "no memory for the %zu strongest waves", most);
    result->top_count = ftio_spectrum_strongest(analysis->amplitudes, lines, most, indices);
    for (size_t i = 0; i < result->top_count; i++)
        result->top[i] = ftio_spectrum_wave(analysis, indices[i]);
    return 0;
}
