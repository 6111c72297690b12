/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/scrape_counts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/contributor.h"
#include "support/random.h"

enum { MAIN_INDEX, NODE_INDEX, ROUNDS = 300, STEPS = 60 };

static struct jobs *jobs_make(void)
{
    struct jobs *jobs = NULL;
    const struct jobs_config config = {
        .hostname = "host", .jobs_max = 10, .metrics_per_job_max = 100, .metrics_max = 1000, .linger_ns = 1};
    assert_int_equal(jobs_new(&config, &jobs, NULL), 0);
    return jobs;
}

static void tick(struct jobs *jobs)
{
    jobs_begin(jobs);
    struct contributor *contributor = jobs_first_contributor(jobs);
    for (; contributor != NULL; contributor = contributor_links(contributor)->next)
        contributor_add(contributor);
    jobs_end(jobs);
}

/* The value after a tick; -1: there is none. */
static double shown(struct jobs *jobs, const struct job *job, const char *name)
{
    tick(jobs);
    const struct metric *metric = job != NULL ? registry_find(job_registry(job), name, strlen(name)) : NULL;
    if (metric == NULL || (metric->value.kind == METRIC_GAUGE && metric->value.gauge.hits == 0))
        return -1;
    return metric_shown(&metric->value);
}

static void tell(struct scrape_counts *counts, const char *name, struct metric_value value)
{
    scrape_counts_set(counts, name, strlen(name), "", &value);
}

static void answer(struct scrape_counts *counts, double counter, double gauge)
{
    scrape_counts_begin(counts);
    if (counter >= 0)
        tell(counts, "total", metric_counter(counter, 1));
    if (gauge >= 0)
        tell(counts, "level", metric_gauge(gauge, 1));
    scrape_counts_finish(counts);
}

static void totals_are_replaced_and_resets_are_seen(void **state)
{
    (void)state;
    static const double told[] = {10, 25, 25, 3, 8, 0, 1}, expected[] = {10, 25, 25, 28, 33, 33, 34};
    struct jobs *jobs = jobs_make();
    struct scrape_counts *counts = scrape_counts_new(jobs, SCRAPE_GROUP_EXPORTER);
    assert_int_equal(scrape_counts_enter(counts, NULL, 1, NULL), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(told); i++) {
        answer(counts, told[i], 5);
        assert_true(shown(jobs, jobs_at(jobs, MAIN_INDEX), "total") == expected[i]);
        assert_true(shown(jobs, jobs_at(jobs, NODE_INDEX), "total") == expected[i]);
        assert_true(shown(jobs, jobs_at(jobs, NODE_INDEX), "level") == 5);
    }
    answer(counts, -1, -1); /* an exporter that leaves them out */
    assert_true(shown(jobs, jobs_at(jobs, MAIN_INDEX), "total") == 34);
    assert_true(shown(jobs, jobs_at(jobs, MAIN_INDEX), "level") == -1);
    scrape_counts_free(counts);
    jobs_free(jobs);
}

static void who_comes_back_goes_on_where_it_was(void **state)
{
    (void)state;
    struct jobs *jobs = jobs_make();
    struct scrape_counts *counts = scrape_counts_new(jobs, SCRAPE_GROUP_EXPORTER);
    assert_int_equal(scrape_counts_enter(counts, NULL, 1, NULL), 0);
    answer(counts, 100, 5);
    scrape_counts_leave(counts, 1, 1);
    assert_true(shown(jobs, jobs_at(jobs, MAIN_INDEX), "total") == 100);
    assert_true(shown(jobs, jobs_at(jobs, MAIN_INDEX), "level") == -1);
    assert_int_equal(scrape_counts_enter(counts, NULL, 1, NULL), 0);
    answer(counts, 130, 5);
    assert_true(shown(jobs, jobs_at(jobs, MAIN_INDEX), "total") == 130);
    scrape_counts_leave(counts, 1, 1);
    assert_int_equal(scrape_counts_enter(counts, NULL, 1, NULL), 0);
    answer(counts, 7, 5); /* began anew meanwhile */
    assert_true(shown(jobs, jobs_at(jobs, MAIN_INDEX), "total") == 137);
    scrape_counts_free(counts);
    jobs_free(jobs);
}

