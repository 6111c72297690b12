/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "members.h"
#include "support/allocation.h"
#include "support/random.h"
#include "support/scratch.h"
#include "sysio.h"
#include "util/buf.h"

enum { PAGE_BYTES = 4096, TEXT_MAX_BYTES = 64 * 1024 * 1024 };

struct trace {
    struct scratch scratch;
    char path[PATH_MAX];
    struct pfw_file *file;
    struct buf expected; /* what was taken */
    bool is_compressed;
};

static const bool kinds[] = {true, false};

static int trace_new_fd(const char *path, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
    assert_true(fd >= 0);
    return fd;
}

static struct trace trace_new(bool is_compressed)
{
    struct trace trace = {.scratch = scratch_new(), .is_compressed = is_compressed};
    (void)scratch_path(&trace.scratch, "a.pfw", trace.path);
    buf_init(&trace.expected, TEXT_MAX_BYTES);
    assert_int_equal(pfw_file_new(trace_new_fd(trace.path, 0), is_compressed, &trace.file, NULL), 0);
    return trace;
}

static void trace_cleanup(struct trace *trace)
{
    sysio_reset();
    assert_int_equal(pfw_file_close(trace->file, NULL), 0);
    buf_fini(&trace->expected);
    scratch_cleanup(&trace->scratch);
}

/* Appends, and remembers what was taken. */
static int trace_append(struct trace *trace, const char *lines, size_t length, size_t *out_taken, struct error *err)
{
    int rc = pfw_file_append(trace->file, lines, length, out_taken, err);
    assert_true(*out_taken <= length);
    assert_true(*out_taken == 0 || lines[*out_taken - 1] == '\n');
    assert_true(rc < 0 || *out_taken == length);
    buf_bytes(&trace->expected, lines, *out_taken);
    return rc;
}

static void trace_append_all(struct trace *trace, const char *lines, size_t length)
{
    size_t taken;
    struct error err = {0};
    if (trace_append(trace, lines, length, &taken, &err) < 0)
        fail_msg("%s", err.text);
}

/* The text of a trace, without the blanks that fill up pages. */
static void read_text(const char *path, bool is_compressed, struct buf *out)
{
    CLEANUP(buf_cleanup) struct buf bytes;
    buf_init(&bytes, TEXT_MAX_BYTES);
    members_read_file(path, &bytes);
    if (is_compressed) {
        struct members members;
        assert_true(members_read(&members, bytes.data, bytes.length));
        buf_bytes(out, members.text.data, members.text.length);
        members_fini(&members);
        return;
    }
    for (size_t i = 0; i < bytes.length; i++) {
        if (bytes.data[i] == '\n')
            while (out->length > 0 && out->data[out->length - 1] == ' ')
                out->length--;
        buf_char(out, bytes.data[i]);
    }
}

/* What is on disk is whole, and it is what was taken. */
static void assert_trace_is_as_expected(const struct trace *trace)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    read_text(trace->path, trace->is_compressed, &text);
    assert_int_equal(text.length, trace->expected.length);
    if (text.length > 0)
        assert_memory_equal(text.data, trace->expected.data, text.length);
    struct stat state;
    assert_int_equal(stat(trace->path, &state), 0);
    assert_int_equal(state.st_size, pfw_file_size(trace->file));
}

/* Numbered lines that deflate badly, so that few of them need many pages. */
static void noise_lines(struct buf *out, struct random *random, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "{\"i\":%zu,\"noise\":\"", i);
        for (int k = 0; k < 12; k++)
            buf_printf(out, "%016llx", (unsigned long long)random_u64(random));
        buf_text(out, "\"}\n");
    }
}

static void what_was_appended_is_read_back(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (size_t kind = 0; kind < ARRAY_LENGTH(kinds); kind++) {
        CLEANUP(trace_cleanup) struct trace trace = trace_new(kinds[kind]);
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, TEXT_MAX_BYTES);
        for (int i = 0; i < 100; i++) {
            buf_reset(&lines);
            noise_lines(&lines, &random, 1 + random_below(&random, i == 50 ? 20000 : 20));
            trace_append_all(&trace, lines.data, lines.length);
        }
        assert_int_equal(pfw_file_sync(trace.file, NULL), 0);
        assert_trace_is_as_expected(&trace);
    }
}

