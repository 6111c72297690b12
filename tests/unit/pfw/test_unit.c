/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct pfw_line parsed(const char *text)
{
    struct pfw_line line;
    struct error err = {0};
    if (pfw_line_parse(text, strlen(text), &line, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return line;
}

static void a_stamp_of_any_date_tells_its_unit(void **state)
{
    (void)state;
    static const struct {
        int64_t ts;
        enum pfw_unit unit;
    } cases[] = {
        {1796098782, PFW_UNIT_SEC},
        {1796098782398, PFW_UNIT_MS},
        {1796098782398492, PFW_UNIT_US},
        {1796098782398492123, PFW_UNIT_NS},
        {100000000, PFW_UNIT_SEC},        /* March 1973 */
        {99999999999999999, PFW_UNIT_US}, /* the year 5138 */
        {12345, PFW_UNIT_US},             /* no date: counts from some start */
        {-5, PFW_UNIT_US},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (pfw_unit_guess(cases[i].ts) != cases[i].unit)
            fail_msg("%lld: %s", (long long)cases[i].ts, pfw_unit_name(pfw_unit_guess(cases[i].ts)));
    }
}

static void nanoseconds_never_wrap(void **state)
{
    (void)state;
    assert_int_equal(pfw_unit_to_ns(PFW_UNIT_US, 1796098782398492), INT64_C(1796098782398492000));
    assert_int_equal(pfw_unit_to_ns(PFW_UNIT_NS, 7), 7);
    assert_int_equal(pfw_unit_to_ns(PFW_UNIT_MS, -7), -7000000);
    assert_int_equal(pfw_unit_to_ns(PFW_UNIT_UNKNOWN, 7), 7000);
    assert_int_equal(pfw_unit_to_ns(PFW_UNIT_SEC, INT64_MAX / 2), INT64_MAX);
    assert_int_equal(pfw_unit_to_ns(PFW_UNIT_SEC, INT64_MIN / 2), INT64_MIN);
}

static void what_the_trace_says_counts_more_than_its_stamps(void **state)
{
    (void)state;
    static const struct {
        const char *event;
        enum pfw_unit unit;
        bool is_told;
    } cases[] = {
        {"{\"name\":\"start\",\"cat\":\"dftracer\",\"ts\":5,\"args\":{\"time_metric\":\"ms\"}}", PFW_UNIT_MS, true},
        {"{\"name\":\"end\",\"cat\":\"dftracer\",\"args\":{\"cfg\":{\"time_metric\":\"SEC\"}}}", PFW_UNIT_SEC, true},
        {"{\"name\":\"CM\",\"cat\":\"dftracer\",\"args\":{\"name\":\"time_metric\",\"value\":\"NS\"}}", PFW_UNIT_NS,
         true},
        {"{\"name\":\"PR\",\"cat\":\"dftracer\",\"args\":{\"name\":\"other\",\"value\":\"NS\"}}", PFW_UNIT_UNKNOWN,
         false},
        {"{\"name\":\"start\",\"cat\":\"app\",\"ts\":5,\"args\":{\"time_metric\":\"MS\"}}", PFW_UNIT_US, false},
        {"{\"name\":\"start\",\"cat\":\"dftracer\",\"ts\":1796098782,\"args\":{\"time_metric\":\"weeks\"}}",
         PFW_UNIT_SEC, false},
        {"{\"name\":\"cpu\",\"ts\":0}", PFW_UNIT_UNKNOWN, false},
        {"{\"name\":\"HH\"}", PFW_UNIT_UNKNOWN, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pfw_unit_of_trace unit = {0};
        struct pfw_line line = parsed(cases[i].event);
        pfw_unit_observe(&unit, &line);
        if (unit.unit != cases[i].unit || unit.is_told != cases[i].is_told)
            fail_msg("%s: '%s'", cases[i].event, pfw_unit_name(unit.unit));
    }
}

static void a_unit_once_guessed_stays(void **state)
{
    (void)state;
    struct pfw_unit_of_trace unit = {0};
    struct pfw_line line = parsed("{\"ts\":99}");
    pfw_unit_observe(&unit, &line);
    line = parsed("{\"ts\":1796098782}");
    pfw_unit_observe(&unit, &line);
    assert_int_equal(unit.unit, PFW_UNIT_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stamp_of_any_date_tells_its_unit),
        cmocka_unit_test(nanoseconds_never_wrap),
        cmocka_unit_test(what_the_trace_says_counts_more_than_its_stamps),
        cmocka_unit_test(a_unit_once_guessed_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
