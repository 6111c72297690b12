/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/child.h"
#include "support/random.h"
#include "support/scratch.h"
#include "util/cleanup.h"
#include "util/file.h"

enum { TICKS = 64, POINTS_MAX = 8 * TICKS, TEXT_MAX_BYTES = 1 << 20, DISK_EPOCHS_MAX = 10000 };

#define START_US INT64_C(1700000000000000)

/* What a read gave. */
struct points {
    struct trace_point list[POINTS_MAX];
    size_t count;
};

static void on_point(void *context, const struct trace_point *point)
{
    struct points *points = context;
    if (points->count < POINTS_MAX)
        points->list[points->count] = *point;
    points->count++;
}

static struct trace *opened(const char *path)
{
    struct trace *trace = NULL;
    struct error err = {0};
    if (trace_open(path, &trace, &err) < 0)
        fail_msg("%s", err.text);
    return trace;
}

/* Epoch `number`: a counter that is its tick's number, and a gauge that is absent at odd ticks. */
static int append(struct trace *trace, size_t number, struct error *err)
{
    int64_t wall_us[TICKS];
    int32_t missing[2][TICKS];
    double columns[2][CHUNK_COLUMNS_MAX][TICKS];
    struct trace_metric metrics[2] = {{.name = "c"}, {.name = "g"}};
    for (size_t m = 0; m < 2; m++) {
        metrics[m].chunk = (struct chunk){.kind = m == 0 ? METRIC_COUNTER : METRIC_GAUGE, .ticks = TICKS};
        metrics[m].chunk.missing = missing[m];
        for (size_t column = 0; column < CHUNK_COLUMNS_MAX; column++)
            metrics[m].chunk.columns[column] = columns[m][column];
    }
    for (size_t i = 0; i < TICKS; i++) {
        size_t tick = number * TICKS + i;
        wall_us[i] = START_US + (int64_t)tick * 1000000;
        missing[0][i] = (int32_t)(tick % 3);
        missing[1][i] = tick % 2 == 1 ? CHUNK_ABSENT : 0;
        for (size_t column = 0; column < CHUNK_COLUMNS_MAX; column++) {
            columns[0][column][i] = (double)tick;
            columns[1][column][i] = (double)column + (double)tick / 10;
        }
    }
    return trace_append(trace, wall_us, TICKS, metrics, 2, err);
}

static void read_all(struct trace *trace, const char *name, enum metric_kind kind, struct points *points)
{
    const struct trace_query query = {.name = name, .kind = kind, .from_wall_us = INT64_MIN, .to_wall_us = INT64_MAX};
    points->count = 0;
    struct error err = {0};
    if (trace_read(trace, &query, on_point, points, &err) < 0)
        fail_msg("%s", err.text);
}

/* Is all there that append() gave for epochs 0 to `epochs` - 1, and no more? */
static void assert_epochs(struct trace *trace, size_t epochs)
{
    static struct points points;
    read_all(trace, "c", METRIC_COUNTER, &points);
    assert_int_equal(points.count, epochs * TICKS);
    for (size_t i = 0; i < points.count && i < POINTS_MAX; i++) {
        assert_int_equal(points.list[i].wall_us, START_US + (int64_t)i * 1000000);
        assert_int_equal(points.list[i].missing, i % 3);
        assert_true(points.list[i].values[0] == (double)i);
    }
    read_all(trace, "g", METRIC_GAUGE, &points);
    assert_int_equal(points.count, epochs * TICKS);
    for (size_t i = 0; i < points.count && i < POINTS_MAX; i++) {
        assert_int_equal(points.list[i].missing, i % 2 == 1 ? CHUNK_ABSENT : 0);
        for (size_t column = 0; column < CHUNK_COLUMNS_MAX; column++)
            assert_true(points.list[i].values[column] == (i % 2 == 1 ? 0 : (double)column + (double)i / 10));
    }
}

static void every_tick_comes_back_after_closing(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    (void)scratch_path(&scratch, "job.trace", path);
    struct trace *trace = opened(path);
    int64_t last_us = 0;
    assert_int_equal(trace_last(trace, &last_us, NULL), 0);
    assert_true(last_us == INT64_MIN);
    assert_epochs(trace, 0);
    assert_int_equal(trace_describe(trace, "{}", NULL), 0);
    assert_int_equal(trace_describe(trace, "{\"jobid\":\"1\"}", NULL), 0);
    assert_int_equal(append(trace, 0, NULL), 0);
    trace_close(trace);
    trace = opened(path);
    assert_int_equal(append(trace, 1, NULL), 0);
    assert_epochs(trace, 2);
    assert_int_equal(trace_last(trace, &last_us, NULL), 0);
    assert_true(last_us == START_US + INT64_C(1000000) * (2 * TICKS - 1));
    trace_close(trace);
    assert_int_equal(scratch_entries(&scratch), 1); /* one file, to be copied as it is */
}

