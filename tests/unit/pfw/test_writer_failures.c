/* SPDX-License-Identifier: BSD-3-Clause */
/* The writer on file systems that are full, gone, or not as they were. */
#include "pfw/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "members.h"
#include "sysio.h"
#include "trace.h"
#include "util/clock.h"

enum { DISK_BYTES = 256 * 1024 };

static void failure_and_recovery_are_told_once_each(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    trace_open(&trace, &options);
    trace_append(&trace);
    trace_drain(&trace);
    for (size_t round = 1; round <= 3; round++) {
        sysio_fail_write(0, 0, ENOSPC);
        for (int i = 0; i < 5; i++) {
            trace_append(&trace);
            assert_int_equal(trace_try_drain(&trace), -ENOSPC);
            assert_true(pfw_writer_status(trace.writer).is_failing);
        }
        assert_int_equal(atomic_load(&trace.failures), round);
        assert_non_null(strstr(trace.reason, trace.path));
        assert_non_null(strstr(trace.reason, "No space left on device"));
        sysio_reset();
        trace_drain(&trace);
        assert_int_equal(atomic_load(&trace.recoveries), round);
        assert_false(pfw_writer_status(trace.writer).is_failing);
    }
    (void)trace_close(&trace);
    struct content content = trace_read(trace.path);
    assert_int_equal(content.next, trace.next);
    assert_int_equal(content.gaps, 0);
}

static void failed_write_is_tried_again_without_being_asked(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    options.flush_interval_ms = 1;
    trace_open(&trace, &options);
    sysio_fail_write(0, 0, EIO);
    trace_append(&trace);
    assert_int_equal(trace_try_drain(&trace), -EIO);
    sysio_reset();
    trace_wait_written(&trace, 1);
}

static void failing_writes_are_not_tried_more_than_once_a_second(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    options.flush_interval_ms = 1;
    trace_open(&trace, &options);
    sysio_reset();
    sysio_fail_write(0, 0, EIO);
    int64_t start_ns = clock_mono_ns();
    for (int64_t deadline_ns = trace_deadline_mono_ns(); sysio_writes() < 3;) {
        trace_append(&trace);
        assert_true(clock_mono_ns() < deadline_ns);
        trace_sleep();
    }
    /* The first is at once; a slow machine makes the others later, never earlier. */
    assert_true(clock_mono_ns() - start_ns >= 2 * CLOCK_NS_PER_SECOND);
}

/* Fails at each call in turn, in the middle of pages too: every event is there, or in a gap, in order. */
static void any_failing_write_loses_nothing_that_the_buffer_holds(void **state)
{
    (void)state;
    for (size_t n = 0; n < 5; n++) {
        for (size_t bytes = 0; bytes < 10000; bytes += 1999) {
            CLEANUP(trace_cleanup) struct trace trace;
            trace_init(&trace);
            struct pfw_writer_options options = trace_options(&trace);
            trace_open(&trace, &options);
            sysio_fail_write(n, bytes, ENOSPC);
            for (int i = 0; i < 6; i++) {
                trace_append_noise(&trace, 100);
                (void)trace_try_drain(&trace); /* fails from some call on */
                (void)trace_read(trace.path);
            }
            assert_int_equal(atomic_load(&trace.failures), 1);
            sysio_reset();
            struct pfw_writer_status status = trace_close(&trace);
            assert_int_equal(status.events_dropped, 0);
            struct content content = trace_read(trace.path);
            assert_int_equal(content.next, trace.next);
            assert_int_equal(content.gaps, 0);
            assert_int_equal(status.events_written, content.lines);
        }
    }
}

static void close_of_a_failing_trace_tells_why_and_what_is_left(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    trace_open(&trace, &options);
    sysio_fail_write(0, 0, EDQUOT);
    trace_append(&trace);
    struct pfw_writer_status status;
    struct error err = {0};
    assert_int_equal(pfw_writer_close(TAKE(trace.writer), TRACE_DEADLINE_MS, &status, &err), -EDQUOT);
    assert_non_null(strstr(err.text, "quota"));
    assert_true(status.is_failing);
    assert_true(status.buffered_bytes > 0);
    assert_int_equal(status.events_written, 0);
}