static void empty_append_writes_nothing(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace = trace_new(true);
    trace_append_all(&trace, "", 0);
    assert_int_equal(pfw_file_size(trace.file), 0);
    assert_int_equal(sysio_writes(), 0);
    assert_trace_is_as_expected(&trace);
}

static void flush_goes_out_in_one_write(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (size_t kind = 0; kind < ARRAY_LENGTH(kinds); kind++) {
        CLEANUP(trace_cleanup) struct trace trace = trace_new(kinds[kind]);
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, TEXT_MAX_BYTES);
        noise_lines(&lines, &random, 500);
        sysio_reset();
        trace_append_all(&trace, lines.data, lines.length);
        assert_true(pfw_file_size(trace.file) > 10 * PAGE_BYTES);
        assert_int_equal(sysio_writes(), 1);
        assert_trace_is_as_expected(&trace);
    }
}

static void line_larger_than_all_buffers_is_written_whole(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (size_t kind = 0; kind < ARRAY_LENGTH(kinds); kind++) {
        CLEANUP(trace_cleanup) struct trace trace = trace_new(kinds[kind]);
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, TEXT_MAX_BYTES);
        buf_text(&lines, "{\"first\":1}\n\"");
        for (int i = 0; i < 40000; i++)
            buf_printf(&lines, "%016llx", (unsigned long long)random_u64(&random));
        buf_text(&lines, "\"\n{\"last\":1}\n");
        trace_append_all(&trace, lines.data, lines.length);
        trace_append_all(&trace, "{}\n", 3);
        assert_trace_is_as_expected(&trace);
    }
}

/* A disk that fills up at each of many places, in the middle of pages too, and then has room again. */
static void failed_write_leaves_whole_lines_and_is_gone_on_with(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (size_t kind = 0; kind < ARRAY_LENGTH(kinds); kind++) {
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, TEXT_MAX_BYTES);
        noise_lines(&lines, &random, 3000);
        for (size_t n = 0; n < 2; n++) {
            for (size_t bytes = 0; bytes < 3 * PAGE_BYTES; bytes += 509) {
                CLEANUP(trace_cleanup) struct trace trace = trace_new(kinds[kind]);
                trace_append_all(&trace, "{\"before\":1}\n", strlen("{\"before\":1}\n"));
                sysio_fail_write(n, bytes, ENOSPC);
                size_t taken;
                struct error err = {0};
                int rc = trace_append(&trace, lines.data, lines.length, &taken, &err);
                assert_int_equal(rc, -ENOSPC);
                assert_non_null(strstr(err.text, "No space left"));
                assert_true(n == 0 || taken > 0);
                assert_trace_is_as_expected(&trace);

                sysio_reset();
                trace_append_all(&trace, lines.data + taken, lines.length - taken);
                assert_trace_is_as_expected(&trace);
            }
        }
    }
}

/* The blanks that fill up a page begin where the newline of the last line was. */
static void failed_fill_leaves_the_last_plain_line_its_newline(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (size_t bytes = 1; bytes < 60; bytes++) {
        CLEANUP(trace_cleanup) struct trace trace = trace_new(false);
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, TEXT_MAX_BYTES);
        buf_printf(&lines, "[%0*d]\n", PAGE_BYTES - 100, 0);
        trace_append_all(&trace, lines.data, lines.length);
        buf_reset(&lines);
        noise_lines(&lines, &random, 3);
        sysio_fail_write(0, bytes, ENOSPC);
        size_t taken;
        assert_int_equal(trace_append(&trace, lines.data, lines.length, &taken, NULL), -ENOSPC);
        assert_int_equal(taken, 0);
        assert_trace_is_as_expected(&trace);
        sysio_reset();
        trace_append_all(&trace, lines.data, lines.length);
        assert_trace_is_as_expected(&trace);
    }
}

