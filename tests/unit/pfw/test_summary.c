/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/summary.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"

static struct pfw_line parsed(const char *text)
{
    struct pfw_line line;
    struct error err = {0};
    if (pfw_line_parse(text, strlen(text), &line, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return line;
}

/* Events of one host, each with its time in seconds. */
static const char *counter(const char *hash, const char *name, double at_s)
{
    static char event[256];
    (void)snprintf(
        event, sizeof event,
        "{\"name\":\"%s\",\"cat\":\"sys\",\"ph\":2,\"ts\":%.0f,\"pid\":7,\"tid\":0,\"args\":{\"hhash\":\"%s\"}}", name,
        (1796098782 + at_s) * 1e6, hash);
    return event;
}

static const char *own(const char *hash, const char *name, int pid, double at_s, const char *args)
{
    static char event[512];
    (void)snprintf(
        event, sizeof event,
        "{\"name\":\"%s\",\"cat\":\"dftracer\",\"ph\":%d,\"ts\":%.0f,\"dur\":0,\"pid\":%d,\"tid\":0,\"args\":{"
        "\"hhash\":\"%s\"%s}}",
        name, strcmp(name, "start") == 0 || strcmp(name, "end") == 0 ? 1 : 4, (1796098782 + at_s) * 1e6, pid, hash,
        args);
    return event;
}

static void add(struct pfw_summary *summary, const char *event)
{
    struct pfw_line line = parsed(event);
    assert_int_equal(pfw_summary_add(summary, &line, NULL), 0);
}

static char last_finding[512];

static void remember(void *context, enum pfw_finding finding, const char *text)
{
    (void)context;
    (void)finding;
    (void)snprintf(last_finding, sizeof last_finding, "%s", text);
}

static void expect_findings(const struct pfw_summary *summary, const uint64_t expected[PFW_FINDINGS])
{
    for (int i = 0; i < PFW_FINDINGS; i++) {
        if (summary->findings[i] != expected[i])
            fail_msg("finding %d: %llu times; the last one is '%s'", i, (unsigned long long)summary->findings[i],
                     last_finding);
    }
}

static void a_whole_run_has_no_findings(void **state)
{
    (void)state;
    CLEANUP(pfw_summary_cleanup) struct pfw_summary summary;
    pfw_summary_init(&summary, remember, NULL);
    add(&summary, own("a1", "start", 7, 0, ",\"trace_interval_ms\":1000,\"time_metric\":\"US\""));
    add(&summary, own("a1", "HH", 7, 0, ",\"name\":\"node1\",\"value\":\"a1\""));
    for (int i = 0; i < 10; i++) {
        add(&summary, counter("a1", "cpu", i));
        add(&summary, counter("a1", "memory", i));
    }
    add(&summary, own("a1", "end", 7, 9.5, ",\"num_events\":23,\"dropped\":0"));
    pfw_summary_finish(&summary);
    expect_findings(&summary, (uint64_t[PFW_FINDINGS]){0});

    const struct pfw_summary_host *host = &summary.host_list[0];
    assert_int_equal(summary.events, 23);
    assert_int_equal(summary.phases[PFW_COUNTER], 20);
    assert_int_equal(summary.phases[PFW_COMPLETE], 2);
    assert_int_equal(summary.phases[PFW_METADATA], 1);
    assert_string_equal(pfw_hosts_name(&summary.hosts, 0), "node1");
    assert_int_equal(host->series, 5);
    assert_int_equal(host->runs, 1);
    assert_int_equal(host->runs_ended, 1);
    assert_int_equal(host->interval_told_ms, 1000);
    assert_int_equal(host->last_ns - host->first_ns, INT64_C(9500000000));
    assert_true(summary.unit.is_told);
    assert_int_equal(pfw_summary_series_events(&summary, 2), 10);
}

static void expect_two_runs(double first_s, double second_s)
{
    CLEANUP(pfw_summary_cleanup) struct pfw_summary summary;
    pfw_summary_init(&summary, remember, NULL);
    for (int run = 0; run < 2; run++) {
        double at_s = run == 0 ? first_s : second_s;
        add(&summary, own("a1", "start", 7 + run, at_s, ""));
        add(&summary, own("a1", "HH", 7 + run, at_s, ",\"name\":\"node1\",\"value\":\"a1\""));
        for (int i = 0; i < 10; i++)
            add(&summary, counter("a1", "cpu", at_s + i));
        add(&summary, own("a1", "end", 7 + run, at_s + 10, ""));
    }
    pfw_summary_finish(&summary);
    expect_findings(&summary, (uint64_t[PFW_FINDINGS]){0});
    assert_int_equal(summary.host_list[0].runs, 2);
    assert_int_equal(summary.host_list[0].runs_ended, 2);
}

static void two_runs_follow_one_another_in_any_order(void **state)
{
    (void)state;
    expect_two_runs(0, 1000);
    expect_two_runs(1000, 0);
}

static void what_a_killed_writer_leaves_is_told(void **state)
{
    (void)state;
    CLEANUP(pfw_summary_cleanup) struct pfw_summary summary;
    pfw_summary_init(&summary, remember, NULL);
    add(&summary, own("a1", "start", 7, 0, ""));
    add(&summary, own("a1", "HH", 7, 0, ",\"name\":\"node1\",\"value\":\"a1\""));
    add(&summary, own("a1", "start", 7, 50, "")); /* of the same pid again */
    add(&summary, own("a1", "start", 8, 100, ""));
    add(&summary, own("a1", "end", 8, 101, ""));
    pfw_summary_finish(&summary);
    expect_findings(&summary, (uint64_t[PFW_FINDINGS]){[PFW_FINDING_NO_END] = 2});
    assert_non_null(strstr(last_finding, "pid 7"));
    assert_int_equal(summary.host_list[0].runs, 3);
    assert_int_equal(summary.host_list[0].runs_ended, 1);
}

static void a_wrong_count_at_the_end_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *args;
        enum pfw_finding finding;
        uint64_t times;
    } cases[] = {
        {",\"num_events\":2,\"dropped\":0", PFW_FINDING_COUNT, 0},
        {",\"num_events\":3,\"dropped\":0", PFW_FINDING_COUNT, 1},
        {",\"num_events\":-1,\"dropped\":0", PFW_FINDING_COUNT, 1},
        {",\"num_events\":3", PFW_FINDING_FOREIGN_COUNT, 1},
        {"", PFW_FINDING_COUNT, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CLEANUP(pfw_summary_cleanup) struct pfw_summary summary;
        pfw_summary_init(&summary, remember, NULL);
        add(&summary, own("a1", "start", 7, 0, ""));
        add(&summary, own("a1", "end", 7, 1, cases[i].args));
        pfw_summary_finish(&summary);
        uint64_t expected[PFW_FINDINGS] = {[PFW_FINDING_NO_NAME] = 1};
        expected[cases[i].finding] = cases[i].times;
        expect_findings(&summary, expected);
    }
}

static void falling_time_stamps_are_told_for_each_host_and_series(void **state)
{
    (void)state;
    CLEANUP(pfw_summary_cleanup) struct pfw_summary summary;
    pfw_summary_init(&summary, remember, NULL);
    add(&summary, counter("a1", "cpu", 1));
    add(&summary, counter("a1", "memory", 0)); /* another series */
    add(&summary, counter("b2", "cpu", 0));    /* another host */
    add(&summary, counter("a1", "cpu", 1));
    pfw_summary_finish(&summary);
    assert_int_equal(summary.findings[PFW_FINDING_BACKWARDS], 0);
    add(&summary, counter("a1", "cpu", 0.5));
    assert_int_equal(summary.findings[PFW_FINDING_BACKWARDS], 1);
    assert_non_null(strstr(last_finding, "host a1, series 'cpu'"));
    assert_non_null(strstr(last_finding, "0.500000 s"));
}

static void gaps_dropped_events_and_clock_steps_are_told(void **state)
{
    (void)state;
    CLEANUP(pfw_summary_cleanup) struct pfw_summary summary;
    pfw_summary_init(&summary, remember, NULL);
    add(&summary, own("a1", "start", 7, 0, ""));
    add(&summary, own("a1", "HH", 7, 0, ",\"name\":\"node1\",\"value\":\"a1\""));
    for (int i = 0; i < 10; i++)
        add(&summary, counter("a1", "cpu", i));
    add(&summary, own("a1", "dropped_events", 7, 9, ",\"count\":12"));
    add(&summary, own("a1", "dropped_events", 7, 9, ",\"count\":30"));
    add(&summary, own("a1", "clock_step", 7, 9, ",\"offset_us\":-3600000000"));
    assert_non_null(strstr(last_finding, "-3600.000 s"));
    for (int i = 20; i < 30; i++)
        add(&summary, counter("a1", "cpu", i));
    add(&summary, own("a1", "end", 7, 30, ""));
    pfw_summary_finish(&summary);
    expect_findings(
        &summary, (uint64_t[PFW_FINDINGS]){[PFW_FINDING_GAP] = 1, [PFW_FINDING_DROPPED] = 2, [PFW_FINDING_CLOCK] = 1});
    assert_non_null(strstr(last_finding, "11.000 s"));
    assert_int_equal(summary.host_list[0].dropped, 42);
    assert_int_equal(summary.host_list[0].clock_steps, 1);
}

static void missing_keys_and_foreign_phases_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *event;
        uint64_t keys;
        uint64_t phases;
    } cases[] = {
        {"{\"name\":\"a\",\"cat\":\"b\",\"ph\":2,\"ts\":5,\"pid\":1,\"tid\":1,\"args\":{}}", 0, 0}, /* no type: older */
        {"{\"name\":\"a\",\"cat\":\"b\",\"ph\":4,\"pid\":1,\"tid\":1,\"args\":{}}", 0, 0},
        {"{\"name\":\"a\",\"cat\":\"b\",\"ph\":2,\"pid\":1,\"tid\":1,\"args\":{}}", 1, 0},
        {"{\"name\":\"a\",\"cat\":\"b\",\"ph\":1,\"ts\":5,\"pid\":1,\"tid\":1,\"args\":{}}", 1, 0},
        {"{\"name\":7,\"cat\":\"b\",\"ph\":2,\"ts\":\"5\",\"pid\":\"1\",\"tid\":1,\"args\":[]}", 4, 0},
        {"{\"name\":\"a\",\"cat\":\"b\",\"ph\":\"B\",\"ts\":5,\"pid\":1,\"tid\":1,\"args\":{}}", 0, 1},
        {"{}", 6, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CLEANUP(pfw_summary_cleanup) struct pfw_summary summary;
        pfw_summary_init(&summary, remember, NULL);
        add(&summary, cases[i].event);
        if (summary.findings[PFW_FINDING_KEY] != cases[i].keys ||
            summary.findings[PFW_FINDING_PHASE] != cases[i].phases)
            fail_msg("%s: %llu keys, %llu phases", cases[i].event,
                     (unsigned long long)summary.findings[PFW_FINDING_KEY],
                     (unsigned long long)summary.findings[PFW_FINDING_PHASE]);
    }
}

