/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/procfile.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/scratch.h"

/* The wrapped call has no other way to tell. */
static size_t preads;

ssize_t __real_pread(int fd, void *bytes, size_t length, off_t offset);
ssize_t __wrap_pread(int fd, void *bytes, size_t length, off_t offset);

ssize_t __wrap_pread(int fd, void *bytes, size_t length, off_t offset)
{
    preads++;
    return __real_pread(fd, bytes, length, offset);
}

static void a_file_is_read_anew_each_time(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    scratch_write(&scratch, "loadavg", "0.10\n", 5);
    CLEANUP(procfile_cleanup) struct procfile file = PROCFILE_CLOSED;
    struct error err = {0};
    assert_int_equal(procfile_open(&file, scratch.path, "loadavg", &err), 0);
    assert_int_equal(procfile_read(&file, &err), 0);
    assert_int_equal(file.length, 5);
    assert_memory_equal(file.text, "0.10\n", 5);

    scratch_write(&scratch, "loadavg", "0.2\n", 4);
    assert_int_equal(procfile_read(&file, &err), 0);
    assert_int_equal(file.length, 4);
    assert_memory_equal(file.text, "0.2\n", 4);

    scratch_write(&scratch, "loadavg", "", 0);
    assert_int_equal(procfile_read(&file, &err), 0);
    assert_int_equal(file.length, 0);
}

static void a_text_longer_than_the_buffer_is_read_whole(void **state)
{
    (void)state;
    static const size_t lengths[] = {4095, 4096, 4097, 8192, 1000003};
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    for (size_t i = 0; i < ARRAY_LENGTH(lengths); i++) {
        CLEANUP(memory_cleanup) char *text = malloc(lengths[i]);
        assert_non_null(text);
        for (size_t at = 0; at < lengths[i]; at++)
            text[at] = (char)('a' + at % 23);
        scratch_write(&scratch, "stat", text, lengths[i]);
        CLEANUP(procfile_cleanup) struct procfile file = PROCFILE_CLOSED;
        assert_int_equal(procfile_open(&file, scratch.path, "stat", NULL), 0);
        assert_int_equal(procfile_read(&file, NULL), 0);
        assert_int_equal(file.length, lengths[i]);
        assert_memory_equal(file.text, text, lengths[i]);
    }
}

static void a_text_that_the_kernel_gives_in_pieces_is_read_whole(void **state)
{
    (void)state;
    /* Longer than the kernel's own buffer of a page, so that a single read() gives only its beginning. */
    CLEANUP(procfile_cleanup) struct procfile file = PROCFILE_CLOSED;
    struct error err = {0};
    assert_int_equal(procfile_open(&file, "/proc/self", "smaps", &err), 0);
    assert_int_equal(procfile_read(&file, &err), 0);
    assert_true(file.length > 8192);
    CLEANUP(stdio_cleanup) FILE *other = fopen("/proc/self/smaps", "re");
    assert_non_null(other);
    char line[4096], last[4096] = "";
    while (fgets(line, sizeof line, other) != NULL)
        memcpy(last, line, sizeof last);
    size_t length = strlen(last);
    assert_memory_equal(file.text + file.length - length, last, length); /* "VmFlags: …" of [vsyscall] or so */
}

static void the_end_of_short_lines_is_not_read_twice_unless_it_is_near_the_pages_end(void **state)
{
    (void)state;
    static const struct {
        size_t length, line_max_bytes, preads;
    } cases[] = {{700, 1024, 1}, {0, 1024, 1}, {3071, 1024, 1}, {3072, 1024, 2}, {5000, 1024, 3}, {700, 0, 2}};
    char text[5000];
    memset(text, '7', sizeof text);
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        scratch_write(&scratch, "diskstats", text, cases[i].length);
        CLEANUP(procfile_cleanup) struct procfile file = PROCFILE_CLOSED;
        assert_int_equal(procfile_open(&file, scratch.path, "diskstats", NULL), 0);
        file.line_max_bytes = cases[i].line_max_bytes;
        preads = 0;
        assert_int_equal(procfile_read(&file, NULL), 0);
        assert_int_equal(file.length, cases[i].length);
        assert_int_equal(preads, cases[i].preads);
    }
}

