/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/contributor.h"
#include "support/allocation.h"
#include "support/scratch.h"

static const int64_t WIRE_NOW_MS = 1700000005000; /* five seconds after the job began */
enum { WIRE_NOW_NS = 5000, WIRE_BIG_MESSAGE_BYTES = (64 << 10) + 2 };

#define JOB_7                                                                                                          \
    "{\"JobDesc\":{\"jobid\":\"7\",\"command\":\"./app\",\"size\":2,\"start_time\":1700000000000,\"end_time\":0}}"
#define DESC(n) "{\"Desc\":{\"name\":\"" n "\",\"doc\":\"\",\"ctype\":{\"Counter\":{\"ts\":0,\"value\":0.0}}}}"
#define GAUGE_DESC(n)                                                                                                  \
    "{\"Desc\":{\"name\":\"" n "\",\"doc\":\"\",\"ctype\":{\"Gauge\":{\"min\":0,\"max\":0,\"hits\":0,\"total\":0}}}}"
#define ADD(n, v) "{\"Value\":{\"name\":\"" n "\",\"value\":{\"Counter\":{\"ts\":1,\"value\":" v "}}}}"
#define SET(n, v)                                                                                                      \
    "{\"Value\":{\"name\":\"" n "\",\"value\":{\"Gauge\":{\"min\":" v ",\"max\":" v ",\"hits\":1,\"total\":" v "}}}}"

struct place {
    struct scratch scratch;
    struct jobs *jobs;
    struct segments *segments;
};

static void place_init(struct place *place, size_t metrics_max)
{
    struct error err = {0};
    const struct jobs_config config = {.hostname = "host",
                                       .uid = (uint32_t)geteuid(),
                                       .jobs_max = 2,
                                       .metrics_per_job_max = metrics_max,
                                       .metrics_max = 10 * metrics_max,
                                       .linger_ns = 100};
    place->scratch = scratch_new();
    assert_int_equal(jobs_new(&config, &place->jobs, &err), 0);
    assert_int_equal(segments_new(place->jobs, place->scratch.path, config.uid, &place->segments, &err), 0);
}

static void place_fini(struct place *place)
{
    segments_free(place->segments);
    jobs_free(place->jobs);
    scratch_cleanup(&place->scratch);
}

static void tick(struct place *place)
{
    jobs_begin(place->jobs);
    struct contributor *contributor = jobs_first_contributor(place->jobs);
    for (; contributor != NULL; contributor = contributor_links(contributor)->next)
        contributor_add(contributor);
    jobs_end(place->jobs);
}

static double shown(struct place *place, const char *job_id, const char *name)
{
    const struct job *job = jobs_find(place->jobs, UINT32_MAX, job_id);
    const struct metric *metric = job != NULL ? registry_find(job_registry(job), name, strlen(name)) : NULL;
    return metric != NULL ? metric_shown(&metric->value) : -1;
}

static struct wire *wire_new(struct place *place)
{
    struct wire *wire = wire_open(place->jobs, place->segments, (uint32_t)geteuid(), 0);
    assert_non_null(wire);
    return wire;
}

/* One value with its NUL. */
static int feed(struct wire *wire, const char *text, struct error *err)
{
    return wire_feed(wire, text, strlen(text) + 1, WIRE_NOW_MS, err);
}

static void must_feed(struct wire *wire, const char *text)
{
    struct error err = {0};
    if (feed(wire, text, &err) != 0)
        fail_msg("'%s': %s", text, err.text);
}

static void increments_are_summed_and_a_gauge_is_replaced(void **state)
{
    (void)state;
    struct place place;
    place_init(&place, 100);
    struct wire *wire = wire_new(&place);
    must_feed(wire, JOB_7);
    must_feed(wire, DESC("key"));
    must_feed(wire, GAUGE_DESC("loop"));
    must_feed(wire, ADD("key", "3.0"));
    must_feed(wire, ADD("key", "4"));
    must_feed(wire, SET("loop", "5"));
    must_feed(wire, SET("loop", "9"));
    tick(&place);
    tick(&place); /* the same values again count once */
    assert_true(shown(&place, "7", "key") == 7);
    assert_true(shown(&place, "main", "key") == 7);
    assert_true(shown(&place, "Node: host", "key") == 7);
    assert_true(shown(&place, "7", "loop") == 9);
    wire_close(wire, WIRE_NOW_NS, WIRE_NOW_MS);
    tick(&place);
    assert_true(shown(&place, "main", "key") == 7);  /* stays */
    assert_true(shown(&place, "main", "loop") == 0); /* leaves */
    assert_int_equal(job_description(jobs_find(place.jobs, UINT32_MAX, "7"))->end_wall_ms, WIRE_NOW_MS);
    place_fini(&place);
}

