/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/follower.h"

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

#include "support/scratch.h"
#include "util/clock.h"

enum { LINES_MAX_BYTES = 128 << 20, WAIT_MS = 20000 };

static const struct pfw_source source = {.host_hash = "0123456789abcdef", .pid = 17, .tid = 17};
static const struct omnistat_request request = {
    .source = &source, .time_column = "timestamp", .has_all_counters = true, .counters = "", .time = OPTIONS_TIME_US};

struct place {
    struct scratch scratch;
    char path[PATH_MAX];
    struct follower *follower;
    struct buf lines;
};

static int place_setup(void **state)
{
    static struct place place;
    place.scratch = scratch_new();
    (void)scratch_path(&place.scratch, "metrics.csv", place.path);
    buf_init(&place.lines, LINES_MAX_BYTES);
    struct omnistat *omnistat = NULL;
    assert_int_equal(omnistat_new(&request, &omnistat, NULL), 0);
    assert_int_equal(follower_open(place.path, omnistat, &place.follower, NULL), 0);
    *state = &place;
    return 0;
}

static int place_teardown(void **state)
{
    struct place *place = *state;
    follower_close(place->follower);
    buf_fini(&place->lines);
    scratch_cleanup(&place->scratch);
    return 0;
}

static void append(const struct place *place, const char *text)
{
    CLEANUP(fd_cleanup) int fd = open(place->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* All events up to the end of the file as it is now. */
static uint64_t drain(struct place *place)
{
    int64_t deadline_ns = clock_mono_ns() + WAIT_MS * CLOCK_NS_PER_MS;
    uint64_t events = 0;
    bool has_more = true;
    while (has_more)
        events += follower_drain(place->follower, deadline_ns, &place->lines, &has_more);
    assert_true(clock_mono_ns() < deadline_ns);
    return events;
}

static void lines_are_taken_as_they_come_and_only_whole_ones(void **state)
{
    struct place *place = *state;
    assert_int_equal(drain(place), 0); /* no file yet */
    append(place, "timestamp,a\n1,10\n2,2");
    assert_int_equal(drain(place), 1);
    append(place, "0\n3,30\n");
    assert_int_equal(drain(place), 2);
    assert_int_equal(drain(place), 0);
    assert_non_null(strstr(buf_string(&place->lines), "\"value\":20,"));
}

static void taking_never_waits_and_gets_all_of_it_in_the_end(void **state)
{
    struct place *place = *state;
    append(place, "timestamp,a\n1,10\n2,20\n");
    int64_t deadline_ns = clock_mono_ns() + WAIT_MS * CLOCK_NS_PER_MS;
    uint64_t events = 0;
    while (events < 2) {
        events += follower_take(place->follower, &place->lines);
        assert_true(clock_mono_ns() < deadline_ns);
    }
    assert_int_equal(events, 2);
}

static void file_that_is_replaced_or_cut_is_read_anew(void **state)
{
    struct place *place = *state;
    append(place, "timestamp,a\n1,10\n2,20\n");
    assert_int_equal(drain(place), 2);
    assert_int_equal(truncate(place->path, 0), 0);
    append(place, "b,timestamp\n7,3\n");
    assert_int_equal(drain(place), 1);
    assert_int_equal(unlink(place->path), 0);
    assert_int_equal(drain(place), 0);
    append(place, "c,timestamp\n8,3\n9,4\n10,5\n");
    assert_int_equal(drain(place), 3);
}

static void header_without_sense_is_given_up_until_the_file_is_another(void **state)
{
    struct place *place = *state;
    append(place, "nothing,of,use\n1,2,3\n");
    assert_int_equal(drain(place), 0);
    append(place, "timestamp,a\n1,10\n");
    assert_int_equal(drain(place), 0);
    assert_int_equal(truncate(place->path, 0), 0);
    append(place, "timestamp,a\n1,10\n");
    assert_int_equal(drain(place), 1);
}

static void line_without_an_end_is_given_up(void **state)
{
    struct place *place = *state;
    append(place, "timestamp,a\n");
    CLEANUP(fd_cleanup) int fd = open(place->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    static char zeros[4096];
    memset(zeros, '0', sizeof zeros);
    for (int i = 0; i < 100; i++)
        assert_int_equal(write(fd, zeros, sizeof zeros), sizeof zeros);
    assert_int_equal(drain(place), 0);
}

static void pipes_and_directories_are_not_waited_for(void **state)
{
    struct place *place = *state;
    assert_int_equal(mkfifo(place->path, 0600), 0);
    assert_int_equal(drain(place), 0);
    assert_int_equal(unlink(place->path), 0);
    assert_int_equal(mkdir(place->path, 0700), 0);
    assert_int_equal(drain(place), 0);
}

static void large_file_comes_in_pieces_and_whole(void **state)
{
    struct place *place = *state;
    enum { ROWS = 100000 };
    FILE *file = fopen(place->path, "we");
    assert_non_null(file);
    assert_true(fputs("timestamp,a\n", file) >= 0);
    for (int i = 0; i < ROWS; i++)
        assert_true(fprintf(file, "%d,%d\n", i, i) > 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(drain(place), ROWS);
    size_t lines = 0;
    for (size_t i = 0; i < place->lines.length; i++)
        lines += place->lines.data[i] == '\n';
    assert_int_equal(lines, ROWS);
}

static void closing_nothing_is_fine(void **state)
{
    (void)state;
    follower_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_are_taken_as_they_come_and_only_whole_ones, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(taking_never_waits_and_gets_all_of_it_in_the_end, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(file_that_is_replaced_or_cut_is_read_anew, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(header_without_sense_is_given_up_until_the_file_is_another, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(line_without_an_end_is_given_up, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(pipes_and_directories_are_not_waited_for, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(large_file_comes_in_pieces_and_whole, place_setup, place_teardown),
        cmocka_unit_test(closing_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
