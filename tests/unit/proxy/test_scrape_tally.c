/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/scrape_tally.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/contributor.h"

enum { TEXT_MAX_BYTES = 8 << 20, MANY = 5000 };

static struct jobs *jobs_make(void)
{
    struct jobs *jobs = NULL;
    const struct jobs_config config = {
        .hostname = "host", .jobs_max = 10, .metrics_per_job_max = 10000, .metrics_max = 50000, .linger_ns = 1};
    assert_int_equal(jobs_new(&config, &jobs, NULL), 0);
    return jobs;
}

static double shown(struct jobs *jobs, const char *id, const char *name)
{
    jobs_begin(jobs);
    struct contributor *contributor = jobs_first_contributor(jobs);
    for (; contributor != NULL; contributor = contributor_links(contributor)->next)
        contributor_add(contributor);
    jobs_end(jobs);
    const struct job *job = jobs_find(jobs, UINT32_MAX, id);
    const struct metric *metric = job != NULL ? registry_find(job_registry(job), name, strlen(name)) : NULL;
    return metric != NULL ? metric_shown(&metric->value) : -1;
}

static unsigned count(struct scrape_tally *tally, struct scrape_answer *answer)
{
    unsigned slices = 1;
    scrape_tally_begin(tally, answer);
    while (!scrape_tally_go_on(tally))
        slices++;
    scrape_tally_abandon(tally);
    assert_null(scrape_tally_answer(tally));
    return slices;
}

/* A proxy whose main has `total`, and a job 42 with `work` when that is not below 0. */
static void proxy_answers(struct scrape_tally *tally, double total, double work, long long start)
{
    char text[1000];
    int bytes = snprintf(text, sizeof text,
                         "[{\"desc\":{\"jobid\":\"main\"},\"counters\":[{\"name\":\"work\",\"ctype\":{\"Counter\":"
                         "{\"value\":%.0f}}}]}",
                         total);
    if (work >= 0)
        bytes +=
            snprintf(text + bytes, sizeof text - (size_t)bytes,
                     ",{\"desc\":{\"jobid\":\"42\",\"start_time\":%lld},\"counters\":[{\"name\":\"work\",\"ctype\":"
                     "{\"Counter\":{\"value\":%.0f}}}]}",
                     start, work);
    text[bytes++] = ']';
    struct scrape_answer *answer;
    assert_int_equal(scrape_read_proxy(text, (size_t)bytes, 1, &answer, NULL), 0);
    (void)count(tally, answer);
}

static void a_large_answer_is_counted_in_slices(void **state)
{
    (void)state;
    struct jobs *jobs = jobs_make();
    struct scrape_tally *tally = scrape_tally_new(jobs);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    for (unsigned i = 0; i < MANY; i++)
        buf_printf(&text, "m%u_total %u\n", i, i);
    for (unsigned round = 0; round < 3; round++) {
        struct scrape_answer *answer;
        assert_int_equal(scrape_read_exporter(text.data, text.length, false, 1, &answer, NULL), 0);
        assert_in_range(count(tally, answer), 2, 10);
    }
    for (unsigned i = 0; i < MANY; i += 777) {
        char name[32];
        (void)snprintf(name, sizeof name, "m%u_total", i);
        assert_true(shown(jobs, "main", name) == i);
    }
    scrape_tally_free(tally);
    jobs_free(jobs);
}

static void a_job_goes_and_comes_back_or_is_another_run(void **state)
{
    (void)state;
    struct jobs *jobs = jobs_make();
    struct scrape_tally *tally = scrape_tally_new(jobs);
    proxy_answers(tally, 100, 100, 1000);
    assert_true(shown(jobs, "42", "work") == 100);
    proxy_answers(tally, 100, -1, 0); /* ended, and here it lingers */
    proxy_answers(tally, 150, 150, 1000);
    assert_true(shown(jobs, "42", "work") == 150); /* it hadn't: the same run */
    proxy_answers(tally, 160, 160, 900);
    assert_true(shown(jobs, "42", "work") == 160); /* a process that had begun earlier has joined */
    proxy_answers(tally, 160, -1, 0);
    jobs_remove(jobs, jobs_find(jobs, UINT32_MAX, "42"));
    proxy_answers(tally, 360, 200, 2000);
    assert_true(shown(jobs, "42", "work") == 200); /* another run, though its total is larger than the old one's */
    assert_true(shown(jobs, "main", "work") == 360);
    scrape_tally_leave(tally, true);
    assert_true(shown(jobs, "main", "work") == 360);
    scrape_tally_free(tally);
    jobs_free(jobs);
}

static void a_target_that_becomes_another_kind_counts_as_another(void **state)
{
    (void)state;
    static const char text[] = "# TYPE work counter\nwork 5\n";
    struct jobs *jobs = jobs_make();
    struct scrape_tally *tally = scrape_tally_new(jobs);
    proxy_answers(tally, 100, 100, 1000);
    struct scrape_answer *answer;
    assert_int_equal(scrape_read_exporter(text, sizeof text - 1, false, 1, &answer, NULL), 0);
    (void)count(tally, answer);
    assert_true(shown(jobs, "main", "work") == 105);
    assert_true(shown(jobs, "Node: host", "work") == 5);
    assert_true(shown(jobs, "42", "work") == 100);
    scrape_tally_free(tally);
    jobs_free(jobs);
}

static void an_answer_may_be_abandoned_in_the_middle(void **state)
{
    (void)state;
    struct jobs *jobs = jobs_make();
    struct scrape_tally *tally = scrape_tally_new(jobs);
    for (unsigned round = 0; round < 3; round++) {
        CLEANUP(buf_cleanup) struct buf text;
        buf_init(&text, TEXT_MAX_BYTES);
        for (unsigned i = 0; i < MANY; i++)
            buf_printf(&text, "m%u_total %u\n", i, round);
        struct scrape_answer *answer;
        assert_int_equal(scrape_read_exporter(text.data, text.length, false, 1, &answer, NULL), 0);
        scrape_tally_begin(tally, answer);
        assert_false(scrape_tally_go_on(tally));
    }
    scrape_tally_lose(tally);
    scrape_tally_free(tally); /* with an answer */
    jobs_free(jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_answer_is_counted_in_slices),
        cmocka_unit_test(a_job_goes_and_comes_back_or_is_another_run),
        cmocka_unit_test(a_target_that_becomes_another_kind_counts_as_another),
        cmocka_unit_test(an_answer_may_be_abandoned_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
