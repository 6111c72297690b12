/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/recorder.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/scratch.h"
#include "util/file.h"

enum { TEXT_MAX_BYTES = 1 << 20, CLOSE_MS = 20000, VARIABLES_MAX = 3 };

/* A service's settings and names, with a plain trace, which a test can read without unpacking. */
struct place {
    struct scratch scratch;
    struct paths paths;
    struct options options;
    struct buf notes;
    char variables[VARIABLES_MAX][PATH_MAX + 32];
    char *environment[VARIABLES_MAX + 1];
};

static void place_init(struct place *place, const char *variable)
{
    place->scratch = scratch_new();
    char prefix[PATH_MAX];
    (void)snprintf(place->variables[0], sizeof place->variables[0], "DFTRACER_LOG_FILE=%s",
                   scratch_path(&place->scratch, "out", prefix));
    (void)snprintf(place->variables[1], sizeof place->variables[1], "DFTRACER_TRACE_COMPRESSION=0");
    (void)snprintf(place->variables[2], sizeof place->variables[2], "%s", variable);
    for (size_t i = 0; i < 3; i++)
        place->environment[i] = place->variables[i];
    place->environment[3] = NULL;
    buf_init(&place->notes, TEXT_MAX_BYTES);
    assert_int_equal(options_load(&place->options, place->environment, &place->notes, NULL), 0);
    assert_int_equal(paths_init(&place->paths, place->scratch.path, true, NULL), 0);
}

static void place_cleanup(struct place *place)
{
    options_fini(&place->options);
    paths_fini(&place->paths);
    buf_fini(&place->notes);
    scratch_cleanup(&place->scratch);
}

static struct recorder *open_recorder(struct place *place)
{
    struct recorder *recorder = NULL;
    struct error err = {0};
    if (recorder_open(&place->options, &place->paths, &place->notes, &recorder, &err) != 0)
        fail_msg("%s", err.text);
    return recorder;
}

/* Closes the recorder and reads what it has written. */
static struct pfw_writer_status close_recorder(struct recorder *recorder, struct buf *out_text)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s", recorder_path(recorder));
    CLEANUP(buf_cleanup) struct buf used;
    buf_init(&used, TEXT_MAX_BYTES);
    buf_text(&used, "{\"x\":1}");
    struct pfw_writer_status status;
    assert_int_equal(recorder_close(recorder, &used, CLOSE_MS, &status, NULL), 0);
    assert_int_equal(file_read(AT_FDCWD, path, out_text, NULL), 0);
    (void)buf_string(out_text);
    return status;
}

static size_t count_lines(const struct buf *text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text->length; i++)
        lines += text->data[i] == '\n';
    return lines;
}

static void trace_begins_with_start_and_host_and_ends_with_its_count(void **state)
{
    (void)state;
    CLEANUP(place_cleanup) struct place place;
    place_init(&place, "X=1");
    struct recorder *recorder = open_recorder(&place);
    static const char lines[] = "{\"name\":\"a\"}\n{\"name\":\"b\"}\n";
    recorder_append(recorder, lines, sizeof lines - 1, 2);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    struct pfw_writer_status status = close_recorder(recorder, &text);
    assert_int_equal(status.events_written, count_lines(&text));
    assert_int_equal(strncmp(text.data, "{\"id\":0,\"name\":\"start\"", 22), 0);
    assert_non_null(strstr(text.data, "\"name\":\"HH\""));
    char end[128];
    (void)snprintf(end, sizeof end, "{\"id\":%zu,\"name\":\"end\"", count_lines(&text));
    assert_non_null(strstr(text.data, end));
    (void)snprintf(end, sizeof end, "\"num_events\":%zu,\"dropped\":0,\"cfg\":{", count_lines(&text));
    assert_non_null(strstr(text.data, end));
    assert_non_null(strstr(text.data, "\"used\":{\"x\":1}}}"));
    assert_non_null(strstr(text.data, place.scratch.path));
}