static void a_proxys_zeros_are_left_out_and_mean_zero(void **state)
{
    (void)state;
    struct jobs *jobs = jobs_make();
    struct scrape_counts *counts = scrape_counts_new(jobs, SCRAPE_GROUP_MAIN);
    assert_int_equal(scrape_counts_enter(counts, NULL, 1, NULL), 0);
    answer(counts, 100, 5);
    answer(counts, -1, 5); /* restarted, and nothing counted yet */
    answer(counts, 120, 5);
    assert_true(shown(jobs, jobs_at(jobs, MAIN_INDEX), "total") == 220);
    assert_true(shown(jobs, jobs_at(jobs, NODE_INDEX), "total") == -1); /* it was counted on another node */
    scrape_counts_set_clients(counts, 8, 10);
    assert_int_equal(job_counts(jobs_at(jobs, MAIN_INDEX)).ranks, 8);
    scrape_counts_set_clients(counts, 3, 4);
    assert_int_equal(job_counts(jobs_at(jobs, MAIN_INDEX)).ranks, 3);
    assert_int_equal(job_counts(jobs_at(jobs, MAIN_INDEX)).ranks_peak, 8);
    scrape_counts_lose(counts);
    assert_int_equal(job_counts(jobs_at(jobs, MAIN_INDEX)).ranks, 0);
    assert_true(shown(jobs, jobs_at(jobs, MAIN_INDEX), "level") == -1);
    assert_true(shown(jobs, jobs_at(jobs, MAIN_INDEX), "total") == 220);
    scrape_counts_free(counts);
    jobs_free(jobs);
}

static void a_job_of_another_node_is_a_job_here(void **state)
{
    (void)state;
    struct jobs *jobs = jobs_make();
    struct metric_job description;
    assert_int_equal(metric_job_init(&description, "42", NULL), 0);
    struct scrape_counts *counts = scrape_counts_new(jobs, SCRAPE_GROUP_JOB);
    assert_int_equal(scrape_counts_enter(counts, &description, 1, NULL), 0);
    struct job *job = jobs_find(jobs, UINT32_MAX, "42");
    assert_non_null(job);
    scrape_counts_begin(counts);
    tell(counts, "mpi___hits___mpi_send", metric_counter(5, 1));
    tell(counts, "mpi___hits___mpi_send", metric_counter(50, 1)); /* told twice */
    scrape_counts_finish(counts);
    scrape_counts_set_clients(counts, 4, 0);
    assert_true(shown(jobs, job, "mpi___hits___mpi_send") == 5);
    assert_true(shown(jobs, jobs_at(jobs, MAIN_INDEX), "mpi___hits___mpi_send") == -1); /* that proxy's main has it */
    assert_int_equal(job_counts(job).ranks, 4); /* and not one more for its name */
    scrape_counts_leave(counts, 1, 1);
    assert_ptr_equal(jobs_expired(jobs, NULL, 100), job);
    assert_int_equal(job_counts(job).ranks, 0);
    assert_true(shown(jobs, job, "mpi___hits___mpi_send") == 5); /* for its profile */
    scrape_counts_free(counts);
    metric_job_fini(&description);
    jobs_free(jobs);
}

static void what_is_shown_never_falls_and_is_what_was_counted(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct jobs *jobs = jobs_make();
        struct scrape_counts *counts = scrape_counts_new(jobs, SCRAPE_GROUP_MAIN);
        double truth = 0, told = 0, last = 0;
        assert_int_equal(scrape_counts_enter(counts, NULL, 1, NULL), 0);
        for (unsigned step = 0; step < STEPS; step++) {
            switch (random_below(&random, 5)) {
            case 0: /* it leaves, perhaps for long */
                scrape_counts_leave(counts, 1, 1);
                break;
            case 1: /* it begins anew, and is asked before it has counted as much as before */
                told = 0;
                answer(counts, 0, -1);
                break;
            default:
                break;
            }
            double more = (double)random_below(&random, 100);
            told += more;
            truth += more;
            assert_int_equal(scrape_counts_enter(counts, NULL, 1, NULL), 0);
            answer(counts, told, -1);
            double now = shown(jobs, jobs_at(jobs, MAIN_INDEX), "total");
            assert_true(now >= last);
            assert_true(now == truth);
            last = now;
        }
        scrape_counts_free(counts);
        jobs_free(jobs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_replaced_and_resets_are_seen),
        cmocka_unit_test(who_comes_back_goes_on_where_it_was),
        cmocka_unit_test(a_proxys_zeros_are_left_out_and_mean_zero),
        cmocka_unit_test(a_job_of_another_node_is_a_job_here),
        cmocka_unit_test(what_is_shown_never_falls_and_is_what_was_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
