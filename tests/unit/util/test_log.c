/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "util/clock.h"
#include "util/cursor.h"

enum { THREADS = 4, LINES_EACH = 200, SINK_BYTES = 1 << 20 };

/* Where lines go while a test runs: a pipe that is read from without waiting. */
struct sink {
    int read_fd, write_fd;
    char text[SINK_BYTES];
};

static struct sink sink;

static int sink_open(void **state)
{
    (void)state;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    (void)fcntl(fds[1], F_SETPIPE_SZ, SINK_BYTES); /* the tests that write much ask how much it holds */
    sink.read_fd = fds[0];
    sink.write_fd = fds[1];
    log_open(sink.write_fd, LOG_LEVEL_INFO);
    return 0;
}

static int sink_close(void **state)
{
    (void)state;
    log_open(STDERR_FILENO, LOG_LEVEL_WARN);
    close(sink.read_fd);
    close(sink.write_fd);
    return 0;
}

/* What one read() gets: all that is in the pipe. */
static const char *sink_text(void)
{
    ssize_t got = read(sink.read_fd, sink.text, sizeof sink.text - 1);
    sink.text[got > 0 ? got : 0] = '\0';
    return sink.text;
}

static void assert_matches(const char *text, const char *pattern)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&regex, text, 0, NULL, 0) != 0)
        fail_msg("'%s' is not %s", text, pattern);
    regfree(&regex);
}

#define STAMP "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z "

static void line_has_time_level_and_words(void **state)
{
    (void)state;
    log_error("disk=%s free=%d", "sda", 5);
    assert_matches(sink_text(), STAMP "ERROR disk=sda free=5\n$");
    log_warn("w");
    assert_matches(sink_text(), STAMP "WARN w\n$");
    log_info("i");
    assert_matches(sink_text(), STAMP "INFO i\n$");
}

static void time_is_now_in_utc(void **state)
{
    (void)state;
    time_t before = (time_t)(clock_wall_ns() / CLOCK_NS_PER_SECOND);
    log_error("x");
    time_t after = (time_t)(clock_wall_ns() / CLOCK_NS_PER_SECOND);
    struct tm date = {0};
    assert_non_null(strptime(sink_text(), "%Y-%m-%dT%H:%M:%S", &date));
    assert_in_range(timegm(&date), before, after);
}

static void lines_above_the_level_are_not_written(void **state)
{
    (void)state;
    for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_DEBUG; level++) {
        log_open(sink.write_fd, (enum log_level)level);
        assert_int_equal(log_get_level(), level);
        for (int line = LOG_LEVEL_ERROR; line <= LOG_LEVEL_DEBUG; line++) {
            log_line((enum log_level)line, "x");
            assert_int_equal(sink_text()[0] != '\0', line <= level);
        }
    }
}

static void words_stay_on_one_line(void **state)
{
    (void)state;
    log_error("name='%s'", "a\nERROR forged\r\x1b[2J\xff");
    assert_matches(sink_text(), STAMP "ERROR name='a ERROR forged  \\[2J\\?'\n$");
}

static void long_line_is_cut_and_still_a_line(void **state)
{
    (void)state;
    static char words[3 * LOG_LINE_MAX_BYTES];
    for (size_t length = LOG_LINE_MAX_BYTES - 64; length < LOG_LINE_MAX_BYTES + 64; length++) {
        memset(words, 'x', length);
        memcpy(words + length, "\xc3\xa4", 3); /* its NUL too: the cut falls before, within and behind the character */
        log_error("%s", words);
        const char *line = sink_text();
        size_t bytes = strlen(line);
        assert_in_range(bytes, LOG_LINE_MAX_BYTES - 64, LOG_LINE_MAX_BYTES);
        assert_ptr_equal(strchr(line, '\n'), line + bytes - 1);
        assert_null(strchr(line, '?'));
    }
}

static void errno_is_kept(void **state)
{
    (void)state;
    log_open(-1, LOG_LEVEL_INFO); /* each write fails */
    errno = ENOSPC;
    log_error("x");
    assert_int_equal(errno, ENOSPC);
    log_open(sink.write_fd, LOG_LEVEL_INFO);
    errno = ENOSPC;
    log_error("%m");
    assert_int_equal(errno, ENOSPC);
    assert_matches(sink_text(), "No space left on device\n$");
}

