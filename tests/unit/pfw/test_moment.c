/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/moment.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void zone(const char *name)
{
    assert_int_equal(setenv("TZ", name, 1), 0);
    tzset();
}

static const char *shown(void (*show)(int64_t, struct buf *), int64_t ns)
{
    static char text[64];
    struct buf out;
    buf_init(&out, sizeof text);
    show(ns, &out);
    (void)snprintf(text, sizeof text, "%s", buf_string(&out));
    buf_fini(&out);
    return text;
}

static void instants_are_shown_in_local_time_and_utc(void **state)
{
    (void)state;
    zone("XYZ-5:30"); /* east of Greenwich */
    assert_string_equal(shown(pfw_moment_local, INT64_C(1796098782398492123)), "2026-12-01 09:49:42.398 +0530");
    assert_string_equal(shown(pfw_moment_utc, INT64_C(1796098782398492123)), "2026-12-01T04:19:42.398492123Z");
    assert_string_equal(shown(pfw_moment_utc, 0), "1970-01-01T00:00:00.000000000Z");
    assert_string_equal(shown(pfw_moment_utc, -1), "1969-12-31T23:59:59.999999999Z");
    assert_string_equal(shown(pfw_moment_utc, INT64_MAX), "2262-04-11T23:47:16.854775807Z");
    zone("UTC0");
}

static void durations_have_a_unit_that_fits(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {0, "0 ns"},
        {999, "999 ns"},
        {1500, "1.5 us"},
        {500000, "500 us"},
        {100000000, "100 ms"},
        {1000000000, "1 s"},
        {2505542000, "2.506 s"},
        {59900000000, "59.9 s"},
        {60000000000, "1 min"},
        {INT64_C(245) * 1000000000, "4 min 5 s"},
        {INT64_C(12000) * 1000000000, "3 h 20 min"},
        {INT64_C(183600) * 1000000000, "2 d 3 h"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(shown(pfw_moment_duration, cases[i].ns), cases[i].text);
}

static void elapsed_time_never_wraps(void **state)
{
    (void)state;
    assert_int_equal(pfw_moment_elapsed_ns(-3, 4), 7);
    assert_int_equal(pfw_moment_elapsed_ns(INT64_MIN, INT64_MAX), INT64_MAX);
    assert_int_equal(pfw_moment_elapsed_ns(INT64_MAX, INT64_MIN), INT64_MIN);
}

static void times_are_read_as_people_write_them(void **state)
{
    (void)state;
    zone("XYZ-5:30");
    const int64_t second = INT64_C(1000000000);
    const struct {
        const char *text;
        int64_t ns;
        bool is_relative;
    } cases[] = {
        {"+5s", 5 * second, true},
        {"+5", 5 * second, true},
        {"+1.5 ms", 1500000, true},
        {"+2min", 120 * second, true},
        {"+2m", 120 * second, true},
        {"+1h", 3600 * second, true},
        {"+0.5d", 43200 * second, true},
        {"1796098782", 1796098782 * second, false},
        {"1796098782.398492123", INT64_C(1796098782398492123), false},
        {"0.5", 500000000, false},
        {"2026-12-01T04:19:42.398492123Z", INT64_C(1796098782398492123), false},
        {"2026-12-01 09:49:42", 1796098782 * second, false}, /* local */
        {"2026-12-01T05:19:42+01:00", 1796098782 * second, false},
        {"2026-11-30T20:19:42-0800", 1796098782 * second, false},
        {"2026-12-01T04:19Z", 1796098740 * second, false},
        {"2026-12-01", 1796063400 * second, false}, /* local midnight */
        {"1970-01-01T00:00:00Z", 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pfw_moment moment;
        struct error err = {0};
        if (pfw_moment_parse(cases[i].text, &moment, &err) < 0)
            fail_msg("%s", err.text);
        if (moment.ns != cases[i].ns || moment.is_relative != cases[i].is_relative)
            fail_msg("%s: %lld", cases[i].text, (long long)moment.ns);
    }
    zone("UTC0");
}

static void what_is_no_time_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "+",
        "+x",
        "+5 weeks",
        "+-5s",
        "-5s",
        "abc",
        "12x",
        "1e9",
        "1796098782.",
        ".5",
        "99999999999999",
        "2026-13-01",
        "2026-12-32",
        "2026-02-31",
        "2026-12-01T25:00",
        "2026-12-01T04:19:42X",
        "2026-12-01T04:19:42+1",
        "2026-12-01T",
        "2026-1-1",
        "2026-12-01 04:19:42 Z x",
        "+1e300d",
        "9999-01-01",
        "NaN",
        "+nan",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct pfw_moment moment;
        struct error err = {0};
        if (pfw_moment_parse(texts[i], &moment, &err) != -EINVAL)
            fail_msg("'%s' became %lld", texts[i], (long long)moment.ns);
        assert_non_null(strstr(err.text, texts[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instants_are_shown_in_local_time_and_utc),
        cmocka_unit_test(durations_have_a_unit_that_fits),
        cmocka_unit_test(elapsed_time_never_wraps),
        cmocka_unit_test(times_are_read_as_people_write_them),
        cmocka_unit_test(what_is_no_time_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
