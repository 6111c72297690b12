/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/jobs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/contributor.h"
#include "support/random.h"

enum { JOBS_UID = 1, JOBS_LINGER_NS = 100, JOBS_MANY = 24, JOBS_ROUNDS = 2000 };

static struct jobs *jobs_make(void)
{
    struct jobs *jobs = NULL;
    struct error err = {0};
    const struct jobs_config config = {.hostname = "host",
                                       .uid = JOBS_UID,
                                       .jobs_max = 10,
                                       .metrics_per_job_max = 100,
                                       .metrics_max = 1000,
                                       .linger_ns = JOBS_LINGER_NS};
    assert_int_equal(jobs_new(&config, &jobs, &err), 0);
    return jobs;
}

static struct job *join(struct jobs *jobs, uint32_t uid, const char *id, uint64_t launcher_start)
{
    struct error err = {0};
    struct metric_job description;
    struct job *job = NULL;
    assert_int_equal(metric_job_init(&description, id, &err), 0);
    assert_int_equal(jobs_join(jobs, uid, &description, launcher_start, 1000, &job, &err), 0);
    metric_job_fini(&description);
    return job;
}

static void a_job_lingers_and_is_the_same_when_it_comes_back(void **state)
{
    (void)state;
    struct jobs *jobs = jobs_make();
    struct job *job = join(jobs, JOBS_UID, "42", 0);
    assert_null(jobs_expired(jobs, NULL, 1000));
    jobs_leave(jobs, job, 1000, 1005);
    assert_int_equal(job_description(job)->end_wall_ms, 1005);
    assert_null(jobs_expired(jobs, NULL, 1000 + JOBS_LINGER_NS - 1));
    assert_ptr_equal(join(jobs, JOBS_UID, "42", 0), job);
    assert_int_equal(job_description(job)->end_wall_ms, 0);
    assert_null(jobs_expired(jobs, NULL, 1000 + JOBS_LINGER_NS));
    jobs_leave(jobs, job, 2000, 6); /* the clock was set back: it began at 1000 */
    assert_int_equal(job_description(job)->end_wall_ms, 1000);
    assert_ptr_equal(jobs_expired(jobs, NULL, 2000 + JOBS_LINGER_NS), job);
    assert_null(jobs_expired(jobs, job, 2000 + JOBS_LINGER_NS));
    job_set_saving(job, true);
    struct job *next = join(jobs, JOBS_UID, "42", 0); /* while the old one's profile is written: another run */
    assert_ptr_not_equal(next, job);
    jobs_remove(jobs, job);
    assert_ptr_equal(jobs_find(jobs, UINT32_MAX, "42"), next);
    jobs_free(jobs);
}

static void ids_are_short_while_they_are_unique(void **state)
{
    (void)state;
    struct jobs *jobs = jobs_make();
    struct job *first = join(jobs, JOBS_UID, "42", 7);
    assert_string_equal(job_key(first), "42@host-7");
    assert_string_equal(job_shown_id(first), "42");
    struct job *second = join(jobs, JOBS_UID, "42", 8); /* the pid was given out again */
    assert_string_equal(job_shown_id(first), "42@host-7");
    assert_string_equal(job_shown_id(second), "42@host-8");
    struct job *other = join(jobs, JOBS_UID + 1, "42", 0);
    assert_string_equal(job_shown_id(other), "42+uid2");
    assert_ptr_equal(jobs_find(jobs, JOBS_UID + 1, "42"), other);
    jobs_leave(jobs, first, 0, 0);
    jobs_remove(jobs, first);
    jobs_leave(jobs, other, 0, 0);
    jobs_remove(jobs, other);
    assert_string_equal(job_shown_id(second), "42");
    jobs_free(jobs);
}

static void a_job_cannot_pass_for_main_or_the_node(void **state)
{
    (void)state;
    struct jobs *jobs = jobs_make();
    struct job *job = join(jobs, JOBS_UID, "main", 0);
    assert_string_equal(job_shown_id(job), "_main");
    assert_ptr_equal(jobs_find(jobs, UINT32_MAX, "main"), jobs_at(jobs, 0));
    assert_string_equal(job_shown_id(join(jobs, JOBS_UID, "Node: host", 0)), "_Node: host");
    assert_ptr_equal(jobs_find(jobs, UINT32_MAX, "Node: host"), jobs_at(jobs, 1));
    jobs_free(jobs);
}

static double tick(struct jobs *jobs, const char *name)
{
    jobs_begin(jobs);
    struct contributor *contributor = jobs_first_contributor(jobs);
    for (; contributor != NULL; contributor = contributor_links(contributor)->next)
        contributor_add(contributor);
    jobs_end(jobs);
    return metric_shown(&registry_find(job_registry(jobs_at(jobs, 0)), name, strlen(name))->value);
}

struct part {
    struct contributor *contributor;
    uint32_t slot;
    double value;
};

static void part_begin(struct jobs *jobs, struct part *part)
{
    struct error err = {0};
    part->contributor = contributor_new(jobs, &(struct contributor_config){.uid = JOBS_UID});
    part->value = 0;
    assert_non_null(part->contributor);
    assert_int_equal(contributor_declare(part->contributor, "seconds", 7, "", METRIC_COUNTER, &part->slot, &err), 0);
}

static void a_counter_never_falls_when_contributors_end_in_any_order(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    struct jobs *jobs = jobs_make();
    struct part parts[JOBS_MANY];
    for (size_t i = 0; i < JOBS_MANY; i++)
        part_begin(jobs, &parts[i]);
    double before = 0;
    double truth = 0;
    for (int i = 0; i < JOBS_ROUNDS; i++) {
        struct part *part = &parts[random_below(&random, JOBS_MANY)];
        double more = (double)random_below(&random, 1000000) * 1e-7; /* sums of such are rounded */
        part->value += more;
        truth += more;
        struct metric_value value = metric_counter(part->value, 1);
        contributor_set(part->contributor, part->slot, &value);
        if (random_below(&random, 4) == 0) {
            before = tick(jobs, "seconds");
            contributor_end(part->contributor, 0, 0);
            part_begin(jobs, part);
        }
        double now = tick(jobs, "seconds");
        if (now < before)
            fail_msg("round %d: %.17g after %.17g", i, now, before);
        before = now;
    }
    assert_true(before > truth - 1e-6 && before < truth + 1e-6);
    for (size_t i = 0; i < JOBS_MANY; i++)
        contributor_end(parts[i].contributor, 0, 0);
    jobs_free(jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_lingers_and_is_the_same_when_it_comes_back),
        cmocka_unit_test(ids_are_short_while_they_are_unique),
        cmocka_unit_test(a_job_cannot_pass_for_main_or_the_node),
        cmocka_unit_test(a_counter_never_falls_when_contributors_end_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
