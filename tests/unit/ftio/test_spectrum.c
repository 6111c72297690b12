/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every recorded case of tests/data/ftio up to its spectrum, against the numbers that FTIO itself has seen: derivative,
 * window, samples, filter, lines, strongest waves.
 */
#include "ftio/spectrum.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ftio/autocorrelation.h"
#include "ftio/burst.h"
#include "ftio/detect.h"
#include "ftio/filter.h"
#include "ftio/sample.h"
#include "ftio/series.h"

static const double TOLERANCE = 1e-7;
static const double BURST_ENERGY = 0.95;     /* of the cases */
static const double TOLERANCE_DEFAULT = 0.8; /* of the detection */
static const double FILTER_TOLERANCE = 1e-6;
enum { VECTORS_COUNT = 74, SPECTRA_COUNT = 61 };

static double number_of(const json_t *value)
{
    if (json_is_number(value))
        return json_number_value(value);
    const char *text = json_string_value(value);
    return text != NULL && strcmp(text, "NaN") == 0 ? NAN : INFINITY;
}

static struct ftio_options options_of(const json_t *argv)
{
    struct ftio_options options = {.freq_hz = 10, .memory_limit_gb = 0.5, .filter_order = 4};
    for (size_t i = 0; i + 1 < json_array_size(argv); i++) {
        const char *name = json_string_value(json_array_get(argv, i));
        const char *text = json_string_value(json_array_get(argv, i + 1));
        double value = strtod(text, NULL);
        if (strcmp(name, "--freq") == 0)
            options.freq_hz = value;
        else if (strcmp(name, "--n_freq") == 0)
            options.top_max = (long)value;
        else if (strcmp(name, "-ts") == 0)
            options.start_s = value;
        else if (strcmp(name, "-te") == 0)
            options.end_s = value;
        else if (strcmp(name, "--filter_type") == 0)
            options.filter = text[0] == 'l' ? FTIO_LOWPASS : FTIO_BANDPASS;
        else if (strcmp(name, "--filter_cutoff") == 0)
            options.cutoffs_hz[options.cutoffs_count++] = value;
        else if (options.cutoffs_count == 1 &&
                 strcmp(json_string_value(json_array_get(argv, i - 1)), "--filter_cutoff") == 0)
            options.cutoffs_hz[options.cutoffs_count++] = strtod(text, NULL);
    }
    return options;
}

static void check(const char *name, const char *what, double is, double wanted, double tolerance)
{
    if (!(fabs(is - wanted) <= tolerance))
        fail_msg("%s: %s is %.12g instead of %.12g", name, what, is, wanted);
}

/* Against {"n", "sum", "sumsq", and "all" or "head" and "tail"}; `values` has the first `known` of n. */
static void check_array(const char *name, const char *what, const json_t *wanted, const double *values, size_t known,
                        double tolerance)
{
    if (wanted == NULL)
        return;
    double scale = sqrt(json_number_value(json_object_get(wanted, "sumsq")));
    const json_t *head = json_object_get(wanted, "all");
    if (head == NULL)
        head = json_object_get(wanted, "head");
    for (size_t i = 0; i < json_array_size(head) && i < known; i++) {
        double one = number_of(json_array_get(head, i));
        if (isfinite(one))
            check(name, what, values[i], one, tolerance * (fabs(one) + (isfinite(scale) ? scale : 0) / 1e3));
    }
    const json_t *tail = json_object_get(wanted, "tail");
    size_t n = (size_t)json_integer_value(json_object_get(wanted, "n"));
    size_t shown = json_array_size(tail);
    for (size_t i = 0; i < shown && known == n; i++) {
        double one = number_of(json_array_get(tail, i));
        check(name, what, values[n - shown + i], one, tolerance * (fabs(one) + scale / 1e3));
    }
}

static int analyse(const struct ftio_options *options, const struct ftio_series *series, struct ftio_analysis *analysis,
                   struct error *err)
{
    int rc = ftio_series_take(options, series, analysis, err);
    if (rc == 0)
        rc = ftio_sample(options, analysis, err);
    struct ftio_filter_terms terms;
    if (rc == 0 && options->filter != FTIO_FILTER_NONE) {
        rc = ftio_filter_design(options, analysis->result.freq_hz, &terms, err);
        if (rc == 0)
            rc = ftio_filter_apply(&terms, analysis->samples, analysis->result.samples_count, err);
    }
    if (rc == 0)
        rc = ftio_spectrum(analysis, err);
    return rc == 0 ? ftio_spectrum_top(options, analysis, err) : rc;
}

static void check_top(const char *name, const json_t *expected, const struct ftio_result *result)
{
    const json_t *stable = json_object_get(expected, "top_stable");
    const json_t *top = json_object_get(expected, "top_freq");
    for (size_t i = 0; i < json_array_size(stable); i++) {
        if (!json_is_true(json_array_get(stable, i)))
            continue;
        double freq_hz = number_of(json_array_get(json_object_get(top, "freq"), i));
        double amplitude = number_of(json_array_get(json_object_get(top, "amp"), i));
        double phase_rad = number_of(json_array_get(json_object_get(top, "phi"), i));
        check(name, "a strong frequency", result->top[i].freq_hz, freq_hz, TOLERANCE * freq_hz);
        check(name, "an amplitude", result->top[i].amplitude, amplitude, FILTER_TOLERANCE * amplitude);
        check(name, "a phase", remainder(result->top[i].phase_rad - phase_rad, 2 * M_PI), 0, FILTER_TOLERANCE);
    }
}

