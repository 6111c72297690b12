/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/rapl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "drive.h"

static const uint64_t range_uj = 262143328850;
static const int64_t second_ns = CLOCK_NS_PER_SECOND;

static struct rapl_counter counter_at(uint64_t raw_uj)
{
    struct rapl_counter counter = {.range_uj = range_uj};
    assert_int_equal(rapl_counter_step(&counter, raw_uj, 0), raw_uj);
    return counter;
}

static void counter_that_wraps_goes_on(void **state)
{
    (void)state;
    struct rapl_counter counter = counter_at(range_uj - 100);
    assert_int_equal(rapl_counter_step(&counter, 50, second_ns), range_uj + 50);
    assert_int_equal(rapl_counter_step(&counter, 80, 2 * second_ns), range_uj + 80);
    assert_int_equal(rapl_counter_step(&counter, range_uj, 700 * second_ns), 2 * range_uj);
    assert_int_equal(rapl_counter_step(&counter, 30, 701 * second_ns), 2 * range_uj + 30);
}

static void counter_that_was_reset_is_no_wrap(void **state)
{
    (void)state;
    /* 200 kJ in a second would be 200 kW */
    struct rapl_counter counter = counter_at(62143328850);
    assert_int_equal(rapl_counter_step(&counter, 1000, second_ns), 62143328850 + 1000);
    assert_int_equal(rapl_counter_step(&counter, 3000, 2 * second_ns), 62143328850 + 3000);
    /* the same in a quarter of an hour is a busy package */
    counter = counter_at(62143328850);
    assert_int_equal(rapl_counter_step(&counter, 1000, 900 * second_ns), range_uj + 1000);
}

static void counter_that_was_reset_to_anything_loses_one_period(void **state)
{
    (void)state;
    struct rapl_counter counter = counter_at(200000000000);
    assert_int_equal(rapl_counter_step(&counter, 100000000000, second_ns), 200000000000);
    assert_int_equal(rapl_counter_step(&counter, 100000000007, 2 * second_ns), 200000000007);
}

static void range_that_is_unknown_or_wrong_makes_no_wrap(void **state)
{
    (void)state;
    struct rapl_counter counter = {.range_uj = 0};
    assert_int_equal(rapl_counter_step(&counter, 500, 0), 500);
    assert_int_equal(rapl_counter_step(&counter, 20, second_ns), 520);
    counter = (struct rapl_counter){.range_uj = 100};
    assert_int_equal(rapl_counter_step(&counter, 500, 0), 500);
    assert_int_equal(rapl_counter_step(&counter, 20, second_ns), 520);
    assert_int_equal(rapl_counter_step(&counter, 10, second_ns), 520); /* no time has passed: nothing can be told */
}

static void zones_have_unique_names_and_groups(void **state)
{
    (void)state;
    static const struct {
        const char *name, *group;
        uint64_t energy_uj;
    } expected[] = {
        {"core-1", "cpu", 23000000},      {"core-2-die-1", "cpu", 6000},      {"dram-0", "memory", 11000000},
        {"dram-1", "memory", 22000000},   {"package-0", "cpu", 111000000000}, {"package-1", "cpu", 222000000000},
        {"package-2-die-1", "cpu", 5000}, {"psys", "node", 333000000},        {"uncore-1", "gpu", 24000000},
    };
    struct rapl rapl;
    assert_int_equal(rapl_init(&rapl, RECORDED_DIR "/power-rapl/sys", NULL), 0);
    assert_int_equal(rapl.count, ARRAY_LENGTH(expected)); /* without intel-rapl-mmio, which tells package-0 again */
    for (size_t i = 0; i < rapl.count; i++) {
        uint64_t energy_uj = 0;
        assert_string_equal(rapl.zones[i].name, expected[i].name);
        assert_string_equal(rapl.zones[i].group, expected[i].group);
        assert_true(rapl_zone_read(&rapl.zones[i], second_ns, &energy_uj));
        assert_int_equal(energy_uj, expected[i].energy_uj);
        assert_int_equal(rapl.zones[i].counter.range_uj, range_uj);
    }
    rapl_fini(&rapl);
}

static void machine_without_rapl_has_no_zones(void **state)
{
    (void)state;
    struct rapl rapl;
    assert_int_equal(rapl_init(&rapl, "/nowhere", NULL), 0);
    assert_int_equal(rapl.count, 0);
    assert_int_equal(rapl.denied, 0);
    rapl_fini(&rapl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counter_that_wraps_goes_on),
        cmocka_unit_test(counter_that_was_reset_is_no_wrap),
        cmocka_unit_test(counter_that_was_reset_to_anything_loses_one_period),
        cmocka_unit_test(range_that_is_unknown_or_wrong_makes_no_wrap),
        cmocka_unit_test(zones_have_unique_names_and_groups),
        cmocka_unit_test(machine_without_rapl_has_no_zones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