static void a_job_named_late_has_what_was_counted_before(void **state)
{
    (void)state;
    struct place place;
    place_init(&place, 100);
    struct wire *wire = wire_new(&place);
    must_feed(wire, DESC("mpi___hits___mpi_send"));
    must_feed(wire, ADD("mpi___hits___mpi_send", "2"));
    must_feed(wire, JOB_7);
    tick(&place);
    assert_true(shown(&place, "7", "mpi___hits___mpi_send") == 2);
    assert_int_equal(job_counts(jobs_find(place.jobs, UINT32_MAX, "7")).ranks, 1);
    assert_int_equal(job_counts(jobs_at(place.jobs, 0)).ranks, 1);
    wire_close(wire, WIRE_NOW_NS, WIRE_NOW_MS);
    assert_int_equal(job_counts(jobs_find(place.jobs, UINT32_MAX, "7")).ranks, 0);
    assert_int_equal(job_counts(jobs_at(place.jobs, 0)).processes, 0);
    place_fini(&place);
}

static void values_may_be_cut_anywhere(void **state)
{
    (void)state;
    static const char text[] = JOB_7 "\0" DESC("key") "\0" ADD("key", "3") "\0" ADD("key", "4"); /* and the last NUL */
    for (size_t cut = 1; cut < sizeof text; cut++) {
        struct place place;
        struct error err = {0};
        place_init(&place, 100);
        struct wire *wire = wire_new(&place);
        assert_int_equal(wire_feed(wire, text, cut, WIRE_NOW_MS, &err), 0);
        assert_int_equal(wire_feed(wire, text + cut, sizeof text - cut, WIRE_NOW_MS, &err), 0);
        tick(&place);
        assert_true(shown(&place, "7", "key") == 7);
        wire_close(wire, WIRE_NOW_NS, WIRE_NOW_MS);
        place_fini(&place);
    }
}

static void what_makes_no_sense_ends_the_connection_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
    } cases[] = {
        {"GET / HTTP/1.1", -EPROTO},
        {"{", -EBADMSG},
        {"{}", -EBADMSG},
        {"{\"Value\":3}", -EBADMSG},
        {"{\"Value\":{\"name\":\"a\",\"value\":{}}}", -EBADMSG},
        {"{\"Desc\":{\"name\":7,\"ctype\":{\"Counter\":{}}}}", -EBADMSG},
        {"{\"Desc\":{\"name\":\"a\",\"ctype\":{\"Counter\":{},\"Gauge\":{}}}}", -EBADMSG},
        {"{\"JobDesc\":{\"jobid\":7}}", -EBADMSG},
        {"{\"JobDesc\":{\"jobid\":\"x\",\"size\":-1}}", -EBADMSG},
        {"cik", -EBADMSG},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct place place;
        struct error err = {0};
        place_init(&place, 100);
        struct wire *wire = wire_new(&place);
        int rc = feed(wire, cases[i].text, &err);
        if (strcmp(cases[i].text, "cik") == 0) /* the rest of what begins like a greeting */
            rc = wire_feed(wire, "kehello, but that is not what a greeting looks like", 40, WIRE_NOW_MS, &err);
        if (rc != cases[i].code || err.text[0] == '\0')
            fail_msg("'%s' gives %d (%s), not %d", cases[i].text, rc, err.text, cases[i].code);
        wire_close(wire, WIRE_NOW_NS, WIRE_NOW_MS);
        place_fini(&place);
    }
}

static void bytes_without_end_are_cut_off(void **state)
{
    (void)state;
    struct place place;
    struct error err = {0};
    place_init(&place, 100);
    struct wire *wire = wire_new(&place);
    CLEANUP(memory_cleanup) char *bytes = malloc(WIRE_BIG_MESSAGE_BYTES);
    assert_non_null(bytes);
    memset(bytes, '{', WIRE_BIG_MESSAGE_BYTES);
    assert_int_equal(wire_feed(wire, bytes, 1000, WIRE_NOW_MS, &err), 0);
    assert_int_equal(wire_feed(wire, bytes, WIRE_BIG_MESSAGE_BYTES - 1000, WIRE_NOW_MS, &err), -EMSGSIZE);
    wire_close(wire, WIRE_NOW_NS, WIRE_NOW_MS);
    place_fini(&place);
}