static void an_epoch_that_is_there_is_not_doubled(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    struct trace *trace = opened(scratch_path(&scratch, "job.trace", path));
    assert_int_equal(append(trace, 0, NULL), 0);
    assert_int_equal(append(trace, 1, NULL), 0);
    assert_int_equal(append(trace, 1, NULL), -EEXIST);
    assert_int_equal(append(trace, 0, NULL), -EEXIST);
    assert_epochs(trace, 2);
    assert_int_equal(append(trace, 2, NULL), 0);
    assert_epochs(trace, 3);
    trace_close(trace);
}

static void a_refused_epoch_leaves_nothing(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    struct trace *trace = opened(scratch_path(&scratch, "job.trace", path));
    const int64_t rising[2] = {1, 2};
    const int64_t falling[2] = {2, 2};
    int32_t missing[2] = {0};
    double values[2] = {5, 6};
    struct chunk chunk = {.kind = METRIC_COUNTER, .ticks = 2, .missing = missing, .columns = {values}};
    const struct trace_metric twice[2] = {{.name = "a", .chunk = chunk}, {.name = "a", .chunk = chunk}};
    assert_int_equal(trace_append(trace, falling, 2, twice, 1, NULL), -EINVAL);
    assert_int_equal(trace_append(trace, rising, 0, twice, 1, NULL), -EINVAL);
    assert_int_equal(trace_append(trace, rising, 1, twice, 1, NULL), -EINVAL);
    assert_int_equal(trace_append(trace, rising, 2, twice, 2, NULL), -EINVAL);
    static struct points points;
    read_all(trace, "a", METRIC_COUNTER, &points);
    assert_int_equal(points.count, 0);
    assert_int_equal(trace_append(trace, rising, 2, twice, 1, NULL), 0);
    read_all(trace, "a", METRIC_COUNTER, &points);
    assert_int_equal(points.count, 2);
    trace_close(trace);
}

static void a_metric_that_changes_kind_is_two(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    struct trace *trace = opened(scratch_path(&scratch, "job.trace", path));
    int32_t missing = 0;
    double values = 7;
    struct trace_metric metric = {.name = "x'\"\xff", .chunk = {.ticks = 1, .missing = &missing}};
    for (size_t i = 0; i < CHUNK_COLUMNS_MAX; i++)
        metric.chunk.columns[i] = &values;
    for (int64_t tick = 1; tick <= 4; tick++) {
        metric.chunk.kind = tick < 4 ? METRIC_COUNTER : METRIC_GAUGE;
        assert_int_equal(trace_append(trace, &tick, 1, &metric, 1, NULL), 0);
    }
    static struct points points;
    read_all(trace, metric.name, METRIC_COUNTER, &points);
    assert_int_equal(points.count, 3);
    read_all(trace, metric.name, METRIC_GAUGE, &points);
    assert_int_equal(points.count, 1);
    assert_true(points.list[0].wall_us == 4);
    trace_close(trace);
}

static void on_metric(void *context, const char *name, enum metric_kind kind)
{
    buf_printf(context, "%s:%s ", name, kind == METRIC_GAUGE ? "gauge" : "counter");
}

static void metrics_and_description_can_be_asked_for(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    struct trace *trace = opened(scratch_path(&scratch, "job.trace", path));
    assert_int_equal(trace_description(trace, &text, NULL), 0);
    assert_int_equal(trace_metrics(trace, on_metric, &text, NULL), 0);
    assert_int_equal(text.length, 0);
    assert_int_equal(trace_describe(trace, "{\"a\":1}", NULL), 0);
    assert_int_equal(trace_describe(trace, "{\"a\":2}", NULL), 0);
    assert_int_equal(append(trace, 0, NULL), 0);
    assert_int_equal(trace_description(trace, &text, NULL), 0);
    assert_int_equal(trace_metrics(trace, on_metric, &text, NULL), 0);
    assert_string_equal(buf_string(&text), "{\"a\":2}c:counter g:gauge ");
    trace_close(trace);
}