/* A small disk that fills up and is made room on: what was dropped is told with its number, nothing else is missing. */
static void full_disk_loses_only_what_it_says(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        (void)printf("skipped: mounting a small tmpfs needs root\n");
        skip();
    }
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    char size[64], ballast[PATH_MAX];
    (void)snprintf(size, sizeof size, "size=%d", DISK_BYTES);
    if (mount("cicada-test", trace.directory, "tmpfs", 0, size) < 0) {
        (void)printf("skipped: no right to mount a tmpfs\n");
        skip();
    }
    (void)scratch_path(&trace.scratch, "traces/ballast", ballast);
    CLEANUP(fd_cleanup) int fd = open(ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int ballast_rc = posix_fallocate(fd, 0, DISK_BYTES / 2);

    struct pfw_writer_options options = trace_options(&trace);
    options.buffer_max_bytes = TRACE_SMALL_BUFFER_BYTES;
    trace_open(&trace, &options);
    int rc = 0;
    for (int i = 0; i < 60; i++) {
        trace_append_noise(&trace, 100);
        rc = trace_try_drain(&trace);
    }
    struct content full = trace_read(trace.path);
    struct pfw_writer_status full_status = pfw_writer_status(trace.writer);
    size_t failures = atomic_load(&trace.failures);

    int unlink_rc = unlink(ballast);
    int truncate_rc = ftruncate(fd, 0);
    trace_append_noise(&trace, 100);
    struct pfw_writer_status status;
    int close_rc = pfw_writer_close(TAKE(trace.writer), TRACE_DEADLINE_MS, &status, NULL);
    struct content content = trace_read(trace.path);
    assert_int_equal(umount2(trace.directory, MNT_DETACH), 0); /* before any check can leave it mounted */

    assert_int_equal(ballast_rc, 0);
    assert_int_equal(rc, -ENOSPC);
    assert_int_equal(failures, 1);
    assert_true(full.next > 100);
    assert_int_equal(full.gaps, 0);
    assert_int_equal(unlink_rc, 0);
    assert_int_equal(truncate_rc, 0);
    assert_int_equal(close_rc, 0);
    assert_true(full_status.events_dropped > 100);
    assert_int_equal(atomic_load(&trace.failures), 1);
    assert_int_equal(atomic_load(&trace.recoveries), 1);
    assert_int_equal(content.next, trace.next);
    assert_int_equal(content.missing, status.events_dropped);
    assert_int_equal(content.gaps, 1);
    assert_int_equal(status.events_written, content.lines);
}

/* Retries until a drain succeeds: the file is looked for at its path only every half second. */
static void append_until(struct trace *trace, bool (*is_reached)(const struct trace *trace))
{
    int64_t deadline_ns = trace_deadline_mono_ns();
    while (!is_reached(trace)) {
        assert_true(clock_mono_ns() < deadline_ns);
        trace_append(trace);
        (void)trace_try_drain(trace); /* fails while the directory is gone */
        trace_sleep();
    }
}

static bool is_at_path(const struct trace *trace)
{
    return access(trace->path, F_OK) == 0;
}

static bool has_failed(const struct trace *trace)
{
    return atomic_load(&trace->failures) > 0;
}

static void removed_file_is_begun_anew_with_its_opening(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    trace_open(&trace, &options);
    trace_append(&trace);
    trace_drain(&trace);
    assert_int_equal(unlink(trace.path), 0);
    append_until(&trace, is_at_path);
    trace_append(&trace);
    struct pfw_writer_status status = trace_close(&trace);
    struct content content = trace_read(trace.path);
    assert_int_equal(content.openings, 2);
    assert_int_equal(content.next, trace.next);
    assert_int_equal(status.events_written, content.lines);
    assert_int_equal(atomic_load(&trace.failures), 0);
}

static void removed_directory_is_waited_for(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    options.flush_interval_ms = 1;
    trace_open(&trace, &options);
    trace_append(&trace);
    trace_drain(&trace);
    assert_int_equal(unlink(trace.path), 0);
    assert_int_equal(rmdir(trace.directory), 0);
    append_until(&trace, has_failed);
    assert_non_null(strstr(trace.reason, "No such file or directory"));
    uint64_t first_kept = trace.next - 1;
    trace_append(&trace);
    assert_int_not_equal(access(trace.directory, F_OK), 0);

    assert_int_equal(mkdir(trace.directory, 0700), 0);
    append_until(&trace, is_at_path);
    struct pfw_writer_status status = trace_close(&trace);
    struct content content = trace_read(trace.path);
    assert_true(content.first <= first_kept);
    assert_int_equal(content.next, trace.next);
    assert_int_equal(content.openings, 2);
    assert_int_equal(status.events_dropped, 0);
    assert_int_equal(atomic_load(&trace.failures), 1);
    assert_int_equal(atomic_load(&trace.recoveries), 1);
}

