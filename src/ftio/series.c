/* SPDX-License-Identifier: BSD-3-Clause */
#include "ftio/series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool ftio_is_rate(const char *metric)
{
    return strstr(metric, "deriv") != NULL;
}

void ftio_series_derive(const double *times_s, const double *totals, size_t count, double *out_rates)
{
    if (count <= FTIO_SERIES_FLAT_MAX) {
        memset(out_rates, 0, count * sizeof *out_rates);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        size_t before = i > 0 ? i - 1 : 0;
        size_t after = i + 1 < count ? i + 1 : i;
        out_rates[i] = (totals[after] - totals[before]) / (times_s[after] - times_s[before]);
    }
}

static double series_clean(double number)
{
    return isfinite(number) ? number : 0;
}

/* Is this instant within the window? A bound of 0 is none. */
static bool series_is_wanted(const struct ftio_options *options, double time_s)
{
    if (options->start_s != 0 && time_s < options->start_s)
        return false;
    return options->end_s == 0 || time_s <= options->end_s;
}

/* Copies the cleaned series. `totals` takes the values of a running total, else `analysis->rates` takes them. */
static void series_copy(const struct ftio_series *series, struct ftio_analysis *analysis, double *totals)
{
    double *values = series->is_rate ? analysis->rates : totals;
    for (size_t i = 0; i < series->count; i++) {
        analysis->times_s[i] = series_clean(series->times_s[i]);
        values[i] = series_clean(series->values[i]);
    }
    if (!series->is_rate)
        ftio_series_derive(analysis->times_s, totals, series->count, analysis->rates);
}

static int series_cut(const struct ftio_options *options, struct ftio_analysis *analysis, struct error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < analysis->points_count; i++) {
        if (!series_is_wanted(options, analysis->times_s[i]))
            continue;
        analysis->times_s[kept] = analysis->times_s[i];
        analysis->rates[kept++] = analysis->rates[i];
    }
    if (kept == 0)
        return error_set(err, -EINVAL, "no point lies in the window from %g s to %g s", options->start_s,
                         options->end_s);
    analysis->points_count = kept;
    return 0;
}

int ftio_series_take(const struct ftio_options *options, const struct ftio_series *series,
                     struct ftio_analysis *analysis, struct error *err)
{
    if (series->count < 2)
        return error_set(err, -EINVAL, "a series of %zu point%s has no period: at least 2 are needed", series->count,
                         series->count == 1 ? "" : "s");
    CLEANUP(memory_cleanup) double *totals = NULL;
    analysis->times_s = calloc(series->count, sizeof *analysis->times_s);
    analysis->rates = calloc(series->count, sizeof *analysis->rates);
    if (!series->is_rate)
        totals = calloc(series->count, sizeof *totals);
    if (analysis->times_s == NULL || analysis->rates == NULL || (totals == NULL && !series->is_rate))
        return error_set(err, -ENOMEM, "no memory for %zu points", series->count);
    series_copy(series, analysis, totals);
    analysis->points_count = series->count;
    return series_cut(options, analysis, err);
}