static void a_bad_file_goes_aside_with_its_journal(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    char other[PATH_MAX];
    CLEANUP(buf_cleanup) struct buf named;
    buf_init(&named, TEXT_MAX_BYTES);
    scratch_write(&scratch, "j.trace", "bad", 3);
    scratch_write(&scratch, "j.trace-journal", "bad", 3);
    (void)scratch_path(&scratch, "j.trace", path);
    assert_int_equal(trace_set_aside(path, &named, NULL), 0);
    assert_string_equal(buf_string(&named), scratch_path(&scratch, "j.trace.broken", other));
    assert_int_equal(access(scratch_path(&scratch, "j.trace.broken-journal", other), F_OK), 0);
    assert_int_equal(scratch_entries(&scratch), 2);
    assert_int_equal(mkdir(path, 0700), 0);
    buf_reset(&named);
    assert_int_equal(trace_set_aside(path, &named, NULL), 0);
    assert_string_equal(buf_string(&named), scratch_path(&scratch, "j.trace.broken.2", other));
    trace_close(opened(path));
    assert_int_equal(scratch_entries(&scratch), 4);
}

static void a_range_has_its_ends_and_no_more(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    struct trace *trace = opened(scratch_path(&scratch, "job.trace", path));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(append(trace, i, NULL), 0);
    struct trace_query query = {.name = "c", .kind = METRIC_COUNTER};
    query.from_wall_us = START_US + INT64_C(1000000) * (TICKS - 2);
    query.to_wall_us = START_US + INT64_C(1000000) * (TICKS + 1);
    static struct points points;
    points.count = 0;
    assert_int_equal(trace_read(trace, &query, on_point, &points, NULL), 0);
    assert_int_equal(points.count, 4);
    assert_true(points.list[0].wall_us == query.from_wall_us && points.list[3].wall_us == query.to_wall_us);
    trace_close(trace);
}

static void what_is_no_trace_is_refused_and_kept(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    char before[5000];
    memset(before, 'x', sizeof before);
    scratch_write(&scratch, "foreign", before, sizeof before);
    assert_int_equal(mkdir(scratch_path(&scratch, "directory", path), 0700), 0);
    struct trace *trace = NULL;
    struct error err = {0};
    assert_int_equal(trace_open(path, &trace, &err), -EBADMSG);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(trace_open(scratch_path(&scratch, "foreign", path), &trace, &err), -EBADMSG);
    assert_int_equal(trace_open(scratch_path(&scratch, "none/job", path), &trace, &err), -ENOENT);
    assert_null(trace);
    CLEANUP(buf_cleanup) struct buf after;
    buf_init(&after, TEXT_MAX_BYTES);
    assert_int_equal(file_read(AT_FDCWD, scratch_path(&scratch, "foreign", path), &after, NULL), 0);
    assert_int_equal(after.length, sizeof before);
    assert_memory_equal(after.data, before, sizeof before);
    scratch_write(&scratch, "empty", "", 0);
    trace = opened(scratch_path(&scratch, "empty", path));
    assert_epochs(trace, 0);
    trace_close(trace);
}

/* Opens and reads whatever is there: it may be refused, it may not crash. */
static void read_damaged(const char *path)
{
    CLEANUP(trace_cleanup) struct trace *trace = NULL;
    if (trace_open(path, &trace, NULL) < 0)
        return;
    static struct points points;
    points.count = 0;
    const struct trace_query query = {
        .name = "g", .kind = METRIC_GAUGE, .from_wall_us = INT64_MIN, .to_wall_us = INT64_MAX};
    int rc = trace_read(trace, &query, on_point, &points, NULL);
    assert_true(rc == 0 || rc == -EBADMSG || rc == -EIO);
}

static void a_damaged_file_never_crashes_its_reader(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    struct trace *trace = opened(scratch_path(&scratch, "job.trace", path));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(append(trace, i, NULL), 0);
    trace_close(trace);
    CLEANUP(buf_cleanup) struct buf whole;
    buf_init(&whole, TEXT_MAX_BYTES);
    assert_int_equal(file_read(AT_FDCWD, path, &whole, NULL), 0);
    for (size_t turn = 0; turn < 100; turn++) {
        CLEANUP(buf_cleanup) struct buf damaged;
        buf_init(&damaged, TEXT_MAX_BYTES);
        buf_bytes(&damaged, whole.data, turn % 2 == 0 ? whole.length : 1 + random_below(&random, whole.length));
        for (size_t i = 0; turn % 2 == 0 && i < 20; i++)
            damaged.data[random_below(&random, damaged.length)] = (char)random_u64(&random);
        scratch_write(&scratch, "damaged", damaged.data, damaged.length);
        read_damaged(scratch_path(&scratch, "damaged", path));
    }
}

