/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/cadence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int64_t second = INT64_C(1000000000);

/* A host of `series` series that are sampled at each of these seconds. */
static void run(struct pfw_cadence *cadence, const double *at_s, size_t count, unsigned series)
{
    for (size_t i = 0; i < count; i++) {
        for (unsigned j = 0; j < series; j++) {
            int64_t at_ns = (int64_t)(at_s[i] * 1e9) + j * 1000;
            if (i > 0)
                assert_int_equal(pfw_cadence_step(cadence, (int64_t)((at_s[i] - at_s[i - 1]) * 1e9), NULL), 0);
            pfw_cadence_sample(cadence, at_ns);
        }
    }
}

static void the_interval_is_the_median_step_and_gaps_are_longer(void **state)
{
    (void)state;
    static const double at_s[] = {0, 1, 2, 3.2, 4, 5, 8, 9, 10, 11.4, 12, 14};
    struct pfw_cadence cadence = {0};
    run(&cadence, at_s, sizeof at_s / sizeof at_s[0], 5);
    double interval_s = pfw_cadence_interval_s(&cadence);
    assert_true(interval_s > 0.999 && interval_s < 1.001);
    struct pfw_silence gaps[PFW_CADENCE_GAPS_MAX];
    assert_int_equal(pfw_cadence_gaps(&cadence, interval_s, gaps), 2);
    assert_int_equal(gaps[0].from_ns, 5 * second + 4000);
    assert_int_equal(gaps[0].to_ns, 8 * second);
    assert_int_equal(gaps[1].to_ns, 14 * second);
    pfw_cadence_fini(&cadence);
}

static void a_gap_right_at_the_begin_is_found(void **state)
{
    (void)state;
    static const double at_s[] = {0, 60, 61, 62, 63, 64};
    struct pfw_cadence cadence = {0};
    run(&cadence, at_s, sizeof at_s / sizeof at_s[0], 3);
    struct pfw_silence gaps[PFW_CADENCE_GAPS_MAX];
    assert_int_equal(pfw_cadence_gaps(&cadence, pfw_cadence_interval_s(&cadence), gaps), 1);
    pfw_cadence_fini(&cadence);
}

static void time_between_two_runs_is_no_gap(void **state)
{
    (void)state;
    static const double first[] = {0, 1, 2, 3};
    static const double second_run[] = {1000, 1001, 1002};
    struct pfw_cadence cadence = {0};
    run(&cadence, first, 4, 1);
    pfw_cadence_restart(&cadence);
    run(&cadence, second_run, 3, 1);
    struct pfw_silence gaps[PFW_CADENCE_GAPS_MAX];
    assert_int_equal(pfw_cadence_gaps(&cadence, pfw_cadence_interval_s(&cadence), gaps), 0);
    pfw_cadence_fini(&cadence);
}

static void a_series_that_is_sampled_in_turn_makes_no_gap(void **state)
{
    (void)state;
    struct pfw_cadence cadence = {0};
    for (int64_t i = 0; i < 100; i++) {
        if (i > 0)
            assert_int_equal(pfw_cadence_step(&cadence, second, NULL), 0);
        if (i % 10 == 0 && i > 0)
            assert_int_equal(pfw_cadence_step(&cadence, 10 * second, NULL), 0);
        pfw_cadence_sample(&cadence, i * second);
    }
    struct pfw_silence gaps[PFW_CADENCE_GAPS_MAX];
    double interval_s = pfw_cadence_interval_s(&cadence);
    assert_true(interval_s > 0.999 && interval_s < 1.001);
    assert_int_equal(pfw_cadence_gaps(&cadence, interval_s, gaps), 0);
    pfw_cadence_fini(&cadence);
}

static void of_more_gaps_than_fit_the_longest_are_kept(void **state)
{
    (void)state;
    struct pfw_cadence cadence = {0};
    int64_t now_ns = 0;
    pfw_cadence_sample(&cadence, now_ns);
    for (int64_t i = 1; i <= 3 * PFW_CADENCE_GAPS_MAX; i++) {
        now_ns += second;
        pfw_cadence_sample(&cadence, now_ns);
        now_ns += second * (2 + i);
        pfw_cadence_sample(&cadence, now_ns);
    }
    struct pfw_silence gaps[PFW_CADENCE_GAPS_MAX];
    assert_int_equal(pfw_cadence_gaps(&cadence, 1, gaps), PFW_CADENCE_GAPS_MAX);
    for (size_t i = 0; i < PFW_CADENCE_GAPS_MAX; i++)
        assert_int_equal(gaps[i].to_ns - gaps[i].from_ns, second * (2 + 2 * PFW_CADENCE_GAPS_MAX + 1 + (int64_t)i));
    assert_int_equal(pfw_cadence_gaps(&cadence, 0, gaps), 0); /* without an interval there are none */
    pfw_cadence_fini(&cadence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_interval_is_the_median_step_and_gaps_are_longer),
        cmocka_unit_test(a_gap_right_at_the_begin_is_found),
        cmocka_unit_test(time_between_two_runs_is_no_gap),
        cmocka_unit_test(a_series_that_is_sampled_in_turn_makes_no_gap),
        cmocka_unit_test(of_more_gaps_than_fit_the_longest_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