static void too_many_names_are_cut_off_and_others_unharmed(void **state)
{
    (void)state;
    struct place place;
    struct error err = {0};
    place_init(&place, 100);
    struct wire *good = wire_new(&place);
    must_feed(good, DESC("good"));
    struct wire *bad = wire_new(&place);
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i <= WIRE_NAMES_MAX; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, DESC("n%u"), i);
        rc = feed(bad, text, &err);
    }
    assert_int_equal(rc, -ENOSPC);
    assert_true(jobs_stats(place.jobs)->metrics_refused > 0);
    wire_close(bad, WIRE_NOW_NS, WIRE_NOW_MS);
    must_feed(good, ADD("good", "1"));
    tick(&place);
    assert_true(shown(&place, "main", "good") == 1);
    wire_close(good, WIRE_NOW_NS, WIRE_NOW_MS);
    place_fini(&place);
}

static void a_conflict_of_kinds_spoils_itself_alone(void **state)
{
    (void)state;
    struct place place;
    place_init(&place, 100);
    struct wire *first = wire_new(&place);
    struct wire *second = wire_new(&place);
    must_feed(first, DESC("a"));
    must_feed(first, ADD("a", "1"));
    must_feed(second, GAUGE_DESC("a"));
    must_feed(second, SET("a", "100"));
    must_feed(second, ADD("a", "100"));
    must_feed(second, ADD("never declared", "1"));
    must_feed(second, DESC("b c"));
    must_feed(second, ADD("b c", "2"));
    must_feed(second, ADD("b c", "null")); /* what existing clients make of NaN */
    must_feed(second, ADD("b c", "-5"));
    tick(&place);
    assert_true(shown(&place, "main", "a") == 1);
    assert_true(shown(&place, "main", "b_c") == 2);
    assert_true(jobs_stats(place.jobs)->metrics_conflicting > 0);
    assert_int_equal(jobs_stats(place.jobs)->values_refused, 3);
    assert_int_equal(jobs_stats(place.jobs)->names_mapped, 1);
    wire_close(first, WIRE_NOW_NS, WIRE_NOW_MS);
    wire_close(second, WIRE_NOW_NS, WIRE_NOW_MS);
    place_fini(&place);
}

static void jobs_past_the_limit_count_in_main(void **state)
{
    (void)state;
    struct place place;
    place_init(&place, 100);
    struct wire *wires[3];
    for (int i = 0; i < 3; i++) {
        char job[64];
        (void)snprintf(job, sizeof job, "{\"JobDesc\":{\"jobid\":\"j%d\"}}", i);
        wires[i] = wire_new(&place);
        must_feed(wires[i], job);
        must_feed(wires[i], DESC("key"));
        must_feed(wires[i], ADD("key", "1"));
    }
    tick(&place);
    assert_int_equal(jobs_count(place.jobs), 4);
    assert_int_equal(jobs_stats(place.jobs)->jobs_refused, 1);
    assert_true(shown(&place, "main", "key") == 3);
    for (int i = 0; i < 3; i++)
        wire_close(wires[i], WIRE_NOW_NS, WIRE_NOW_MS);
    place_fini(&place);
}

static void without_memory_a_connection_ends_and_leaks_nothing(void **state)
{
    (void)state;
    struct place place;
    place_init(&place, 100);
    for (size_t n = 0;; n++) {
        struct error err = {0};
        allocation_fail_at(n);
        struct wire *wire = wire_open(place.jobs, place.segments, (uint32_t)geteuid(), 0);
        int rc = wire != NULL ? feed(wire, JOB_7, &err) : -ENOMEM;
        if (rc == 0)
            rc = feed(wire, DESC("key"), &err);
        if (rc == 0)
            rc = feed(wire, ADD("key", "1"), &err);
        bool has_failed = allocation_stop();
        wire_close(wire, WIRE_NOW_NS, WIRE_NOW_MS);
        if (!has_failed) {
            assert_int_equal(rc, 0);
            break;
        }
        assert_true(rc == 0 || rc == -ENOMEM);
    }
    place_fini(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(increments_are_summed_and_a_gauge_is_replaced),
        cmocka_unit_test(a_job_named_late_has_what_was_counted_before),
        cmocka_unit_test(values_may_be_cut_anywhere),
        cmocka_unit_test(what_makes_no_sense_ends_the_connection_with_a_reason),
        cmocka_unit_test(bytes_without_end_are_cut_off),
        cmocka_unit_test(too_many_names_are_cut_off_and_others_unharmed),
        cmocka_unit_test(a_conflict_of_kinds_spoils_itself_alone),
        cmocka_unit_test(jobs_past_the_limit_count_in_main),
        cmocka_unit_test(without_memory_a_connection_ends_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