static bool has_argument(const json_t *argv, const char *wanted)
{
    for (size_t i = 0; i < json_array_size(argv); i++) {
        if (strcmp(json_string_value(json_array_get(argv, i)), wanted) == 0)
            return true;
    }
    return false;
}

/* Confidence and dominant lines, of the cases that use the z-score and that rounding doesn't decide. */
static void check_detection(const char *name, const json_t *vector, const struct ftio_analysis *analysis)
{
    const json_t *argv = json_object_get(vector, "argv");
    const json_t *expected = json_object_get(vector, "expected");
    const json_t *between = json_object_get(expected, "intermediate");
    static const char *const others[] = {"dbscan", "lof", "peak", "stft"};
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
        if (has_argument(argv, others[i]))
            return;
    }
    if (json_array_size(json_object_get(expected, "sensitive_fields")) > 1)
        return;
    double tolerance = TOLERANCE_DEFAULT;
    for (size_t i = 0; i + 1 < json_array_size(argv); i++) {
        if (strcmp(json_string_value(json_array_get(argv, i)), "--tol") == 0)
            tolerance = strtod(json_string_value(json_array_get(argv, i + 1)), NULL);
    }
    CLEANUP(memory_cleanup) double *confidence = calloc(analysis->half + 1, sizeof *confidence);
    struct ftio_detected detected;
    assert_int_equal(ftio_detect(analysis, !has_argument(argv, "--no-psd"), tolerance, confidence, &detected, NULL), 0);
    assert_true(isinf(confidence[0]));
    check_array(name, "a confidence", json_object_get(between, "conf_half"), confidence + 1, analysis->half,
                FILTER_TOLERANCE);
    const json_t *lines = json_object_get(between, "dominant_index");
    if (detected.dominants_count != json_array_size(lines))
        fail_msg("%s: %zu dominants instead of %zu", name, detected.dominants_count, json_array_size(lines));
    for (size_t i = 0; i < detected.dominants_count; i++)
        assert_int_equal(detected.dominants[i], json_integer_value(json_array_get(lines, i)));
}

/* Lags, period and its confidence, where the reference has them and the signal isn't constant. */
static void check_rhythm(const char *name, const json_t *expected, const struct ftio_analysis *analysis)
{
    const json_t *wanted = json_object_get(expected, "autocorrelation");
    if (wanted == NULL || json_array_size(json_object_get(expected, "sensitive_fields")) > 0)
        return;
    size_t count = analysis->result.samples_count;
    CLEANUP(memory_cleanup) double *lags = calloc(count, sizeof *lags);
    struct ftio_rhythm rhythm;
    assert_int_equal(ftio_autocorrelation(analysis->samples, count, lags, NULL), 0);
    assert_int_equal(ftio_autocorrelation_rhythm(lags, count, analysis->result.freq_hz, &rhythm, NULL), 0);
    const json_t *head = json_object_get(wanted, "acorr_head");
    assert_true(json_array_size(head) > 0);
    for (size_t i = 0; i < json_array_size(head); i++)
        check(name, "a lag", lags[i], number_of(json_array_get(head, i)), TOLERANCE);
    check(name, "the period", rhythm.period_s, number_of(json_object_get(wanted, "periodicity")), FILTER_TOLERANCE);
    check(name, "its confidence", rhythm.confidence, number_of(json_object_get(wanted, "conf")), FILTER_TOLERANCE);
}

/* The burst of each period of the dominant wave. */
static void check_bursts(const char *name, const json_t *expected, const struct ftio_analysis *analysis)
{
    const json_t *widths = json_object_get(expected, "burst_widths");
    const json_t *starts = json_object_get(expected, "burst_t_starts");
    const struct ftio_result *result = &analysis->result;
    double dominant_hz = number_of(json_array_get(json_object_get(expected, "dominant_freq"), 0));
    for (size_t i = 0; i < json_array_size(widths); i++) {
        size_t period = (size_t)nearbyint(result->freq_hz / dominant_hz);
        assert_true((i + 1) * period <= result->samples_count);
        struct ftio_burst burst = ftio_burst_find(analysis->samples + i * period, period, BURST_ENERGY);
        double start_s = result->start_s + (double)(i * period + burst.offset) / result->freq_hz;
        check(name, "a width", (double)burst.width / result->freq_hz, number_of(json_array_get(widths, i)), TOLERANCE);
        check(name, "a burst's start", start_s, number_of(json_array_get(starts, i)), TOLERANCE);
    }
}

