/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/state.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/scratch.h"

static int open_file(const struct scratch *scratch)
{
    char path[PATH_MAX];
    int fd = open(scratch_path(scratch, "state", path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

static struct state state_of(uint64_t number)
{
    struct state one = {.phase = STATE_RUNNING, .progress = {.events = number, .dropped = number, .ticks = number}};
    memset(one.trace_path, 'a' + (int)(number % 26), sizeof one.trace_path - 1);
    return one;
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    CLEANUP(fd_cleanup) int fd = open_file(&scratch);
    struct state read;
    assert_int_equal(state_read(fd, &read, NULL), -ENODATA);
    struct state written = state_of(17);
    assert_int_equal(state_write(fd, &written, NULL), 0);
    assert_int_equal(state_read(fd, &read, NULL), 0);
    assert_memory_equal(&read, &written, sizeof read);
}

static void damaged_bytes_are_no_state(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    CLEANUP(fd_cleanup) int fd = open_file(&scratch);
    struct state written = state_of(17), read = {.progress = {.events = 5}};
    assert_int_equal(state_write(fd, &written, NULL), 0);
    off_t size = lseek(fd, 0, SEEK_END);
    for (off_t at = 0; at < size; at += 97) {
        char byte;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 1;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        assert_true(state_read(fd, &read, NULL) < 0);
        assert_int_equal(read.progress.events, 5);
        byte ^= 1;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    assert_int_equal(ftruncate(fd, size - 1), 0);
    assert_int_equal(state_read(fd, &read, NULL), -ENODATA);
}

/* A reader beside a writer that never rests sees one state or the other, and never a mixture. */
static void reader_never_sees_a_half_written_state(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    CLEANUP(fd_cleanup) int fd = open_file(&scratch);
    struct state first = state_of(0);
    assert_int_equal(state_write(fd, &first, NULL), 0);
    pid_t writer = fork();
    if (writer == 0) {
        for (uint64_t i = 1;; i++) {
            struct state one = state_of(i);
            (void)state_write(fd, &one, NULL);
        }
    }
    unsigned read_count = 0;
    for (int i = 0; i < 20000; i++) {
        struct state read;
        int rc = state_read(fd, &read, NULL);
        if (rc == -EAGAIN)
            continue;
        read_count++;
        struct state expected = state_of(read.progress.events);
        bool is_one_path = strspn(read.trace_path, (char[]){read.trace_path[0], '\0'}) == sizeof read.trace_path - 1;
        if (rc != 0 || read.progress.ticks != expected.progress.ticks || !is_one_path) {
            (void)kill(writer, SIGKILL);
            fail_msg("a mixture of states");
        }
    }
    (void)kill(writer, SIGKILL);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    assert_true(read_count > 0);
}

static void progress_is_written_alone(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    CLEANUP(fd_cleanup) int fd = open_file(&scratch);
    struct state written = state_of(17), read;
    assert_int_equal(state_write(fd, &written, NULL), 0);
    off_t size = lseek(fd, 0, SEEK_END);
    written.progress = (struct state_progress){.events = 99, .is_failing = 1};
    assert_int_equal(state_write_progress(fd, &written.progress, NULL), 0);
    assert_int_equal(state_read(fd, &read, NULL), 0);
    assert_memory_equal(&read, &written, sizeof read);
    assert_int_equal(lseek(fd, 0, SEEK_END), size);

    /* A file that has nothing else is no state. */
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(state_write_progress(fd, &written.progress, NULL), 0);
    assert_int_equal(state_read(fd, &read, NULL), -ENODATA);
}

static void write_that_fails_says_so(void **state)
{
    (void)state;
    CLEANUP(fd_cleanup) int fd = open("/dev/full", O_RDWR | O_CLOEXEC);
    struct state one = state_of(1);
    struct error err = {0};
    assert_int_equal(state_write(fd, &one, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "No space left"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(damaged_bytes_are_no_state),
        cmocka_unit_test(reader_never_sees_a_half_written_state),
        cmocka_unit_test(progress_is_written_alone),
        cmocka_unit_test(write_that_fails_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
