/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/state.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proxy/contributor.h"
#include "support/allocation.h"
#include "support/scratch.h"

enum { STATE_NOW_NS = 5000, STATE_COUNT = 7, STATE_FILE_MAX_BYTES = 1 << 16 };

static const uint8_t state_id[SEGMENT_ID_BYTES] = {1, 2, 3};

/* A proxy's parts, on one directory. */
struct place {
    struct jobs *jobs;
    struct segments *segments;
    struct state *state;
};

static struct place place_new(const struct scratch *scratch)
{
    struct place place = {0};
    struct error err = {0};
    const struct jobs_config config = {.hostname = "host",
                                       .uid = 1,
                                       .jobs_max = 10,
                                       .metrics_per_job_max = 100,
                                       .metrics_max = 1000,
                                       .linger_ns = 100};
    assert_int_equal(jobs_new(&config, &place.jobs, &err), 0);
    assert_int_equal(segments_new(place.jobs, scratch->path, (uint32_t)geteuid(), &place.segments, &err), 0);
    assert_int_equal(state_open(scratch->path, "host", &place.state, &err), 0);
    return place;
}

static void place_end(struct place *place)
{
    state_close(place->state);
    segments_free(place->segments);
    jobs_free(place->jobs);
}

static double shown(const struct place *place, size_t index, const char *name)
{
    if (index >= jobs_count(place->jobs))
        return -1;
    const struct metric *metric = registry_find(job_registry(jobs_at(place->jobs, index)), name, strlen(name));
    return metric != NULL ? metric_shown(&metric->value) : -1;
}

/* Job "42" of user 9 counts `key`; it ends, and is in the bases. */
static void count(struct place *place, double times)
{
    struct error err = {0};
    struct metric_job description;
    uint32_t slot;
    struct contributor *contributor = contributor_new(place->jobs, &(struct contributor_config){.uid = 9});
    assert_non_null(contributor);
    assert_int_equal(metric_job_init(&description, "42", &err), 0);
    assert_int_equal(contributor_join(contributor, &description, 0, 1000, &err), 0);
    metric_job_fini(&description);
    assert_int_equal(contributor_declare(contributor, "key", 3, "words", METRIC_COUNTER, &slot, &err), 0);
    struct metric_value value = metric_counter(times, 1);
    contributor_set(contributor, slot, &value);
    contributor_end(contributor, STATE_NOW_NS, 2000);
    jobs_begin(place->jobs);
    jobs_end(place->jobs);
}

static void write_state(struct place *place)
{
    struct error err = {0};
    if (state_write(place->state, place->jobs, place->segments, &err) != 0)
        fail_msg("%s", err.text);
}

static void load_state(struct place *place)
{
    struct error err = {0};
    assert_int_equal(state_load(place->state, place->jobs, place->segments, STATE_NOW_NS, &err), 0);
    jobs_begin(place->jobs);
    jobs_end(place->jobs);
}

