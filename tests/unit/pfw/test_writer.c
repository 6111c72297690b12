/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "members.h"
#include "support/allocation.h"
#include "sysio.h"
#include "trace.h"
#include "util/clock.h"

/* How far the monotonic clock is set ahead: the wrapped call has no other way to know. */
static _Atomic int64_t clock_ahead_ns;

int64_t __real_clock_mono_ns(void);
int64_t __wrap_clock_mono_ns(void);

int64_t __wrap_clock_mono_ns(void)
{
    return __real_clock_mono_ns() + atomic_load(&clock_ahead_ns);
}

static void what_was_appended_is_in_the_file_after_drain(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    trace_open(&trace,
               &(struct pfw_writer_options){.is_compressed = true, .buffer_max_bytes = TRACE_LARGE_BUFFER_BYTES});
    for (int i = 0; i < 1000; i++)
        trace_append(&trace);
    trace_drain(&trace);
    assert_int_equal(trace_read(trace.path).next, 1000);
    trace_append(&trace);
    struct pfw_writer_status status = trace_close(&trace);
    assert_int_equal(status.events_written, 1001);
    assert_int_equal(status.events_dropped, 0);
    assert_int_equal(status.buffered_bytes, 0);
    assert_false(status.is_failing);
    struct stat file;
    assert_int_equal(stat(trace.path, &file), 0);
    assert_int_equal(status.bytes_written, file.st_size);
    assert_int_equal(trace_read(trace.path).next, 1001);
}

static void plain_trace_is_lines(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    trace_open(&trace, &(struct pfw_writer_options){.buffer_max_bytes = TRACE_LARGE_BUFFER_BYTES});
    trace_append(&trace);
    trace_append(&trace);
    (void)trace_close(&trace);
    CLEANUP(buf_cleanup) struct buf bytes;
    buf_init(&bytes, TRACE_TEXT_MAX_BYTES);
    members_read_file(trace.path, &bytes);
    assert_string_equal(buf_string(&bytes), "{\"i\":0}\n{\"i\":1}\n");
}

static void flush_interval_writes_without_being_asked(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    options.flush_interval_ms = 10;
    trace_open(&trace, &options);
    for (uint64_t i = 0; i < 20; i++) {
        for (int wait = 0; i % 2 != 0 && wait < 10; wait++)
            trace_sleep(); /* the interval is over before there is anything to write */
        trace_append(&trace);
        trace_wait_written(&trace, i + 1);
        assert_int_equal(trace_read(trace.path).next, i + 1);
    }
}

/* So the tick that comes one interval after the last lines finds its flush due, whenever the last flush was. */
static void interval_is_counted_from_the_last_lines_and_ends_a_little_early_when_lines_come(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    options.flush_interval_ms = 3600 * 1000;
    trace_open(&trace, &options);
    trace_append(&trace);
    atomic_store(&clock_ahead_ns, 1800 * CLOCK_NS_PER_SECOND);
    trace_drain(&trace);
    atomic_store(&clock_ahead_ns, 3000 * CLOCK_NS_PER_SECOND);
    trace_append(&trace);
    for (int64_t deadline_ns = clock_mono_ns() + TRACE_SHORT_MS * CLOCK_NS_PER_MS; clock_mono_ns() < deadline_ns;)
        trace_sleep();
    assert_int_equal(pfw_writer_status(trace.writer).events_written, 1); /* in the last sixth of the interval */
    atomic_store(&clock_ahead_ns, 3500 * CLOCK_NS_PER_SECOND);
    trace_append(&trace);
    trace_wait_written(&trace, 3); /* in its last sixteenth */
}

static int clock_teardown(void **state)
{
    (void)state;
    atomic_store(&clock_ahead_ns, 0);
    return 0;
}

static void without_interval_half_a_buffer_is_written_and_less_is_not(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    options.buffer_max_bytes = TRACE_SMALL_BUFFER_BYTES;
    trace_open(&trace, &options);
    trace_drain(&trace); /* its thread waits from now on */
    trace_append_noise(&trace, 10);
    assert_int_equal(pfw_writer_status(trace.writer).events_written, 0);
    trace_append_noise(&trace, 400);
    trace_wait_written(&trace, 410);
    assert_int_equal(pfw_writer_status(trace.writer).events_dropped, 0);
}

static void flush_writes_and_returns_at_once(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    trace_open(&trace, &options);
    trace_append(&trace);
    sysio_hang_writes();
    pfw_writer_flush(trace.writer);
    sysio_wait_hanging();
    assert_int_equal(pfw_writer_status(trace.writer).events_written, 0);
    sysio_reset();
    trace_wait_written(&trace, 1);
}

static void synced_trace_is_synced_after_each_flush(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    options.is_synced = true;
    trace_open(&trace, &options);
    sysio_reset();
    for (size_t i = 0; i < 3; i++) {
        trace_append(&trace);
        trace_drain(&trace);
        assert_int_equal(sysio_syncs(), i + 1);
    }
    trace_drain(&trace);
    assert_int_equal(sysio_syncs(), 3); /* nothing new, nothing to sync */

    sysio_fail_sync(EIO);
    trace_append(&trace);
    assert_int_equal(trace_try_drain(&trace), -EIO);
    assert_int_equal(atomic_load(&trace.failures), 1);
    sysio_reset();
    trace_drain(&trace);
    assert_int_equal(sysio_syncs(), 1);
    assert_int_equal(atomic_load(&trace.recoveries), 1);
}

