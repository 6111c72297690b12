/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/pmcounters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "drive.h"

static void numbers_count_in_their_unit_only(void **state)
{
    (void)state;
    static const struct {
        const char *text, *unit;
        bool is_good;
        uint64_t number;
    } texts[] = {
        {"245 W 1668514395313524 us\n", "W", true, 245},
        {"123456 J 1668514395313524 us", "J", true, 123456},
        {"0 W", "W", true, 0},
        {"245 W 1668514395313524 us\n", "J", false, 0},
        {"245 kW 1 us\n", "W", false, 0},
        {"-5 W 1 us\n", "W", false, 0},
        {"99999999999999999999 J 1 us\n", "J", false, 0},
        {"W\n", "W", false, 0},
        {"", "W", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        uint64_t number = 0;
        bool is_good = pmcounters_parse(texts[i].text, strlen(texts[i].text), texts[i].unit, &number);
        if (is_good != texts[i].is_good || number != texts[i].number)
            fail_msg("'%s' as %s: %d, %llu", texts[i].text, texts[i].unit, is_good, (unsigned long long)number);
    }
}

static void parts_of_a_blade_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *name, *group;
        uint64_t watts, joules;
    } expected[] = {
        {"accel0", "gpu", 88, 500000},     {"accel1", "gpu", 90, 500001},  {"cpu", "cpu", 105, 2000000},
        {"memory", "memory", 41, 1000000}, {"node", "node", 412, 9876543},
    };
    struct pmcounters counters;
    assert_int_equal(pmcounters_init(&counters, RECORDED_DIR "/power-cray/sys", NULL), 0);
    assert_int_equal(counters.count, ARRAY_LENGTH(expected)); /* power_cap is none */
    for (size_t i = 0; i < counters.count; i++) {
        uint64_t watts = 0;
        uint64_t joules = 0;
        assert_string_equal(counters.parts[i].name, expected[i].name);
        assert_string_equal(counters.parts[i].group, expected[i].group);
        assert_true(pmcounters_power(&counters.parts[i], &watts));
        assert_true(pmcounters_energy(&counters.parts[i], &joules));
        assert_int_equal(watts, expected[i].watts);
        assert_int_equal(joules, expected[i].joules);
    }
    pmcounters_fini(&counters);
}

static void part_without_energy_has_its_power(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    drive_write(&scratch, "cray/pm_counters/cpu_power", "7 W 1 us\n");
    struct pmcounters counters;
    assert_int_equal(pmcounters_init(&counters, scratch.path, NULL), 0);
    assert_int_equal(counters.count, 1);
    uint64_t number = 0;
    assert_false(pmcounters_energy(&counters.parts[0], &number));
    assert_true(pmcounters_power(&counters.parts[0], &number));
    assert_int_equal(number, 7);
    pmcounters_fini(&counters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_count_in_their_unit_only),
        cmocka_unit_test(parts_of_a_blade_are_found),
        cmocka_unit_test(part_without_energy_has_its_power),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