static void without_metadata_the_trace_is_bare(void **state)
{
    (void)state;
    CLEANUP(place_cleanup) struct place place;
    place_init(&place, "DFTRACER_INC_METADATA=0");
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    (void)close_recorder(open_recorder(&place), &text);
    assert_int_equal(count_lines(&text), 3);
    assert_null(strstr(text.data, "cfg"));
    assert_null(strstr(text.data, "\"PR\""));
}

static void step_of_the_wall_clock_is_one_event(void **state)
{
    (void)state;
    CLEANUP(place_cleanup) struct place place;
    place_init(&place, "X=1");
    struct recorder *recorder = open_recorder(&place);
    int64_t boot_ns = recorder_stamper(recorder)->start_boot_ns;
    int64_t wall_ns = recorder_stamper(recorder)->start_wall_ns;
    assert_int_equal(recorder_watch_clock(recorder, wall_ns, boot_ns), 0);
    assert_int_equal(recorder_watch_clock(recorder, wall_ns - 5 * CLOCK_NS_PER_SECOND, boot_ns),
                     -5 * CLOCK_NS_PER_SECOND);
    assert_int_equal(recorder_watch_clock(recorder, wall_ns - 5 * CLOCK_NS_PER_SECOND, boot_ns), 0);
    assert_int_equal(recorder_ts(recorder, boot_ns + 7000), (wall_ns + 7000) / 1000);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    (void)close_recorder(recorder, &text);
    const char *step = strstr(text.data, "\"name\":\"clock_step\"");
    assert_non_null(step);
    assert_non_null(strstr(step, "\"offset_us\":-5000000"));
    assert_null(strstr(step + 1, "\"name\":\"clock_step\""));
}

static void removed_trace_is_begun_anew_with_its_first_lines(void **state)
{
    (void)state;
    CLEANUP(place_cleanup) struct place place;
    place_init(&place, "DFTRACER_FLUSH_INTERVAL_MS=10");
    struct recorder *recorder = open_recorder(&place);
    const char *path = recorder_path(recorder);
    assert_int_equal(unlink(path), 0);
    struct stat status;
    int64_t deadline_ns = clock_mono_ns() + CLOSE_MS * CLOCK_NS_PER_MS;
    while (stat(path, &status) < 0) {
        assert_true(clock_mono_ns() < deadline_ns);
        recorder_append(recorder, "{\"name\":\"a\"}\n", 13, 1);
        recorder_flush(recorder);
        (void)usleep(1000);
    }
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    struct pfw_writer_status end = close_recorder(recorder, &text);
    assert_int_equal(strncmp(text.data, "{\"id\":0,\"name\":\"start\"", 22), 0);
    assert_non_null(strstr(text.data, "\"name\":\"HH\""));
    assert_int_equal(end.events_written, count_lines(&text));
}

static void discarded_trace_is_gone(void **state)
{
    (void)state;
    CLEANUP(place_cleanup) struct place place;
    place_init(&place, "X=1");
    recorder_discard(NULL);
    recorder_discard(open_recorder(&place));
    assert_int_equal(scratch_entries(&place.scratch), 0);
}

static void without_memory_nothing_is_begun(void **state)
{
    (void)state;
    CLEANUP(place_cleanup) struct place place;
    place_init(&place, "X=1");
    for (size_t n = 0;; n++) {
        struct recorder *recorder = NULL;
        allocation_fail_at(n);
        int rc = recorder_open(&place.options, &place.paths, &place.notes, &recorder, NULL);
        bool has_failed = allocation_stop();
        recorder_discard(recorder);
        assert_true(rc == 0 || has_failed);
        assert_int_equal(scratch_entries(&place.scratch), 0);
        if (!has_failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trace_begins_with_start_and_host_and_ends_with_its_count),
        cmocka_unit_test(without_metadata_the_trace_is_bare),
        cmocka_unit_test(step_of_the_wall_clock_is_one_event),
        cmocka_unit_test(removed_trace_is_begun_anew_with_its_first_lines),
        cmocka_unit_test(discarded_trace_is_gone),
        cmocka_unit_test(without_memory_nothing_is_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