/* Only this thread could end the hang: that append returns at all shows that it doesn't wait. */
static void append_does_not_wait_for_a_file_system_that_hangs(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    options.buffer_max_bytes = TRACE_SMALL_BUFFER_BYTES;
    options.flush_interval_ms = 1;
    trace_open(&trace, &options);
    sysio_hang_writes();
    trace_append(&trace);
    sysio_wait_hanging();
    for (int i = 0; i < 1000; i++) {
        trace_append_noise(&trace, 10);
        struct pfw_writer_status status = pfw_writer_status(trace.writer);
        assert_true(status.buffered_bytes <= TRACE_SMALL_BUFFER_BYTES);
    }
    assert_int_equal(pfw_writer_drain(trace.writer, TRACE_SHORT_MS, NULL), -ETIMEDOUT);
    struct pfw_writer_status status = pfw_writer_status(trace.writer);
    assert_true(status.events_dropped > 9000);

    sysio_reset();
    status = trace_close(&trace);
    struct content content = trace_read(trace.path);
    assert_int_equal(content.next, trace.next);
    assert_int_equal(content.missing, status.events_dropped);
    assert_int_equal(content.gaps, 1);
    assert_int_equal(status.events_written, content.lines);
    assert_int_equal(atomic_load(&trace.failures), 0); /* slow is no failure */
}

static void close_leaves_a_file_system_that_hangs_behind(void **state)
{
    (void)state;
    size_t threads = trace_threads();
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    trace_open(&trace, &options);
    sysio_hang_writes();
    trace_append(&trace);
    pfw_writer_flush(trace.writer);
    sysio_wait_hanging();
    trace_append(&trace);
    struct pfw_writer_status status;
    struct error err = {0};
    assert_int_equal(pfw_writer_close(TAKE(trace.writer), TRACE_SHORT_MS, &status, &err), -ETIMEDOUT);
    assert_non_null(strstr(err.text, trace.path));
    assert_true(status.buffered_bytes > 0);

    sysio_reset();
    trace_wait_for_threads(threads); /* it comes back, frees what it has, and writes nothing more */
    assert_int_equal(trace_read(trace.path).next, 1);
    assert_int_equal(atomic_load(&trace.failures), 0);
}

/* Its SIGXFSZ would end the process if the writer's thread could get it. */
static void file_size_limit_does_not_kill(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    trace_open(&trace, &options);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = 10000, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    trace_append_noise(&trace, 1000);
    int rc = trace_try_drain(&trace);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rc, -EFBIG);
    (void)trace_close(&trace);
    assert_int_equal(trace_read(trace.path).next, trace.next);
}

static atomic_int signals_of_main;
static pthread_t main_thread;

static void on_signal(int number)
{
    (void)number;
    atomic_fetch_add(&signals_of_main, pthread_equal(pthread_self(), main_thread) ? 1 : 1000);
}

static void signals_go_to_the_users_threads(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace;
    trace_init(&trace);
    struct pfw_writer_options options = trace_options(&trace);
    trace_open(&trace, &options);
    main_thread = pthread_self();
    assert_int_equal(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL), 0);
    sigset_t mask, before;
    assert_int_equal(sigemptyset(&mask) | sigaddset(&mask, SIGUSR1), 0);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &mask, &before), 0);
    assert_int_equal(kill(getpid(), SIGUSR1), 0); /* would go to any thread that takes it: there must be none */
    trace_append(&trace);
    trace_drain(&trace);
    assert_int_equal(atomic_load(&signals_of_main), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    assert_int_equal(atomic_load(&signals_of_main), 1);
}

static void without_memory_nothing_is_opened_and_the_descriptor_is_closed(void **state)
{
    (void)state;
    size_t threads = trace_threads();
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    (void)scratch_path(&scratch, "a.pfw.gz", path);
    struct pfw_writer_options options = {.is_compressed = true, .buffer_max_bytes = TRACE_SMALL_BUFFER_BYTES};
    for (size_t n = 0;; n++) {
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        struct pfw_writer *writer = NULL;
        allocation_fail_at(n);
        int rc = pfw_writer_open(fd, path, &options, &writer, NULL);
        bool has_failed_once = allocation_stop();
        if (!has_failed_once) {
            assert_int_equal(rc, 0);
            assert_int_equal(pfw_writer_close(writer, TRACE_DEADLINE_MS, NULL, NULL), 0);
            assert_true(n > 2);
            break;
        }
        assert_int_equal(rc, -ENOMEM);
        assert_null(writer);
        assert_int_equal(fcntl(fd, F_GETFD), -1);
    }
    trace_wait_for_threads(threads);
}

static void closing_nothing_is_fine(void **state)
{
    (void)state;
    assert_int_equal(pfw_writer_close(NULL, 0, NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_appended_is_in_the_file_after_drain),
        cmocka_unit_test(plain_trace_is_lines),
        cmocka_unit_test(flush_interval_writes_without_being_asked),
        cmocka_unit_test_teardown(interval_is_counted_from_the_last_lines_and_ends_a_little_early_when_lines_come,
                                  clock_teardown),
        cmocka_unit_test(without_interval_half_a_buffer_is_written_and_less_is_not),
        cmocka_unit_test(flush_writes_and_returns_at_once),
        cmocka_unit_test(synced_trace_is_synced_after_each_flush),
        cmocka_unit_test(append_does_not_wait_for_a_file_system_that_hangs),
        cmocka_unit_test(close_leaves_a_file_system_that_hangs_behind),
        cmocka_unit_test(file_size_limit_does_not_kill),
        cmocka_unit_test(signals_go_to_the_users_threads),
        cmocka_unit_test(without_memory_nothing_is_opened_and_the_descriptor_is_closed),
        cmocka_unit_test(closing_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
