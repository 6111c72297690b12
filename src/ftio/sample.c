/* SPDX-License-Identifier: BSD-3-Clause */
#include "ftio/sample.h"

#include <errno.h>
#include <limits.h>
#include <math.h>

#include "ftio/fft.h"

static const double SAMPLE_BYTES_PER_GB = 1e9;

/* From these many seconds on a stamp is no number of seconds since 1970 that anyone has: it counts finer units. */
static const double SAMPLE_SECONDS_MAX = 1e11;

static double sample_most(const struct ftio_options *options)
{
    double most = floor(options->memory_limit_gb * SAMPLE_BYTES_PER_GB / (double)sizeof(double));
    return most < INT_MAX ? most : INT_MAX;
}

/* Twice as often as the two neighbours that are closest, without the equal ones. 0: no time passes at all. */
static double sample_auto_freq(const struct ftio_options *options, const double *times_s, size_t count)
{
    double shortest_s = INFINITY;
    for (size_t i = 1; i < count; i++) {
        double step_s = times_s[i] - times_s[i - 1];
        if (step_s > 0 && step_s < shortest_s)
            shortest_s = step_s;
    }
    double duration_s = times_s[count - 1] - times_s[0];
    double freq_hz = 2 / shortest_s;
    double most = sample_most(options);
    return floor(duration_s * freq_hz) > most ? most / duration_s : freq_hz;
}

void ftio_sample_hold(const double *times_s, const double *values, size_t count, double freq_hz, double *samples,
                      size_t samples_count)
{
    double step_s = 1 / freq_hz;
    double now_s = times_s[0];
    size_t at = 0;
    for (size_t k = 0; k < samples_count; k++) {
        while (at + 1 < count && !(times_s[at] <= now_s && now_s < times_s[at + 1]))
            at++;
        samples[k] = values[at];
        now_s += step_s; /* the reference's way: its rounding errors add up, and decide where edges fall */
    }
}

static int sample_refuse_many(double samples, double freq_hz, double most, double last_s, struct error *err)
{
    return error_set(err, -E2BIG, "%.3g samples at %g Hz are more than the %.3g that --memory_limit allows: %s",
                     samples, freq_hz, most,
                     fabs(last_s) > SAMPLE_SECONDS_MAX ? "times must be in seconds, these look like a finer unit"
                                                       : "lower --freq or raise the limit");
}

int ftio_sample(const struct ftio_options *options, struct ftio_analysis *analysis, struct error *err)
{
    const double *times_s = analysis->times_s;
    size_t count = analysis->points_count;
    double freq_hz = options->freq_hz;
    if (freq_hz == -1)
        freq_hz = sample_auto_freq(options, times_s, count);
    else if (!(freq_hz > 0) || !isfinite(freq_hz))
        return error_set(err, -EINVAL, "%g Hz is no sampling frequency: it must be positive, or -1 for automatic",
                         freq_hz);
    double duration_s = times_s[count - 1] - times_s[0];
    double samples = floor(duration_s * freq_hz);
    if (!(samples >= 1))
        return error_set(err, -EINVAL,
                         "Invalid sample count N=%.0f (freq=%.3e Hz, duration=%.3f s). Timestamps may be non-monotonic "
                         "or the time window is too short",
                         samples, freq_hz, duration_s);
    double most = sample_most(options);
    if (samples > most)
        return sample_refuse_many(samples, freq_hz, most, times_s[count - 1], err);

    struct ftio_result *result = &analysis->result;
    result->samples_count = (size_t)samples;
    result->freq_hz = freq_hz;
    result->start_s = times_s[0];
    result->end_s = times_s[count - 1];
    analysis->half = result->samples_count / 2;
    analysis->samples = ftio_fft_reals(result->samples_count);
    if (analysis->samples == NULL)
        return error_set(err, -ENOMEM, "no memory for %zu samples", result->samples_count);
    ftio_sample_hold(times_s, analysis->rates, count, freq_hz, analysis->samples, result->samples_count);
    return 0;
}