static void a_file_without_end_is_refused_at_the_limit(void **state)
{
    (void)state;
    CLEANUP(procfile_cleanup) struct procfile file = PROCFILE_CLOSED;
    struct error err = {0};
    assert_int_equal(procfile_open(&file, "/dev", "zero", &err), 0);
    assert_int_equal(procfile_read(&file, &err), -E2BIG);
    assert_int_equal(file.length, 0);
    assert_non_null(strstr(err.text, "'/dev/zero'"));
}

static void what_fails_names_the_file(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    CLEANUP(procfile_cleanup) struct procfile file = PROCFILE_CLOSED;
    struct error err = {0};
    assert_int_equal(procfile_open(&file, scratch.path, "stat", &err), -ENOENT);
    assert_non_null(strstr(err.text, "/stat'"));
    assert_int_equal(file.fd, -1);

    assert_int_equal(procfile_open(&file, scratch.path, ".", &err), 0);
    assert_int_equal(procfile_read(&file, &err), -EISDIR);
    assert_non_null(strstr(err.text, scratch.path));
    procfile_close(&file);
    procfile_close(&file); /* twice is once */

    char longest[PATH_MAX];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(procfile_open(&file, scratch.path, longest, &err), -EMSGSIZE);
}

static void without_memory_it_says_so_and_works_later(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    scratch_write(&scratch, "stat", "cpu\n", 4);
    for (size_t n = 0;; n++) {
        CLEANUP(procfile_cleanup) struct procfile file = PROCFILE_CLOSED;
        allocation_fail_at(n);
        int rc = procfile_open(&file, scratch.path, "stat", NULL);
        bool is_open = rc == 0;
        if (is_open)
            rc = procfile_read(&file, NULL);
        bool has_failed = allocation_stop();
        assert_int_equal(rc, has_failed ? -ENOMEM : 0);
        if (is_open) {
            assert_int_equal(procfile_read(&file, NULL), 0);
            assert_int_equal(file.length, 4);
        }
        if (!has_failed)
            break;
    }
}

static const struct numbers {
    const char *name;
    const char *line;
    bool is_good;
    size_t count;
    uint64_t first;
} numbers[] = {
    {"plain", "1 22 333", true, 3, 1},
    {"blanks around", "  7\t8  ", true, 2, 7},
    {"more than asked for", "1 2 3 4 5 x", true, 4, 1},
    {"none", "", true, 0, 0},
    {"the largest", "18446744073709551615 1", true, 2, UINT64_MAX},
    {"one more than the largest", "18446744073709551616 1", false, 0, 0},
    {"negative", "5 -1 6", false, 1, 5},
    {"letters", "5 abc", false, 1, 5},
    {"letters at the end of a number", "5 6x 7", false, 1, 5},
    {"a fraction", "5.5", false, 0, 0},
};

static void numbers_are_taken_until_one_makes_no_sense(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
        struct cursor line = cursor_of(numbers[i].line, strlen(numbers[i].line));
        uint64_t got[4] = {0};
        size_t count = 99;
        bool is_good = procfile_numbers(&line, got, ARRAY_LENGTH(got), &count);
        if (is_good != numbers[i].is_good || count != numbers[i].count || (count > 0 && got[0] != numbers[i].first))
            fail_msg("%s: %d, %zu numbers, the first %llu", numbers[i].name, is_good, count,
                     (unsigned long long)got[0]);
    }
    struct cursor line = cursor_of("5\0006", 3);
    uint64_t got[4];
    size_t count;
    assert_false(procfile_numbers(&line, got, ARRAY_LENGTH(got), &count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_anew_each_time),
        cmocka_unit_test(a_text_longer_than_the_buffer_is_read_whole),
        cmocka_unit_test(a_text_that_the_kernel_gives_in_pieces_is_read_whole),
        cmocka_unit_test(the_end_of_short_lines_is_not_read_twice_unless_it_is_near_the_pages_end),
        cmocka_unit_test(a_file_without_end_is_refused_at_the_limit),
        cmocka_unit_test(what_fails_names_the_file),
        cmocka_unit_test(without_memory_it_says_so_and_works_later),
        cmocka_unit_test(numbers_are_taken_until_one_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
