/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/profiles.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "proxy/contributor.h"
#include "support/allocation.h"
#include "support/scratch.h"

enum { PROFILES_TEXT_MAX_BYTES = 1 << 16 };

struct place {
    struct scratch scratch;
    struct jobs *jobs;
    struct profiles *profiles;
};

static void place_init(struct place *place)
{
    struct error err = {0};
    const struct jobs_config config = {
        .hostname = "host", .jobs_max = 10, .metrics_per_job_max = 100, .metrics_max = 1000, .linger_ns = 1};
    place->scratch = scratch_new();
    assert_int_equal(jobs_new(&config, &place->jobs, &err), 0);
    assert_int_equal(profiles_new(NULL, place->scratch.path, &place->profiles, &err), 0);
    profiles_load(place->profiles);
}

static void place_fini(struct place *place)
{
    profiles_free(place->profiles);
    jobs_free(place->jobs);
    scratch_cleanup(&place->scratch);
}

/* A job of one process that has started, and finished if it is `complete`; it has ended. */
static struct job *ended_job(struct place *place, const char *id, int64_t start_wall_ms, bool is_complete)
{
    static const char *const names[] = {"has_started", "has_finished"};
    struct error err = {0};
    struct metric_job description;
    struct contributor *contributor = contributor_new(place->jobs, &(struct contributor_config){.uid = 0});
    assert_int_equal(metric_job_init(&description, id, &err), 0);
    free(description.command);
    description.command = strdup("./app");
    description.size = 1;
    description.start_wall_ms = start_wall_ms;
    assert_int_equal(contributor_join(contributor, &description, 0, 1, &err), 0);
    metric_job_fini(&description);
    struct job *job = contributor_job(contributor);
    for (size_t i = 0; i < (is_complete ? 2 : 1); i++) {
        uint32_t slot;
        struct metric_value one = metric_counter(1, 1);
        assert_int_equal(contributor_declare(contributor, names[i], strlen(names[i]), "", METRIC_COUNTER, &slot, &err),
                         0);
        contributor_set(contributor, slot, &one);
    }
    contributor_end(contributor, 0, start_wall_ms + 10);
    jobs_begin(place->jobs);
    jobs_end(place->jobs);
    return job;
}

static void save(struct place *place, const struct job *job)
{
    struct error err = {0};
    if (profiles_save(place->profiles, job, NULL, NULL, &err) != 0)
        fail_msg("%s", err.text);
}

static size_t lines_of_samples(struct place *place)
{
    CLEANUP(buf_cleanup) struct buf name;
    CLEANUP(buf_cleanup) struct buf text;
    struct error err = {0};
    buf_init(&name, 64);
    buf_init(&text, PROFILES_TEXT_MAX_BYTES);
    profiles_samples_file("./app", &name);
    if (profiles_read_file(profiles_path(place->profiles), buf_string(&name), &text, &err) != 0)
        return 0;
    size_t lines = 0;
    for (size_t i = 0; i < text.length; i++)
        lines += text.data[i] == '\n';
    return lines;
}

static void only_complete_jobs_leave_samples_and_each_once(void **state)
{
    (void)state;
    struct place place;
    place_init(&place);
    save(&place, ended_job(&place, "half", 100, false));
    assert_int_equal(lines_of_samples(&place), 0);
    const struct job *job = ended_job(&place, "whole", 200, true);
    save(&place, job);
    assert_int_equal(lines_of_samples(&place), 2); /* a line a metric */
    save(&place, job);                             /* as a successor does that doesn't know */
    assert_int_equal(lines_of_samples(&place), 2);
    assert_int_equal(profiles_count(place.profiles), 2);
    assert_false(profiles_find(place.profiles, "half")->is_complete);
    assert_true(profiles_find(place.profiles, "whole")->is_complete);
    place_fini(&place);
}

static void what_was_saved_is_read_again(void **state)
{
    (void)state;
    struct place place;
    struct error err = {0};
    place_init(&place);
    struct job *job = ended_job(&place, "../x", 100, true);
    save(&place, job);
    jobs_remove(place.jobs, job);
    save(&place, ended_job(&place, "../x", 200, true)); /* the id again */
    struct profiles *again = NULL;
    assert_int_equal(profiles_new(NULL, place.scratch.path, &again, &err), 0);
    profiles_load(again);
    assert_int_equal(profiles_count(again), 2);
    const struct profile *newest = profiles_find(again, "../x");
    assert_int_equal(newest->desc.start_wall_ms, 200);
    assert_int_equal(newest->desc.end_wall_ms, 210);
    assert_string_equal(newest->file, "%2E.%2Fx.2.profile");
    assert_int_equal(profiles_find(again, "%2E.%2Fx")->desc.start_wall_ms, 100);
    profiles_free(again);
    place_fini(&place);
}

static void without_memory_nothing_is_lost_but_that_save(void **state)
{
    (void)state;
    struct place place;
    place_init(&place);
    const struct job *job = ended_job(&place, "42", 100, true);
    for (size_t n = 0;; n++) {
        struct error err = {0};
        allocation_fail_at(n);
        int rc = profiles_save(place.profiles, job, NULL, NULL, &err);
        if (!allocation_stop()) {
            assert_int_equal(rc, 0);
            break;
        }
        assert_true(rc == 0 || rc == -ENOMEM);
    }
    const struct profile *profile = profiles_find(place.profiles, "42");
    assert_non_null(profile);
    assert_int_equal(profile->desc.start_wall_ms, 100);
    place_fini(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_complete_jobs_leave_samples_and_each_once),
        cmocka_unit_test(what_was_saved_is_read_again),
        cmocka_unit_test(without_memory_nothing_is_lost_but_that_save),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
