/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/program.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/scratch.h"
#include "util/clock.h"
#include "util/file.h"

enum { OUTPUT_MAX_BYTES = 1000, STAT_MAX_BYTES = 4096, LONG_MS = 30000 };

struct outcome {
    unsigned calls;
    int code;
    char text[OUTPUT_MAX_BYTES + 1];
    char why[ERROR_TEXT_MAX_BYTES];
};

static void on_done(void *context, struct program_result *result)
{
    struct outcome *outcome = context;
    outcome->calls++;
    outcome->code = result->code;
    if (result->output->length > 0)
        memcpy(outcome->text, result->output->data, result->output->length);
    memcpy(outcome->why, result->err.text, sizeof outcome->why);
}

static int run(const char *const *arguments, const char *const *variables, unsigned timeout_ms, bool is_cancelled,
               struct outcome *outcome)
{
    uv_loop_t loop;
    struct program *program = NULL;
    *outcome = (struct outcome){0};
    assert_int_equal(uv_loop_init(&loop), 0);
    const struct program_config config = {.loop = &loop,
                                          .arguments = arguments,
                                          .variables = variables,
                                          .timeout_ms = timeout_ms,
                                          .output_max_bytes = OUTPUT_MAX_BYTES,
                                          .on_done = on_done,
                                          .context = outcome};
    assert_int_equal(program_start(&config, &program, NULL), 0);
    if (is_cancelled)
        program_cancel(program);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0); /* nothing is left open */
    return outcome->code;
}

static int run_shell(const char *script, unsigned timeout_ms, struct outcome *outcome)
{
    const char *const arguments[] = {"sh", "-c", script, NULL};
    return run(arguments, NULL, timeout_ms, false, outcome);
}

static void output_and_status_are_told_once(void **state)
{
    (void)state;
    struct outcome outcome;
    assert_int_equal(run_shell("echo one; echo two", LONG_MS, &outcome), 0);
    assert_string_equal(outcome.text, "one\ntwo\n");
    assert_int_equal(outcome.calls, 1);
    assert_int_equal(run_shell("echo half; exit 3", LONG_MS, &outcome), -ECHILD);
    assert_non_null(strstr(outcome.why, "status 3"));
    assert_string_equal(outcome.text, "half\n");
    assert_int_equal(run_shell("kill -TERM $$", LONG_MS, &outcome), -ECHILD);
    assert_non_null(strstr(outcome.why, "signal 15"));
}

static void a_program_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    static const char *const arguments[] = {"/nowhere/program", NULL};
    struct outcome outcome;
    assert_int_equal(run(arguments, NULL, LONG_MS, false, &outcome), -ENOENT);
    assert_non_null(strstr(outcome.why, "/nowhere/program"));
    assert_int_equal(outcome.calls, 1);
}

static void variables_are_added_and_arguments_need_no_quotes(void **state)
{
    (void)state;
    static const char *const arguments[] = {"sh", "-c",       "printf '%s|%s|%s' \"$WORD\" \"$1\" \"$PATH\"",
                                            "sh", "a b;$(c)", NULL};
    static const char *const variables[] = {"WORD=x y", "PATH=/none", NULL};
    struct outcome outcome;
    assert_int_equal(run(arguments, variables, LONG_MS, false, &outcome), 0);
    assert_string_equal(outcome.text, "x y|a b;$(c)|/none");
}

static void what_runs_too_long_is_killed_with_its_children(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    char script[PATH_MAX + 100];
    (void)snprintf(script, sizeof script, "sleep 1000 & echo $! > %s; wait", scratch_path(&scratch, "pid", path));
    struct outcome outcome;
    assert_int_equal(run_shell(script, 1000, &outcome), -ETIMEDOUT);
    assert_int_equal(outcome.calls, 1);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, STAT_MAX_BYTES);
    assert_int_equal(file_read(AT_FDCWD, path, &text, NULL), 0);
    pid_t pid = (pid_t)strtol(buf_string(&text), NULL, 10);
    assert_true(pid > 0);
    int64_t end_ns = clock_mono_ns() + 20 * CLOCK_NS_PER_SECOND;
    while (kill(pid, 0) == 0 && clock_mono_ns() < end_ns) { /* a zombie until whoever adopted it looks */
        char stat_path[64];
        (void)snprintf(stat_path, sizeof stat_path, "/proc/%d/stat", (int)pid);
        buf_reset(&text);
        if (file_read(AT_FDCWD, stat_path, &text, NULL) < 0 || strstr(buf_string(&text), ") Z") != NULL)
            return;
    }
    assert_int_not_equal(kill(pid, 0), 0);
}

static void too_much_output_ends_it(void **state)
{
    (void)state;
    struct outcome outcome;
    assert_int_equal(run_shell("while :; do echo endless; done", LONG_MS, &outcome), -E2BIG);
    assert_int_equal(outcome.calls, 1);
}

static void children_that_keep_the_output_do_not_keep_us(void **state)
{
    (void)state;
    struct outcome outcome;
    int64_t start_ns = clock_mono_ns();
    assert_int_equal(run_shell("echo said; setsid sleep 60 2>/dev/null & exit 0", LONG_MS, &outcome), 0);
    assert_string_equal(outcome.text, "said\n");
    assert_true(clock_mono_ns() - start_ns < 55 * CLOCK_NS_PER_SECOND);
}

static void a_cancelled_one_says_nothing(void **state)
{
    (void)state;
    static const char *const arguments[] = {"sleep", "1000", NULL};
    struct outcome outcome;
    (void)run(arguments, NULL, LONG_MS, true, &outcome);
    assert_int_equal(outcome.calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_and_status_are_told_once),
        cmocka_unit_test(a_program_that_is_not_there_is_an_error),
        cmocka_unit_test(variables_are_added_and_arguments_need_no_quotes),
        cmocka_unit_test(what_runs_too_long_is_killed_with_its_children),
        cmocka_unit_test(too_much_output_ends_it),
        cmocka_unit_test(children_that_keep_the_output_do_not_keep_us),
        cmocka_unit_test(a_cancelled_one_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