/* Nothing may be written behind a part of a member: a reader would stop there. */
static void torn_end_that_could_not_be_cut_off_is_cut_off_before_the_next_write(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (size_t kind = 0; kind < ARRAY_LENGTH(kinds); kind++) {
        CLEANUP(trace_cleanup) struct trace trace = trace_new(kinds[kind]);
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, TEXT_MAX_BYTES);
        noise_lines(&lines, &random, 300);
        sysio_fail_write(0, PAGE_BYTES + 100, EIO);
        sysio_fail_truncate(EIO);
        size_t taken;
        assert_int_equal(trace_append(&trace, lines.data, lines.length, &taken, NULL), -EIO);
        size_t first_taken = taken;

        sysio_reset();
        sysio_fail_truncate(EIO);
        assert_int_equal(trace_append(&trace, lines.data + taken, lines.length - taken, &taken, NULL), -EIO);
        assert_int_equal(taken, 0);

        sysio_reset();
        trace_append_all(&trace, "{}\n", 3);
        assert_trace_is_as_expected(&trace);
        trace_append_all(&trace, lines.data + first_taken, lines.length - first_taken);
        assert_trace_is_as_expected(&trace);
    }
}

static void interrupted_and_short_writes_are_gone_on_with(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (size_t kind = 0; kind < ARRAY_LENGTH(kinds); kind++) {
        CLEANUP(trace_cleanup) struct trace trace = trace_new(kinds[kind]);
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, TEXT_MAX_BYTES);
        noise_lines(&lines, &random, 300);
        sysio_interrupt_writes(777);
        trace_append_all(&trace, lines.data, lines.length);
        assert_trace_is_as_expected(&trace);
    }
}

/* The kernel writes up to the limit first, in the middle of a page. */
static void file_size_limit_is_an_error_like_others(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (size_t kind = 0; kind < ARRAY_LENGTH(kinds); kind++) {
        CLEANUP(trace_cleanup) struct trace trace = trace_new(kinds[kind]);
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, TEXT_MAX_BYTES);
        noise_lines(&lines, &random, 300);
        struct rlimit before;
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
        struct rlimit small = {.rlim_cur = 3 * PAGE_BYTES + 1000, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        size_t taken;
        int rc = trace_append(&trace, lines.data, lines.length, &taken, NULL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(rc, -EFBIG);
        assert_true(taken > 0);
        assert_trace_is_as_expected(&trace);
        trace_append_all(&trace, lines.data + taken, lines.length - taken);
        assert_trace_is_as_expected(&trace);
    }
}

/* "> trace", or logrotate's copytruncate. A write at the old offset would leave a hole of zeros before it. */
static void file_that_somebody_emptied_is_begun_anew(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (size_t kind = 0; kind < ARRAY_LENGTH(kinds); kind++) {
        CLEANUP(trace_cleanup) struct trace trace = trace_new(kinds[kind]);
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, TEXT_MAX_BYTES);
        noise_lines(&lines, &random, 300);
        trace_append_all(&trace, lines.data, lines.length);
        assert_int_equal(truncate(trace.path, 0), 0);
        buf_reset(&trace.expected);
        trace_append_all(&trace, "{\"after\":1}\n", strlen("{\"after\":1}\n"));
        assert_trace_is_as_expected(&trace);
    }
}

static void what_others_appended_is_kept(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace = trace_new(false);
    trace_append_all(&trace, "{\"a\":1}\n", strlen("{\"a\":1}\n"));
    CLEANUP(fd_cleanup) int fd = open(trace.path, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "{\"theirs\":1}", strlen("{\"theirs\":1}")), strlen("{\"theirs\":1}"));
    buf_text(&trace.expected, "{\"theirs\":1}\n"); /* the missing newline is put there: their line isn't spoilt */
    trace_append_all(&trace, "{\"b\":1}\n", strlen("{\"b\":1}\n"));
    assert_trace_is_as_expected(&trace);
}

