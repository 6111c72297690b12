/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/options.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/scratch.h"

enum { WARNINGS_MAX_BYTES = 65536 };

static void options_cleanup(struct options *options)
{
    options_fini(options);
}

/* An environment of up to three variables, good until the next one is made. */
static char **environment(const char *first, const char *second, const char *third)
{
    static char words[3][2 * PATH_MAX];
    static char *list[ARRAY_LENGTH(words) + 1];
    const char *const given[ARRAY_LENGTH(words)] = {first, second, third};
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
        (void)snprintf(words[i], sizeof words[i], "%s", given[i] != NULL ? given[i] : "");
        list[i] = given[i] != NULL ? words[i] : NULL;
    }
    return list;
}

/* Loads without a warning. */
static int load(struct options *out_options, struct error *err, char *const *environment)
{
    CLEANUP(buf_cleanup) struct buf warnings;
    buf_init(&warnings, WARNINGS_MAX_BYTES);
    int rc = options_load(out_options, environment, &warnings, err);
    if (warnings.length > 0)
        fail_msg("warnings: %s", buf_string(&warnings));
    return rc;
}

static void defaults_are_those_of_the_interface(void **state)
{
    (void)state;
    CLEANUP(options_cleanup) struct options options = {0};
    assert_int_equal(load(&options, NULL, environment("HOME=/x", NULL, NULL)), 0);
    assert_false(options.is_enabled);
    assert_null(options.log_file);
    assert_int_equal(options.interval_ms, 1000);
    assert_int_equal(options.threads, 1);
    assert_true(options.is_compressed);
    assert_int_equal(options.write_buffer_bytes, 16 << 20);
    assert_int_equal(options.log_level, LOG_LEVEL_ERROR);
    assert_int_equal(options.time, OPTIONS_TIME_US);
    assert_true(options.has_metadata);
    assert_false(options.has_core_affinity);
    assert_int_equal(options.stop_timeout_ms, 30000);
    assert_int_equal(options.keep, 10);
    assert_int_equal(options.flush_interval_ms, 1000);
    assert_string_equal(options.collectors, "");
    assert_string_equal(options.proc_path, "/proc");
    assert_null(options.cgroup);
    assert_null(options.omnistat.input);
}

static void start_needs_a_prefix_that_is_no_directory(void **state)
{
    (void)state;
    static const struct {
        const char *variable;
        int rc;
        const char *words;
    } cases[] = {
        {"DFTRACER_LOG_FILE=/scratch/me/trace", 0, NULL},
        {"DFTRACER_LOG_FILE=", -EINVAL, "DFTRACER_LOG_FILE is not set"},
        {"DFTRACER_LOG_FILE=/scratch/me/", -EINVAL, "'/scratch/me/trace'"},
        {"DFTRACER_LOG_FILE=/", -EINVAL, "'/trace'"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(options_cleanup) struct options options = {0};
        struct error err = {0};
        assert_int_equal(load(&options, NULL, environment(cases[i].variable, NULL, NULL)), 0);
        assert_int_equal(options_check(&options, &err), cases[i].rc);
        assert_true(cases[i].words == NULL || strstr(err.text, cases[i].words) != NULL);
    }
}

static void relative_prefix_is_made_absolute(void **state)
{
    (void)state;
    CLEANUP(options_cleanup) struct options options = {0};
    char here[PATH_MAX], expected[PATH_MAX + 16];
    assert_non_null(getcwd(here, sizeof here));
    (void)snprintf(expected, sizeof expected, "%s/a/b", here);
    assert_int_equal(load(&options, NULL, environment("DFTRACER_LOG_FILE=a/b", NULL, NULL)), 0);
    assert_string_equal(options.log_file, expected);
}

static void small_write_buffer_is_raised(void **state)
{
    (void)state;
    CLEANUP(options_cleanup) struct options options = {0};
    assert_int_equal(load(&options, NULL, environment("DFTRACER_WRITE_BUFFER_SIZE=0", NULL, NULL)), 0);
    assert_int_equal(options.write_buffer_bytes, OPTIONS_WRITE_BUFFER_MIN_BYTES);
}

/* A file in the scratch directory, as the variable that names it. */
static void yaml(const struct scratch *scratch, const char *text, char out_variable[2 * PATH_MAX])
{
    char path[PATH_MAX];
    scratch_write(scratch, "conf.yaml", text, strlen(text));
    (void)snprintf(out_variable, 2 * PATH_MAX, "DFTRACER_CONFIGURATION=%s", scratch_path(scratch, "conf.yaml", path));
}

static void power_is_switched_by_variable_file_and_both(void **state)
{
    (void)state;
    static const struct {
        const char *variable;
        const char *file;
        const char *collectors;
    } cases[] = {
        {"X=1", "", ""},
        {"DFTRACER_DISABLE_VARIORUM_POWER=1", "", "-power"},
        {"DFTRACER_DISABLE_VARIORUM_POWER=0", "", ""},
        {"X=1", "features: {variorum: {enable: false}}", "-power"},
        {"X=1", "features: {variorum: {enable: true}}", ""},
        {"DFTRACER_DISABLE_VARIORUM_POWER=0", "features: {variorum: {enable: false}}", ""},
        {"DFTRACER_DISABLE_VARIORUM_POWER=1", "features: {variorum: {enable: true}}", "-power"},
        {"DFTRACER_DISABLE_VARIORUM_POWER=1", "service: {collectors: 'cpu,disk'}", "cpu,disk,-power"},
    };
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(options_cleanup) struct options options = {0};
        char variable[2 * PATH_MAX];
        yaml(&scratch, cases[i].file, variable);
        assert_int_equal(load(&options, NULL, environment(variable, cases[i].variable, NULL)), 0);
        assert_string_equal(options.collectors, cases[i].collectors);
    }
}