static void a_burst_without_energy_has_no_width(void **state)
{
    (void)state;
    static const double silence[4] = {0};
    assert_int_equal(ftio_burst_find(silence, ARRAY_LENGTH(silence), BURST_ENERGY).width, 0);
    assert_int_equal(ftio_burst_find(silence, 0, BURST_ENERGY).width, 0);
}

static bool is_changed_later(const char *name)
{
    return strncmp(name, "stft", 4) == 0 || strncmp(name, "fourier", 7) == 0;
}

/* True when the case has a spectrum. */
static bool check_case(const char *name, const json_t *vector)
{
    const json_t *times = json_object_get(vector, "time");
    const json_t *values = json_object_get(vector, "bandwidth");
    const json_t *expected = json_object_get(vector, "expected");
    const json_t *between = json_object_get(expected, "intermediate");
    size_t count = json_array_size(times);
    CLEANUP(memory_cleanup) double *t = calloc(count, sizeof *t);
    CLEANUP(memory_cleanup) double *v = calloc(count, sizeof *v);
    for (size_t i = 0; i < count; i++) {
        t[i] = number_of(json_array_get(times, i));
        v[i] = number_of(json_array_get(values, i));
    }
    struct ftio_options options = options_of(json_object_get(vector, "argv"));
    const struct ftio_series series = {
        .times_s = t,
        .values = v,
        .count = count,
        .is_rate = ftio_is_rate(json_string_value(json_object_get(vector, "metric"))),
    };
    CLEANUP(ftio_analysis_cleanup) struct ftio_analysis analysis = {0};
    struct error err = {0};
    int rc = analyse(&options, &series, &analysis, &err);
    if (between == NULL) {
        static const char *const refused[] = {"few_1",      "few_2_short",  "filter_no",
                                              "filter_too", "negative_dur", "ts_bey"};
        for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
            if (strncmp(name, refused[i], strlen(refused[i])) == 0)
                assert_int_equal(rc, -EINVAL);
        }
        return false;
    }
    if (rc != 0)
        fail_msg("%s: %s", name, err.text);
    size_t samples = analysis.result.samples_count;
    assert_int_equal(samples, json_integer_value(json_object_get(expected, "n_samples")));
    check_array(name, "a rate", json_object_get(between, "bandwidth_after_derivative"), analysis.rates,
                analysis.points_count, TOLERANCE);
    const json_t *filtered = json_object_get(between, "b_filtered");
    check_array(name, "a sample", filtered != NULL ? filtered : json_object_get(between, "b_sampled"), analysis.samples,
                samples, filtered != NULL ? FILTER_TOLERANCE : 0);
    check_array(name, "a line", json_object_get(between, "dft_abs"), analysis.amplitudes, analysis.half + 1,
                FILTER_TOLERANCE);
    check_detection(name, vector, &analysis);
    check_rhythm(name, expected, &analysis);
    check_bursts(name, expected, &analysis);
    if (!is_changed_later(name))
        check_top(name, expected, &analysis.result);
    return true;
}

static void all_vectors_have_the_spectrum_and_dominants_of_the_reference(void **state)
{
    (void)state;
    CLEANUP(dir_cleanup) DIR *dir = opendir(TESTS_DIR "/data/ftio");
    assert_non_null(dir);
    size_t vectors = 0;
    size_t spectra = 0;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strstr(entry->d_name, ".json") == NULL)
            continue;
        char path[512];
        (void)snprintf(path, sizeof path, "%s/data/ftio/%s", TESTS_DIR, entry->d_name);
        json_t *vector = json_load_file(path, 0, NULL);
        assert_non_null(vector);
        spectra += check_case(entry->d_name, vector);
        vectors++;
        json_decref(vector);
    }
    print_message("%zu vectors, %zu spectra\n", vectors, spectra);
    assert_int_equal(vectors, VECTORS_COUNT);
    assert_int_equal(spectra, SPECTRA_COUNT);
}

static void frequencies_that_are_none_or_too_many_samples_are_refused(void **state)
{
    (void)state;
    static const struct {
        double freq_hz, end_s;
        int rc;
    } cases[] = {
        {0, 100, -EINVAL}, {-5, 100, -EINVAL}, {NAN, 100, -EINVAL}, {1e12, 100, -E2BIG}, {10, 1.7e18, -E2BIG},
        {10, 0, -EINVAL},  {-1, 0, -EINVAL},   {10, 100, 0},        {-1, 100, 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        const double times_s[] = {0, cases[i].end_s};
        const double values[] = {1, 2};
        const struct ftio_series series = {.times_s = times_s, .values = values, .count = 2, .is_rate = true};
        const struct ftio_options options = {.freq_hz = cases[i].freq_hz, .memory_limit_gb = 0.5};
        CLEANUP(ftio_analysis_cleanup) struct ftio_analysis analysis = {0};
        struct error err = {0};
        assert_int_equal(analyse(&options, &series, &analysis, &err), cases[i].rc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_vectors_have_the_spectrum_and_dominants_of_the_reference),
        cmocka_unit_test(a_burst_without_energy_has_no_width),
        cmocka_unit_test(frequencies_that_are_none_or_too_many_samples_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