/* Appends epochs until it is killed, and tells of each that has been taken. */
static void append_until_killed(const char *path, int told_fd)
{
    struct trace *trace = NULL;
    if (trace_open(path, &trace, NULL) < 0)
        _exit(1);
    for (size_t i = 0; i < 8; i++)
        if (append(trace, i, NULL) < 0 || write(told_fd, "x", 1) != 1)
            _exit(1);
    (void)pause();
    _exit(1);
}

static void a_kill_leaves_whole_epochs(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (size_t turn = 0; turn < 20; turn++) {
        CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
        char path[PATH_MAX];
        (void)scratch_path(&scratch, "job.trace", path);
        int told[2];
        assert_int_equal(pipe2(told, O_CLOEXEC), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            append_until_killed(path, told[1]);
        (void)close(told[1]);
        size_t known = random_below(&random, 7);
        char byte;
        for (size_t i = 0; i < known; i++)
            assert_int_equal(read(told[0], &byte, 1), 1);
        /* Spread over the epoch that is being written: where in it the kill strikes is chance, and each is fine. */
        (void)usleep((useconds_t)random_below(&random, 20000));
        assert_int_equal(kill(child, SIGKILL), 0);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        while (read(told[0], &byte, 1) == 1)
            known++;
        (void)close(told[0]);

        struct trace *trace = opened(path);
        static struct points points;
        read_all(trace, "c", METRIC_COUNTER, &points);
        size_t epochs = points.count / TICKS;
        assert_true(epochs == known || epochs == known + 1);
        assert_epochs(trace, epochs);
        assert_int_equal(append(trace, epochs, NULL), 0);
        trace_close(trace);
    }
}

/* Fills a small file system, makes room, and goes on. */
static int fill_the_disk(void *context)
{
    const struct scratch *scratch = context;
    char path[PATH_MAX];
    char ballast[PATH_MAX];
    if (!child_enter_mounts() || !child_mount_tmpfs(scratch->path, "256k"))
        return CHILD_SKIP;
    static const char zeros[160 * 1024];
    scratch_write(scratch, "ballast", zeros, sizeof zeros);
    struct trace *trace = NULL;
    CHILD_CHECK(trace_open(scratch_path(scratch, "job.trace", path), &trace, NULL) == 0);
    size_t epochs = 0;
    int rc = 0;
    for (; epochs < DISK_EPOCHS_MAX; epochs++) {
        rc = append(trace, epochs, NULL);
        if (rc < 0)
            break;
    }
    CHILD_CHECK(epochs > 0);
    CHILD_CHECK(rc == -ENOSPC);
    CHILD_CHECK(append(trace, epochs, NULL) == -ENOSPC);
    CHILD_CHECK(unlink(scratch_path(scratch, "ballast", ballast)) == 0);
    CHILD_CHECK(append(trace, epochs, NULL) == 0);
    static struct points points;
    const struct trace_query query = {
        .name = "c", .kind = METRIC_COUNTER, .from_wall_us = INT64_MIN, .to_wall_us = INT64_MAX};
    CHILD_CHECK(trace_read(trace, &query, on_point, &points, NULL) == 0);
    CHILD_CHECK(points.count == (epochs + 1) * TICKS);
    trace_close(trace);
    return 0;
}

static void a_full_disk_refuses_an_epoch_and_takes_it_later(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    child_run(fill_the_disk, &scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tick_comes_back_after_closing),
        cmocka_unit_test(an_epoch_that_is_there_is_not_doubled),
        cmocka_unit_test(a_refused_epoch_leaves_nothing),
        cmocka_unit_test(a_metric_that_changes_kind_is_two),
        cmocka_unit_test(metrics_and_description_can_be_asked_for),
        cmocka_unit_test(a_bad_file_goes_aside_with_its_journal),
        cmocka_unit_test(a_range_has_its_ends_and_no_more),
        cmocka_unit_test(what_is_no_trace_is_refused_and_kept),
        cmocka_unit_test(a_damaged_file_never_crashes_its_reader),
        cmocka_unit_test(a_kill_leaves_whole_epochs),
        cmocka_unit_test(a_full_disk_refuses_an_epoch_and_takes_it_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