static void omnistat_needs_a_file_in_a_known_format(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        int rc;
        const char *words;
    } cases[] = {
        {"features: {omnistat: {enable: true, input: /x.csv, counters: 'a,b'}}", 0, NULL},
        {"features: {omnistat: {enable: false, format: parquet}}", 0, NULL},
        {"features: {omnistat: {enable: true}}", -EINVAL, "features.omnistat.input"},
        {"features: {omnistat: {enable: true, input: /x, format: parquet}}", -EINVAL, "'parquet'"},
    };
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(options_cleanup) struct options options = {0};
        struct error err = {0};
        char variable[2 * PATH_MAX];
        yaml(&scratch, cases[i].file, variable);
        assert_int_equal(load(&options, &err, environment(variable, NULL, NULL)), cases[i].rc);
        assert_true(cases[i].words == NULL || strstr(err.text, cases[i].words) != NULL);
    }
}

static void stop_reads_its_timeout_and_nothing_else(void **state)
{
    (void)state;
    int64_t timeout_ms = 0;
    assert_int_equal(
        options_load_stop_timeout(environment("DFTRACER_TRACE_INTERVAL_MS=abc", "DFTRACER_CONFIGURATION=/nope",
                                              "DFTRACER_STOP_TIMEOUT_MS=1234"),
                                  &timeout_ms, NULL),
        0);
    assert_int_equal(timeout_ms, 1234);
    assert_int_equal(options_load_stop_timeout(environment("X=1", NULL, NULL), &timeout_ms, NULL), 0);
    assert_int_equal(timeout_ms, 30000);
    struct error err = {0};
    assert_int_equal(
        options_load_stop_timeout(environment("DFTRACER_STOP_TIMEOUT_MS=soon", NULL, NULL), &timeout_ms, &err),
        -EINVAL);
    assert_non_null(strstr(err.text, "DFTRACER_STOP_TIMEOUT_MS"));
}

static void stamps_are_in_the_unit_of_the_trace(void **state)
{
    (void)state;
    const int64_t stamp_ns = INT64_C(1796101046128438999);
    assert_int_equal(options_time_of(OPTIONS_TIME_US, stamp_ns), INT64_C(1796101046128438));
    assert_int_equal(options_time_of(OPTIONS_TIME_NS, stamp_ns), stamp_ns);
    assert_int_equal(options_time_of(OPTIONS_TIME_MS, stamp_ns), INT64_C(1796101046128));
    assert_int_equal(options_time_of(OPTIONS_TIME_SEC, stamp_ns), INT64_C(1796101046));
    assert_string_equal(options_time_name(OPTIONS_TIME_SEC), "SEC");
}

static void every_row_of_the_table_is_whole(void **state)
{
    (void)state;
    const struct config_table *table = options_table();
    CLEANUP(buf_cleanup) struct buf help;
    buf_init(&help, WARNINGS_MAX_BYTES);
    options_help(&help);
    for (size_t i = 0; i < table->options_count; i++) {
        const struct config_option *row = &table->options[i];
        const char *called = row->env != NULL ? row->env : row->keys[0];
        if (row->name == NULL || row->help == NULL || called == NULL)
            fail_msg("row %zu (%s) lacks something", i, row->name);
        else
            assert_non_null(strstr(buf_string(&help), called));
        assert_true(row->kind != CONFIG_INT || (row->min <= row->initial && row->initial <= row->max));
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(row->name, table->options[k].name);
            assert_true(row->env == NULL || table->options[k].env == NULL ||
                        strcmp(row->env, table->options[k].env) != 0);
        }
    }
}

static void without_memory_loading_fails_and_leaves_nothing(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char variable[2 * PATH_MAX];
    yaml(&scratch, "features: {variorum: {enable: false}, interval: 50}\ntracer: {log_file: /x/y}\n", variable);
    for (size_t n = 0;; n++) {
        struct options options = {0};
        CLEANUP(buf_cleanup) struct buf warnings;
        buf_init(&warnings, WARNINGS_MAX_BYTES);
        allocation_fail_at(n);
        int rc = options_load(&options, environment(variable, NULL, NULL), &warnings, NULL);
        if (!allocation_stop()) {
            assert_int_equal(rc, 0);
            options_fini(&options);
            break;
        }
        assert_int_equal(rc, -ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_interface),
        cmocka_unit_test(start_needs_a_prefix_that_is_no_directory),
        cmocka_unit_test(relative_prefix_is_made_absolute),
        cmocka_unit_test(small_write_buffer_is_raised),
        cmocka_unit_test(power_is_switched_by_variable_file_and_both),
        cmocka_unit_test(omnistat_needs_a_file_in_a_known_format),
        cmocka_unit_test(stop_reads_its_timeout_and_nothing_else),
        cmocka_unit_test(stamps_are_in_the_unit_of_the_trace),
        cmocka_unit_test(every_row_of_the_table_is_whole),
        cmocka_unit_test(without_memory_loading_fails_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