static void an_empty_trace_has_nothing(void **state)
{
    (void)state;
    CLEANUP(pfw_summary_cleanup) struct pfw_summary summary;
    pfw_summary_init(&summary, NULL, NULL);
    pfw_summary_finish(&summary);
    assert_int_equal(summary.events, 0);
    assert_int_equal(summary.hosts.hashes.count, 0);
}

static int add_run(struct pfw_summary *summary)
{
    const char *const events[] = {
        "{\"name\":\"start\",\"cat\":\"dftracer\",\"ph\":1,\"ts\":1,\"dur\":0,\"args\":{\"hhash\":\"a\"}}",
        "{\"name\":\"HH\",\"cat\":\"dftracer\",\"ph\":4,\"args\":{\"hhash\":\"a\",\"name\":\"n\",\"value\":\"b\"}}",
        "{\"name\":\"c\\u0070u\",\"cat\":\"sys\",\"ph\":2,\"ts\":1000000,\"args\":{\"hhash\":\"a\"}}",
        "{\"name\":\"cpu\",\"cat\":\"sys\",\"ph\":2,\"ts\":2000000,\"args\":{\"hhash\":\"a\"}}",
    };
    int rc = 0;
    for (size_t i = 0; i < sizeof events / sizeof events[0] && rc == 0; i++) {
        struct pfw_line line = parsed(events[i]);
        rc = pfw_summary_add(summary, &line, NULL);
    }
    pfw_summary_finish(summary);
    return rc;
}

static void want_of_memory_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct pfw_summary summary;
        pfw_summary_init(&summary, NULL, NULL);
        allocation_fail_at(n);
        int rc = add_run(&summary);
        bool has_failed = allocation_stop();
        pfw_summary_fini(&summary);
        assert_int_equal(rc, has_failed ? -ENOMEM : 0);
        if (!has_failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_run_has_no_findings),
        cmocka_unit_test(two_runs_follow_one_another_in_any_order),
        cmocka_unit_test(what_a_killed_writer_leaves_is_told),
        cmocka_unit_test(a_wrong_count_at_the_end_is_told),
        cmocka_unit_test(falling_time_stamps_are_told_for_each_host_and_series),
        cmocka_unit_test(gaps_dropped_events_and_clock_steps_are_told),
        cmocka_unit_test(missing_keys_and_foreign_phases_are_told),
        cmocka_unit_test(an_empty_trace_has_nothing),
        cmocka_unit_test(want_of_memory_is_told_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
