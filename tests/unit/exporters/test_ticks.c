/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporters/mpi/ticks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const int64_t ms_ns = 1000000;

static void open_with(const char *forced)
{
    if (forced != NULL)
        assert_int_equal(setenv("FORCED_TICKS", forced, 1), 0);
    else
        assert_int_equal(unsetenv("FORCED_TICKS"), 0);
    ticks_open();
}

/* The interval of `length_ns`, as ticks see it, lies between the inner and the outer one of the monotonic clock. */
static void check_interval(int64_t length_ns)
{
    int64_t outer_start = ticks_mono_ns();
    uint64_t start = ticks_now();
    int64_t inner_start = ticks_mono_ns();
    int64_t inner_end = inner_start;
    while (inner_end - inner_start < length_ns)
        inner_end = ticks_mono_ns();
    uint64_t end = ticks_now();
    int64_t outer_end = ticks_mono_ns();
    int64_t seen_ns = (int64_t)ticks_to_ns(start, end);
    /* A rate that was measured over a short time is off by two readings of a clock. */
    int64_t error_ns = length_ns / 10;
    assert_in_range(seen_ns, inner_end - inner_start - error_ns, outer_end - outer_start + error_ns);
}

static void the_first_interval_is_right_without_waiting(void **state)
{
    (void)state;
    open_with(NULL);
    check_interval(5 * ms_ns);
}

static void the_rate_is_fixed_after_a_while_and_stays_right(void **state)
{
    (void)state;
    open_with(NULL);
    int64_t give_up_ns = ticks_mono_ns() + 60 * 1000 * ms_ns;
    while (ticks.ns_per_tick_32 == 0 && ticks_mono_ns() < give_up_ns)
        check_interval(10 * ms_ns);
    assert_true(ticks.ns_per_tick_32 != 0);
    check_interval(20 * ms_ns);
}

static void time_never_runs_backwards(void **state)
{
    (void)state;
    open_with(NULL);
    assert_int_equal(ticks_to_ns(1000, 999), 0);
    assert_int_equal(ticks_to_ns(1000, 1000), 0);
}

static void a_long_time_does_not_overflow(void **state)
{
    (void)state;
    open_with("3000000000");
    if (!ticks.is_counter)
        skip();
    const uint64_t year_ticks = UINT64_C(3000000000) * 86400 * 365;
    assert_in_range(ticks_to_ns(1, 1 + year_ticks) / 1000000, UINT64_C(86400) * 365 * 1000 - 100,
                    UINT64_C(86400) * 365 * 1000 + 100);
}

static void a_person_may_give_the_rate(void **state)
{
    (void)state;
    open_with("1000000000");
    if (!ticks.is_counter)
        skip(); /* no counter of an even rate here: the rate would be that of nothing */
    assert_int_equal(ticks_to_ns(0, 123456), 123456);
    open_with("2000000000");
    assert_int_equal(ticks_to_ns(0, 123456), 61728);
}

static void a_rate_that_is_none_is_ignored(void **state)
{
    (void)state;
    static const char *const texts[] = {"",  "x",  "-2000000000", "2000000000x",
                                        "0", "17", "1e9",         "99999999999999999999"};
    open_with(NULL);
    uint64_t usual = ticks.ns_per_tick_32;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        open_with(texts[i]);
        if (ticks.ns_per_tick_32 != usual)
            fail_msg("'%s' is taken for a rate", texts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_interval_is_right_without_waiting),
        cmocka_unit_test(the_rate_is_fixed_after_a_while_and_stays_right),
        cmocka_unit_test(time_never_runs_backwards),
        cmocka_unit_test(a_long_time_does_not_overflow),
        cmocka_unit_test(a_person_may_give_the_rate),
        cmocka_unit_test(a_rate_that_is_none_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