static void a_successor_has_what_was_counted(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    struct error err = {0};
    struct place before = place_new(&scratch);
    count(&before, STATE_COUNT);
    assert_int_equal(segments_restore_folded(before.segments, state_id, &err), 0);
    write_state(&before);
    place_end(&before);

    struct place after = place_new(&scratch);
    load_state(&after);
    assert_int_equal(jobs_count(after.jobs), 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(shown(&after, i, "key") == STATE_COUNT);
    const struct job *job = jobs_at(after.jobs, 2);
    assert_string_equal(job_key(job), "42+uid9");
    assert_int_equal(job_uid(job), 9);
    assert_int_equal(job_description(job)->start_wall_ms, 1000);
    assert_int_equal(job_description(job)->end_wall_ms, 2000);
    assert_string_equal(registry_at(job_registry(job), 0)->doc, "words");
    assert_int_equal(segments_folded_count(after.segments), 1);
    assert_memory_equal(segments_folded_at(after.segments, 0), state_id, SEGMENT_ID_BYTES);
    assert_ptr_equal(jobs_expired(after.jobs, NULL, STATE_NOW_NS + 100), job); /* nobody came back */
    assert_null(jobs_expired(after.jobs, NULL, STATE_NOW_NS + 99));
    place_end(&after);
}

static void a_file_that_was_cut_anywhere_leaves_the_generation_before(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    struct place before = place_new(&scratch);
    count(&before, 1);
    write_state(&before); /* generation 1 */
    count(&before, 1);
    write_state(&before); /* generation 2: file 0 */
    place_end(&before);
    static char whole[STATE_FILE_MAX_BYTES];
    CLEANUP(fd_cleanup) int fd = open(scratch_path(&scratch, "proxy-host.state.0", path), O_RDONLY | O_CLOEXEC);
    ssize_t bytes = read(fd, whole, sizeof whole);
    assert_in_range(bytes, 1, sizeof whole - 1);

    for (ssize_t cut = 0; cut <= bytes; cut++) {
        scratch_write(&scratch, "proxy-host.state.0", whole, (size_t)cut);
        struct place after = place_new(&scratch);
        load_state(&after);
        double expected = cut < bytes ? 1 : 2;
        if (shown(&after, 0, "key") != expected)
            fail_msg("cut to %zd of %zd bytes: %g", cut, bytes, shown(&after, 0, "key"));
        place_end(&after);
    }
    for (ssize_t at = 0; at < bytes; at++) {
        whole[at] = (char)(whole[at] ^ 0x55);
        scratch_write(&scratch, "proxy-host.state.0", whole, (size_t)bytes);
        whole[at] = (char)(whole[at] ^ 0x55);
        struct place after = place_new(&scratch);
        load_state(&after);
        bool is_generation = at >= 8 && at < 16; /* which is not in the check sum */
        if (!is_generation && shown(&after, 0, "key") != 1)
            fail_msg("byte %zd changed: %g", at, shown(&after, 0, "key"));
        place_end(&after);
    }
}

static void a_second_proxy_is_refused_while_the_first_lives(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    struct place first = place_new(&scratch);
    struct error err = {0};
    struct state *second = NULL;
    assert_int_equal(state_open(scratch.path, "host", &second, &err), -EADDRINUSE);
    assert_null(second);
    assert_non_null(strstr(err.text, "runs on this node already"));
    assert_int_equal(state_open(scratch.path, "other-host", &second, &err), 0);
    state_close(second);
    place_end(&first);
    assert_int_equal(state_open(scratch.path, "host", &second, &err), 0);
    state_close(second);
}

static void without_memory_it_says_so_and_leaks_nothing(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    struct place before = place_new(&scratch);
    count(&before, STATE_COUNT);
    write_state(&before);
    for (size_t n = 0;; n++) {
        struct error err = {0};
        allocation_fail_at(n);
        int rc = state_write(before.state, before.jobs, before.segments, &err);
        if (!allocation_stop())
            break;
        assert_true(rc == 0 || rc == -ENOMEM); /* 0: only the words about a job are missing */
    }
    write_state(&before);
    place_end(&before);
    for (size_t n = 0;; n++) {
        struct place after = place_new(&scratch);
        struct error err = {0};
        allocation_fail_at(n);
        int rc = state_load(after.state, after.jobs, after.segments, STATE_NOW_NS, &err);
        bool has_failed = allocation_stop();
        jobs_begin(after.jobs);
        jobs_end(after.jobs);
        bool is_whole = shown(&after, 0, "key") == STATE_COUNT;
        place_end(&after);
        if (!has_failed) {
            assert_int_equal(rc, 0);
            assert_true(is_whole);
            break;
        }
        assert_true(rc == -ENOMEM || (rc == 0 && is_whole));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_successor_has_what_was_counted),
        cmocka_unit_test(a_file_that_was_cut_anywhere_leaves_the_generation_before),
        cmocka_unit_test(a_second_proxy_is_refused_while_the_first_lives),
        cmocka_unit_test(without_memory_it_says_so_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
