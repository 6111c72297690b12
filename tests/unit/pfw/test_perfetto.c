/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/perfetto.h"

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

/* Converts the events, NULL-terminated, whose time is in `unit`, and compares all lines of the result. */
static void expect(const char *const *events, enum pfw_unit unit, const char *json)
{
    struct pfw_perfetto perfetto;
    struct buf out;
    pfw_perfetto_init(&perfetto);
    buf_init(&out, 1 << 20);
    pfw_perfetto_begin(&out);
    for (; *events != NULL; events++) {
        struct pfw_line line = parsed(*events);
        assert_int_equal(pfw_perfetto_add(&perfetto, &line, unit, true, &out, NULL), 0);
    }
    assert_int_equal(pfw_perfetto_end(&perfetto, &out, NULL), 0);
    assert_string_equal(buf_string(&out), json);
    pfw_perfetto_fini(&perfetto);
    buf_fini(&out);
}

static void counters_become_tracks_of_their_host(void **state)
{
    (void)state;
    static const char *const events[] = {
        "{\"name\":\"HH\",\"ph\":4,\"args\":{\"hhash\":\"a1\",\"name\":\"node \\\"1\\\"\",\"value\":\"a1\"}}",
        "{\"name\":\"c\\u0070u\",\"cat\":\"sys\",\"ph\":2,\"ts\":5,\"pid\":77,\"tid\":3,\"args\":{\"hhash\":\"a1\","
        "\"u\":1.50,"
        "\"x\":null,\"big\":18446744073709551615,\"u\":2e3}}",
        "{\"name\":\"cpu\",\"cat\":\"sys\",\"ph\":\"C\",\"ts\":6,\"pid\":77,\"tid\":3,\"args\":{\"hhash\":\"b2\",\"u\":"
        "1}}",
        NULL,
    };
    expect(
        events, PFW_UNIT_US,
        "[\n"
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"node \\\"1\\\"\"}},\n"
        "{\"ph\":\"C\",\"name\":\"c\\u0070u\",\"cat\":\"sys\",\"pid\":1,\"tid\":0,\"ts\":5,\"args\":{\"u\":2e3,\"big\":"
        "18446744073709551615}},\n"
        "{\"ph\":\"C\",\"name\":\"cpu\",\"cat\":\"sys\",\"pid\":2,\"tid\":0,\"ts\":6,\"args\":{\"u\":1}},\n"
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":2,\"tid\":0,\"args\":{\"name\":\"b2\"}}\n"
        "]\n");
}

static void complete_events_become_slices_of_their_process(void **state)
{
    (void)state;
    static const char *const events[] = {
        "{\"name\":\"start\",\"cat\":\"dftracer\",\"ph\":1,\"ts\":1,\"dur\":0,\"pid\":9,\"tid\":9,\"args\":{\"hhash\":"
        "\"a1\"}}",
        "{\"name\":\"HH\",\"ph\":4,\"args\":{\"hhash\":\"a1\",\"name\":\"n1\",\"value\":\"a1\"}}",
        "{\"name\":\"read\",\"cat\":\"POSIX\",\"ph\":\"X\",\"ts\":2,\"dur\":3,\"pid\":9,\"tid\":10,\"args\":{\"hhash\":"
        "\"a1\","
        "\"ret\":[4096]}}",
        "{\"name\":\"clock_step\",\"cat\":\"dftracer\",\"ph\":4,\"ts\":4,\"pid\":9,\"tid\":9,\"args\":{\"hhash\":"
        "\"a1\"}}",
        NULL,
    };
    expect(events, PFW_UNIT_MS,
           "[\n"
           "{\"ph\":\"X\",\"name\":\"start\",\"cat\":\"dftracer\",\"pid\":1,\"tid\":9,\"ts\":1000,\"dur\":0,\"args\":{"
           "\"hhash\":"
           "\"a1\"}},\n"
           "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":2,\"tid\":0,\"args\":{\"name\":\"n1 pid 9\"}},\n"
           "{\"ph\":\"X\",\"name\":\"read\",\"cat\":\"POSIX\",\"pid\":2,\"tid\":10,\"ts\":2000,\"dur\":3000,\"args\":{"
           "\"hhash\":"
           "\"a1\",\"ret\":[4096]}},\n"
           "{\"ph\":\"i\",\"name\":\"clock_step\",\"cat\":\"dftracer\",\"pid\":1,\"tid\":9,\"ts\":4000,\"s\":\"p\","
           "\"args\":{"
           "\"hhash\":\"a1\"}},\n"
           "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"n1\"}}\n"
           "]\n");
}

