/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/window.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/file.h"

enum { FILE_BYTES = 12 << 20 };

/* The byte at each offset of the test's file: no two stretches of it are alike for long. */
static unsigned char byte_at(uint64_t offset)
{
    return (unsigned char)(offset * 31 + (offset >> 8) * 17 + (offset >> 16));
}

static void open_file(struct pfw_window *window)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    assert_true(fd >= 0);
    unsigned char *bytes = malloc(FILE_BYTES);
    assert_non_null(bytes);
    for (uint64_t i = 0; i < FILE_BYTES; i++)
        bytes[i] = byte_at(i);
    assert_int_equal(file_write_all(fd, bytes, FILE_BYTES, NULL), 0);
    free(bytes);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(pfw_window_init(window, fd, NULL), 0);
}

/* Takes bytes up to `offset`, some at a time, and looks at each. */
static void take_to(struct pfw_window *window, uint64_t offset)
{
    while (pfw_window_offset(window) < offset) {
        assert_int_equal(pfw_window_need(window, 1, NULL), 0);
        assert_true(pfw_window_left(window) > 0);
        if (*pfw_window_bytes(window) != byte_at(pfw_window_offset(window)))
            fail_msg("byte %llu is wrong", (unsigned long long)pfw_window_offset(window));
        window->at++;
    }
}

static void every_byte_comes_once_and_then_the_end(void **state)
{
    (void)state;
    struct pfw_window window;
    open_file(&window);
    for (uint64_t offset = 1000; offset <= FILE_BYTES; offset += 1000) {
        take_to(&window, offset);
        pfw_window_mark(&window);
    }
    take_to(&window, FILE_BYTES);
    assert_int_equal(pfw_window_need(&window, 1, NULL), 0);
    assert_int_equal(pfw_window_left(&window), 0);
    assert_true(window.is_at_end);
    pfw_window_fini(&window);
}

static void what_follows_the_mark_is_kept(void **state)
{
    (void)state;
    struct pfw_window window;
    open_file(&window);
    take_to(&window, 5 << 20);
    pfw_window_mark(&window);
    take_to(&window, (5 << 20) + PFW_WINDOW_KEEP_MAX_BYTES);
    assert_true(pfw_window_holds(&window, 5 << 20));
    pfw_window_seek(&window, 5 << 20);
    assert_int_equal(pfw_window_offset(&window), 5 << 20);
    take_to(&window, FILE_BYTES);
    pfw_window_fini(&window);
}

static void a_mark_too_old_becomes_the_oldest_byte_there_is(void **state)
{
    (void)state;
    struct pfw_window window;
    open_file(&window);
    take_to(&window, 100);
    pfw_window_mark(&window);
    take_to(&window, FILE_BYTES);
    assert_false(pfw_window_holds(&window, 100));
    pfw_window_seek(&window, 100);
    uint64_t oldest = pfw_window_offset(&window);
    assert_true(oldest > 100 && oldest <= FILE_BYTES - PFW_WINDOW_KEEP_MAX_BYTES);
    take_to(&window, FILE_BYTES);
    pfw_window_seek(&window, FILE_BYTES + 5);
    assert_int_equal(pfw_window_offset(&window), FILE_BYTES);
    pfw_window_fini(&window);
}

static void a_failing_read_is_told(void **state)
{
    (void)state;
    struct pfw_window window;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    struct error err = {0};
    assert_int_equal(pfw_window_init(&window, ends[1], NULL), 0); /* the end of a pipe that can't be read */
    assert_int_equal(pfw_window_fill(&window, &err), -EBADF);
    pfw_window_fini(&window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_comes_once_and_then_the_end),
        cmocka_unit_test(what_follows_the_mark_is_kept),
        cmocka_unit_test(a_mark_too_old_becomes_the_oldest_byte_there_is),
        cmocka_unit_test(a_failing_read_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