static void moved_file_keeps_what_it_has_and_a_new_one_goes_on(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    trace_open(&trace, &options);
    trace_append(&trace);
    trace_drain(&trace);
    char moved[PATH_MAX];
    (void)scratch_path(&trace.scratch, "moved.pfw.gz", moved);
    assert_int_equal(rename(trace.path, moved), 0);
    append_until(&trace, is_at_path);
    (void)trace_close(&trace);
    struct content old = trace_read(moved);
    struct content content = trace_read(trace.path);
    assert_int_equal(old.first, 0);
    assert_int_equal(content.first, old.next); /* not one is missing between the two */
    assert_int_equal(content.next, trace.next);
}

static void moved_directory_is_written_where_it_is(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    trace_open(&trace, &options);
    trace_append(&trace);
    trace_drain(&trace);
    char moved[PATH_MAX], moved_file[PATH_MAX];
    (void)scratch_path(&trace.scratch, "moved", moved);
    (void)scratch_path(&trace.scratch, "moved/a.pfw.gz", moved_file);
    assert_int_equal(rename(trace.directory, moved), 0);
    int64_t look_ns = clock_mono_ns() + CLOCK_NS_PER_SECOND; /* the writer has looked by then */
    while (clock_mono_ns() < look_ns) {
        trace_append(&trace);
        trace_drain(&trace);
        trace_sleep();
    }
    (void)trace_close(&trace);
    assert_int_equal(trace_read(moved_file).next, trace.next);
    assert_int_equal(atomic_load(&trace.failures), 0);
}

/* Somebody else's file at our path is not overwritten. */
static void file_of_somebody_else_at_the_path_is_left_alone(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    trace_open(&trace, &options);
    trace_append(&trace);
    trace_drain(&trace);
    assert_int_equal(unlink(trace.path), 0);
    scratch_write(&trace.scratch, "traces/a.pfw.gz", "theirs", strlen("theirs"));
    append_until(&trace, has_failed);
    assert_non_null(strstr(trace.reason, "File exists"));
    CLEANUP(buf_cleanup) struct buf bytes;
    buf_init(&bytes, TRACE_TEXT_MAX_BYTES);
    members_read_file(trace.path, &bytes);
    assert_string_equal(buf_string(&bytes), "theirs");
    assert_int_equal(unlink(trace.path), 0);
    append_until(&trace, is_at_path);
    (void)trace_close(&trace);
    assert_int_equal(trace_read(trace.path).next, trace.next);
}

static void opening_that_could_not_be_written_comes_later(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    trace_open(&trace, &options);
    trace_append(&trace);
    trace_drain(&trace);
    assert_int_equal(unlink(trace.path), 0);
    sysio_fail_write(0, 0, ENOSPC);
    append_until(&trace, is_at_path);
    assert_int_equal(trace_try_drain(&trace), -ENOSPC);
    sysio_reset();
    (void)trace_close(&trace);
    struct content content = trace_read(trace.path);
    assert_int_equal(content.openings, 2);
    assert_int_equal(content.next, trace.next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failure_and_recovery_are_told_once_each),
        cmocka_unit_test(failed_write_is_tried_again_without_being_asked),
        cmocka_unit_test(failing_writes_are_not_tried_more_than_once_a_second),
        cmocka_unit_test(any_failing_write_loses_nothing_that_the_buffer_holds),
        cmocka_unit_test(close_of_a_failing_trace_tells_why_and_what_is_left),
        cmocka_unit_test(full_disk_loses_only_what_it_says),
        cmocka_unit_test(removed_file_is_begun_anew_with_its_opening),
        cmocka_unit_test(removed_directory_is_waited_for),
        cmocka_unit_test(moved_file_keeps_what_it_has_and_a_new_one_goes_on),
        cmocka_unit_test(moved_directory_is_written_where_it_is),
        cmocka_unit_test(file_of_somebody_else_at_the_path_is_left_alone),
        cmocka_unit_test(opening_that_could_not_be_written_comes_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