static void nanoseconds_keep_their_digits(void **state)
{
    (void)state;
    static const char *const events[] = {
        "{\"name\":\"a\",\"cat\":\"b\",\"ph\":2,\"ts\":1796098782398492123,\"args\":{\"k\":1}}",
        "{\"name\":\"a\",\"cat\":\"b\",\"ph\":2,\"ts\":-5,\"args\":{\"k\":1}}",
        NULL,
    };
    expect(events, PFW_UNIT_NS,
           "[\n"
           "{\"ph\":\"C\",\"name\":\"a\",\"cat\":\"b\",\"pid\":1,\"tid\":0,\"ts\":1796098782398492.123,\"args\":{\"k\":"
           "1}},\n"
           "{\"ph\":\"C\",\"name\":\"a\",\"cat\":\"b\",\"pid\":1,\"tid\":0,\"ts\":-0.005,\"args\":{\"k\":1}},\n"
           "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"unknown\"}}\n"
           "]\n");
}

static void what_has_no_place_is_counted(void **state)
{
    (void)state;
    static const char *const events[] = {
        "{\"name\":\"a\",\"ph\":2,\"args\":{\"k\":1}}",              /* no time */
        "{\"name\":\"a\",\"ph\":2,\"ts\":1,\"args\":{\"k\":\"1\"}}", /* no number */
        "{\"name\":\"a\",\"ph\":\"B\",\"ts\":1,\"args\":{}}",        /* no phase of ours */
        "{\"name\":\"PR\",\"ph\":4,\"args\":{}}",                    /* metadata without a time is no loss */
    };
    struct pfw_perfetto perfetto;
    struct buf out;
    pfw_perfetto_init(&perfetto);
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < 4; i++) {
        struct pfw_line line = parsed(events[i]);
        assert_int_equal(pfw_perfetto_add(&perfetto, &line, PFW_UNIT_US, true, &out, NULL), 0);
    }
    assert_int_equal(perfetto.left_out, 3);
    assert_int_equal(perfetto.events, 0);
    assert_int_equal(out.length, 0);
    pfw_perfetto_fini(&perfetto);
    buf_fini(&out);
}

static void events_that_are_not_wanted_only_give_names(void **state)
{
    (void)state;
    struct pfw_perfetto perfetto;
    struct buf out;
    pfw_perfetto_init(&perfetto);
    buf_init(&out, 1 << 20);
    struct pfw_line line = parsed("{\"name\":\"HH\",\"ph\":4,\"args\":{\"hhash\":\"a1\",\"name\":\"n1\"}}");
    assert_int_equal(pfw_perfetto_add(&perfetto, &line, PFW_UNIT_US, false, &out, NULL), 0);
    line = parsed("{\"name\":\"cpu\",\"ph\":2,\"ts\":1,\"args\":{\"hhash\":\"a1\",\"k\":1}}");
    assert_int_equal(pfw_perfetto_add(&perfetto, &line, PFW_UNIT_US, false, &out, NULL), 0);
    assert_int_equal(out.length, 0);
    assert_int_equal(pfw_perfetto_add(&perfetto, &line, PFW_UNIT_US, true, &out, NULL), 0);
    assert_non_null(strstr(buf_string(&out), "{\"name\":\"n1\"}"));
    assert_int_equal(perfetto.counters, 1);
    assert_int_equal(perfetto.values, 1);
    pfw_perfetto_fini(&perfetto);
    buf_fini(&out);
}

static void want_of_memory_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    const char *const events[] = {
        "{\"name\":\"HH\",\"ph\":4,\"args\":{\"hhash\":\"a\",\"name\":\"n\"}}",
        "{\"name\":\"c\\u0070u\",\"cat\":\"sys\",\"ph\":2,\"ts\":1,\"args\":{\"hhash\":\"a\",\"\\u0061\":1,\"b\":2}}",
        "{\"name\":\"read\",\"cat\":\"POSIX\",\"ph\":1,\"ts\":1,\"dur\":2,\"args\":{\"hhash\":\"a\"}}",
    };
    for (size_t n = 0;; n++) {
        struct pfw_perfetto it;
        pfw_perfetto_init(&it);
        struct buf out;
        buf_init(&out, 1 << 20);
        allocation_fail_at(n);
        int rc = 0;
        for (size_t i = 0; i < sizeof events / sizeof events[0] && rc == 0; i++) {
            struct pfw_line line = parsed(events[i]);
            rc = pfw_perfetto_add(&it, &line, PFW_UNIT_US, true, &out, NULL);
        }
        if (rc == 0)
            rc = buf_status(&out, NULL);
        bool has_failed = allocation_stop();
        pfw_perfetto_fini(&it);
        buf_fini(&out);
        assert_int_equal(rc, has_failed ? -ENOMEM : 0);
        if (!has_failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_become_tracks_of_their_host),
        cmocka_unit_test(complete_events_become_slices_of_their_process),
        cmocka_unit_test(nanoseconds_keep_their_digits),
        cmocka_unit_test(what_has_no_place_is_counted),
        cmocka_unit_test(events_that_are_not_wanted_only_give_names),
        cmocka_unit_test(want_of_memory_is_told_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
