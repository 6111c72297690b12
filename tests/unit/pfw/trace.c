/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "members.h"
#include "support/random.h"
#include "sysio.h"
#include "util/clock.h"
#include "util/cursor.h"

static void trace_on_dropped(void *context, uint64_t dropped, struct buf *out)
{
    (void)context;
    buf_printf(out, "{\"dropped\":%llu}\n", (unsigned long long)dropped);
}

static void trace_on_change(void *context, const char *reason)
{
    struct trace *trace = context;
    if (reason == NULL) {
        atomic_fetch_add(&trace->recoveries, 1);
        return;
    }
    (void)snprintf(trace->reason, sizeof trace->reason, "%s", reason);
    atomic_fetch_add(&trace->failures, 1);
}

static void trace_on_new_file(void *context, struct buf *out, uint64_t *out_events)
{
    (void)context;
    buf_text(out, "{\"new\":1}\n{\"new\":2}\n");
    *out_events = 2;
}

struct pfw_writer_options trace_options(struct trace *trace)
{
    return (struct pfw_writer_options){
        .is_compressed = true,
        .buffer_max_bytes = TRACE_LARGE_BUFFER_BYTES,
        .on_dropped = trace_on_dropped,
        .on_change = trace_on_change,
        .on_new_file = trace_on_new_file,
        .context = trace,
    };
}

void trace_init(struct trace *trace)
{
    *trace = (struct trace){.scratch = scratch_new()};
    (void)scratch_path(&trace->scratch, "traces", trace->directory);
    (void)scratch_path(&trace->scratch, "traces/a.pfw.gz", trace->path);
    assert_int_equal(mkdir(trace->directory, 0700), 0);
}

void trace_open(struct trace *trace, const struct pfw_writer_options *options)
{
    int fd = open(trace->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    struct error err = {0};
    if (pfw_writer_open(fd, trace->path, options, &trace->writer, &err) < 0)
        fail_msg("%s", err.text);
}

void trace_cleanup(struct trace *trace)
{
    sysio_reset();
    (void)pfw_writer_close(trace->writer, TRACE_DEADLINE_MS, NULL, NULL); /* a test that cares has closed it */
    scratch_cleanup(&trace->scratch);
}

void trace_append(struct trace *trace)
{
    char line[64];
    int length = snprintf(line, sizeof line, "{\"i\":%llu}\n", (unsigned long long)trace->next++);
    pfw_writer_append(trace->writer, line, (size_t)length, 1);
}

void trace_append_noise(struct trace *trace, size_t events)
{
    struct random random = {.state = trace->next};
    CLEANUP(buf_cleanup) struct buf lines;
    buf_init(&lines, TRACE_TEXT_MAX_BYTES);
    for (size_t i = 0; i < events; i++) {
        buf_printf(&lines, "{\"i\":%llu,\"noise\":\"", (unsigned long long)trace->next++);
        for (int k = 0; k < 6; k++)
            buf_printf(&lines, "%016llx", (unsigned long long)random_u64(&random));
        buf_text(&lines, "\"}\n");
    }
    pfw_writer_append(trace->writer, lines.data, lines.length, events);
}

void trace_drain(struct trace *trace)
{
    struct error err = {0};
    if (pfw_writer_drain(trace->writer, TRACE_DEADLINE_MS, &err) < 0)
        fail_msg("%s", err.text);
}

int trace_try_drain(struct trace *trace)
{
    return pfw_writer_drain(trace->writer, TRACE_DEADLINE_MS, NULL);
}

struct pfw_writer_status trace_close(struct trace *trace)
{
    struct pfw_writer_status status;
    struct error err = {0};
    if (pfw_writer_close(TAKE(trace->writer), TRACE_DEADLINE_MS, &status, &err) < 0)
        fail_msg("%s", err.text);
    return status;
}

/* Reads a line `{"<key>":<number>`; false when it has another key. */
static bool has_key(struct cursor line, const char *key, uint64_t *out_number)
{
    return cursor_accept_text(&line, "{\"") && cursor_accept_text(&line, key) && cursor_accept_text(&line, "\":") &&
           cursor_u64(&line, out_number);
}

struct content trace_read(const char *path)
{
    CLEANUP(buf_cleanup) struct buf bytes;
    buf_init(&bytes, TRACE_TEXT_MAX_BYTES);
    members_read_file(path, &bytes);
    struct members members;
    assert_true(members_read(&members, bytes.data, bytes.length));
    struct content content = {0};
    struct cursor cursor = cursor_of(members.text.data, members.text.length);
    struct cursor line;
    bool has_first = false;
    while (cursor_line(&cursor, &line)) {
        uint64_t number = 0;
        content.lines++;
        if (has_key(line, "dropped", &number)) {
            content.missing += number;
            content.next += number;
            content.gaps++;
            has_first = true;
        } else if (has_key(line, "new", &number)) {
            content.openings++;
        } else {
            assert_true(has_key(line, "i", &number));
            if (!has_first)
                content.first = content.next = number;
            has_first = true;
            assert_int_equal(number, content.next);
            content.next++;
        }
    }
    members_fini(&members);
    return content;
}

void trace_sleep(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 2 * CLOCK_NS_PER_MS}, NULL); /* a shorter one does no harm */
}

int64_t trace_deadline_mono_ns(void)
{
    return clock_mono_ns() + TRACE_DEADLINE_MS * CLOCK_NS_PER_MS;
}

void trace_wait_written(struct trace *trace, uint64_t events)
{
    int64_t deadline_ns = trace_deadline_mono_ns();
    while (pfw_writer_status(trace->writer).events_written < events) {
        assert_true(clock_mono_ns() < deadline_ns);
        trace_sleep();
    }
}

size_t trace_threads(void)
{
    CLEANUP(dir_cleanup) DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    size_t count = 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        count += entry->d_name[0] != '.';
    return count;
}

void trace_wait_for_threads(size_t count)
{
    int64_t deadline_ns = trace_deadline_mono_ns();
    while (trace_threads() != count) {
        assert_true(clock_mono_ns() < deadline_ns);
        trace_sleep();
    }
}