static void descriptor_that_appends_is_taken(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < ARRAY_LENGTH(kinds); kind++) {
        struct random random = random_new(__func__);
        CLEANUP(trace_cleanup) struct trace trace = trace_new(kinds[kind]);
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, TEXT_MAX_BYTES);
        noise_lines(&lines, &random, 300);
        trace_append_all(&trace, lines.data, lines.length);
        assert_int_equal(pfw_file_close(TAKE(trace.file), NULL), 0);
        int fd = trace_new_fd(trace.path, O_APPEND);
        assert_int_equal(pfw_file_new(fd, kinds[kind], &trace.file, NULL), 0);
        if (!kinds[kind])
            buf_text(&trace.expected, "\n"); /* it may have ended without one */
        for (size_t i = 0; i < 100; i++) {
            buf_reset(&lines);
            noise_lines(&lines, &random, 3);
            trace_append_all(&trace, lines.data, lines.length);
        }
        assert_trace_is_as_expected(&trace);
    }
}

static void what_is_no_regular_file_is_refused(void **state)
{
    (void)state;
    struct pfw_file *file = NULL;
    struct error err = {0};
    assert_int_equal(pfw_file_new(open("/dev/null", O_WRONLY | O_CLOEXEC), true, &file, &err), -EINVAL);
    assert_null(file);
    assert_non_null(strstr(err.text, "regular file"));
}

static void place_tells_moved_from_removed(void **state)
{
    (void)state;
    CLEANUP(trace_cleanup) struct trace trace = trace_new(true);
    char moved[PATH_MAX], nowhere[PATH_MAX];
    (void)scratch_path(&trace.scratch, "moved.pfw", moved);
    (void)scratch_path(&trace.scratch, "missing/a.pfw", nowhere);
    assert_int_equal(pfw_file_place(trace.file, trace.path), PFW_FILE_AT_PATH);
    assert_int_equal(pfw_file_place(trace.file, nowhere), PFW_FILE_ELSEWHERE);
    assert_int_equal(rename(trace.path, moved), 0);
    assert_int_equal(pfw_file_place(trace.file, trace.path), PFW_FILE_ELSEWHERE);

    scratch_write(&trace.scratch, "a.pfw", "x", 1);
    assert_int_equal(pfw_file_place(trace.file, trace.path), PFW_FILE_AT_PATH); /* no proof that ours is gone */
    assert_int_equal(unlink(moved), 0);
    assert_int_equal(pfw_file_place(trace.file, trace.path), PFW_FILE_REMOVED);
    assert_int_equal(unlink(trace.path), 0);
    assert_int_equal(pfw_file_place(trace.file, trace.path), PFW_FILE_REMOVED);
}

static void without_memory_no_file_is_made_and_the_descriptor_is_closed(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    (void)scratch_path(&scratch, "a.pfw", path);
    for (size_t n = 0;; n++) {
        int fd = trace_new_fd(path, 0);
        struct pfw_file *file = NULL;
        allocation_fail_at(n);
        int rc = pfw_file_new(fd, true, &file, NULL);
        bool has_failed = allocation_stop();
        if (!has_failed) {
            assert_int_equal(rc, 0);
            assert_int_equal(pfw_file_close(file, NULL), 0);
            assert_true(n > 0);
            break;
        }
        assert_int_equal(rc, -ENOMEM);
        assert_int_equal(fcntl(fd, F_GETFD), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_appended_is_read_back),
        cmocka_unit_test(empty_append_writes_nothing),
        cmocka_unit_test(flush_goes_out_in_one_write),
        cmocka_unit_test(line_larger_than_all_buffers_is_written_whole),
        cmocka_unit_test(failed_write_leaves_whole_lines_and_is_gone_on_with),
        cmocka_unit_test(failed_fill_leaves_the_last_plain_line_its_newline),
        cmocka_unit_test(torn_end_that_could_not_be_cut_off_is_cut_off_before_the_next_write),
        cmocka_unit_test(interrupted_and_short_writes_are_gone_on_with),
        cmocka_unit_test(file_size_limit_is_an_error_like_others),
        cmocka_unit_test(file_that_somebody_emptied_is_begun_anew),
        cmocka_unit_test(what_others_appended_is_kept),
        cmocka_unit_test(descriptor_that_appends_is_taken),
        cmocka_unit_test(what_is_no_regular_file_is_refused),
        cmocka_unit_test(place_tells_moved_from_removed),
        cmocka_unit_test(without_memory_no_file_is_made_and_the_descriptor_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