static void *write_lines(void *argument)
{
    const char *name = argument;
    for (int i = 0; i < LINES_EACH; i++)
        log_error("%s%s%s%s%s%s%s%s", name, name, name, name, name, name, name, name);
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
    (void)state;
    static char names[THREADS][8] = {"aaaaaaa", "bbbbbbb", "ccccccc", "ddddddd"};
    if (fcntl(sink.write_fd, F_GETPIPE_SZ) < SINK_BYTES) {
        print_message("a pipe can't hold what this test writes\n");
        skip();
    }
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, names[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);

    size_t counts[THREADS] = {0};
    const char *text = sink_text();
    struct cursor lines = cursor_of(text, strlen(text));
    struct cursor line;
    while (cursor_line(&lines, &line)) {
        struct cursor word;
        while (cursor_word(&line, &word))
            ; /* the last one counts: before it stand time and level */
        size_t thread = (size_t)(*word.at - 'a');
        assert_in_range(thread, 0, THREADS - 1);
        assert_int_equal(strspn(word.at, names[thread]), 8 * strlen(names[thread]));
        assert_int_equal(cursor_left(&word), 8 * strlen(names[thread]));
        counts[thread]++;
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(counts[i], LINES_EACH);
}

static void levels_are_parsed_in_any_case(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int level; /* -1: none */
    } cases[] = {{"ERROR", LOG_LEVEL_ERROR},
                 {"warn", LOG_LEVEL_WARN},
                 {"Info", LOG_LEVEL_INFO},
                 {"debUG", LOG_LEVEL_DEBUG},
                 {"", -1},
                 {"INF", -1},
                 {"INFO ", -1},
                 {"4", -1}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        enum log_level level = LOG_LEVEL_DEBUG;
        bool is_level = log_level_parse(cases[i].text, &level);
        if (is_level != (cases[i].level >= 0) || (int)level != (is_level ? cases[i].level : LOG_LEVEL_DEBUG))
            fail_msg("'%s': %d, %d", cases[i].text, is_level, (int)level);
    }
    for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_DEBUG; level++) {
        enum log_level parsed = LOG_LEVEL_DEBUG;
        assert_true(log_level_parse(log_level_name((enum log_level)level), &parsed));
        assert_int_equal(parsed, level);
    }
}

static void repeated_lines_are_held_back_and_counted(void **state)
{
    (void)state;
    struct log_repeat repeat = {0};
    uint64_t held_back = 99;
    /* The clock may be young: the first line is due at any time. */
    assert_true(log_repeat_is_due(&repeat, 5, 100, &held_back));
    assert_int_equal(held_back, 0);
    for (int64_t now_ns = 5; now_ns < 105; now_ns += 10) {
        held_back = 99;
        assert_false(log_repeat_is_due(&repeat, now_ns, 100, &held_back));
        assert_int_equal(held_back, 99);
    }
    assert_true(log_repeat_is_due(&repeat, 105, 100, &held_back));
    assert_int_equal(held_back, 10);
    assert_true(log_repeat_is_due(&repeat, 205, 100, &held_back));
    assert_int_equal(held_back, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(line_has_time_level_and_words, sink_open, sink_close),
        cmocka_unit_test_setup_teardown(time_is_now_in_utc, sink_open, sink_close),
        cmocka_unit_test_setup_teardown(lines_above_the_level_are_not_written, sink_open, sink_close),
        cmocka_unit_test_setup_teardown(words_stay_on_one_line, sink_open, sink_close),
        cmocka_unit_test_setup_teardown(long_line_is_cut_and_still_a_line, sink_open, sink_close),
        cmocka_unit_test_setup_teardown(errno_is_kept, sink_open, sink_close),
        cmocka_unit_test_setup_teardown(lines_of_threads_do_not_mix, sink_open, sink_close),
        cmocka_unit_test(levels_are_parsed_in_any_case),
        cmocka_unit_test(repeated_lines_are_held_back_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
