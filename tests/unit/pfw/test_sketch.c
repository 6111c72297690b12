/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/sketch.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/random.h"

static void add(struct pfw_sketch *sketch, double value)
{
    assert_int_equal(pfw_sketch_add(sketch, value, NULL), 0);
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The quantile by its definition. */
static double nearest_rank(const double *sorted, size_t count, double part)
{
    size_t rank = (size_t)ceil(part * (double)count);
    return sorted[rank < 1 ? 0 : rank - 1];
}

static void few_numbers_have_exact_quantiles(void **state)
{
    (void)state;
    struct pfw_sketch sketch = {0};
    assert_true(pfw_sketch_quantile(&sketch, 0.5) == 0);
    assert_true(pfw_sketch_mean(&sketch) == 0);
    static const double values[] = {5, -3, 0, 0, 7.25, 1e-9, -3, 100, 2, 0};
    for (size_t i = 0; i < 10; i++)
        add(&sketch, values[i]);
    assert_true(pfw_sketch_is_exact(&sketch));
    assert_int_equal(sketch.count, 10);
    assert_true(sketch.min == -3 && sketch.max == 100);
    assert_true(fabs(pfw_sketch_mean(&sketch) - 10.8250000001) < 1e-12);
    double sorted[10];
    memcpy(sorted, values, sizeof sorted);
    qsort(sorted, 10, sizeof *sorted, compare);
    for (int step = 0; step <= 20; step++) {
        double part = step / 20.0;
        if (pfw_sketch_quantile(&sketch, part) != nearest_rank(sorted, 10, part))
            fail_msg("quantile %g is %g", part, pfw_sketch_quantile(&sketch, part));
    }
    pfw_sketch_fini(&sketch);
}

static double uniform(struct random *random)
{
    return (double)random_below(random, 1 << 30) / (1 << 30);
}

static double draw(int distribution, struct random *random)
{
    switch (distribution) {
    case 0: /* percentages, many of them 0 */
        return uniform(random) < 0.4 ? 0 : 100 * uniform(random);
    case 1: /* bytes over ten decades */
        return floor(pow(10, 10 * uniform(random)));
    case 2: /* temperatures below and above 0 */
        return 40 * uniform(random) - 20;
    case 3: /* one value for nearly all */
        return uniform(random) < 0.98 ? 4096 : 1e12;
    default: /* all negative */
        return -exp(10 * uniform(random));
    }
}

static void quantiles_of_many_numbers_keep_the_stated_error(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    struct random random = random_new("sketch");
    static double values[COUNT];
    for (int distribution = 0; distribution < 5; distribution++) {
        struct pfw_sketch sketch = {0};
        double sum = 0;
        for (size_t i = 0; i < COUNT; i++) {
            values[i] = draw(distribution, &random);
            sum += values[i];
            add(&sketch, values[i]);
        }
        qsort(values, COUNT, sizeof *values, compare);
        assert_false(pfw_sketch_is_exact(&sketch));
        for (int step = 0; step <= 64; step++) {
            double part = step / 64.0;
            double exact = nearest_rank(values, COUNT, part);
            double got = pfw_sketch_quantile(&sketch, part);
            if (fabs(got - exact) > fabs(exact) * PFW_SKETCH_RELATIVE_ERROR)
                fail_msg("distribution %d, quantile %g: %g, not %g", distribution, part, got, exact);
        }
        assert_true(sketch.min == values[0] && sketch.max == values[COUNT - 1]);
        assert_true(fabs(pfw_sketch_mean(&sketch) - sum / COUNT) <= fabs(sum / COUNT) * 1e-9);
        pfw_sketch_fini(&sketch);
    }
}

static void a_span_too_wide_for_the_bins_spoils_only_the_smallest(void **state)
{
    (void)state;
    struct pfw_sketch sketch = {0};
    for (int i = 0; i < 1000; i++) {
        add(&sketch, ldexp(1, -1000));
        add(&sketch, ldexp(1, 1000));
        add(&sketch, ldexp(1, 990));
    }
    assert_true(sketch.bins[0].length <= PFW_SKETCH_BINS_MAX);
    assert_true(fabs(pfw_sketch_quantile(&sketch, 0.5) / ldexp(1, 990) - 1) <= PFW_SKETCH_RELATIVE_ERROR);
    assert_true(fabs(pfw_sketch_quantile(&sketch, 0.99) / ldexp(1, 1000) - 1) <= PFW_SKETCH_RELATIVE_ERROR);
    assert_true(pfw_sketch_quantile(&sketch, 0.1) <= ldexp(1, 1000 - 62));
    pfw_sketch_fini(&sketch);
}

static void a_value_that_comes_again_and_again_is_exact(void **state)
{
    (void)state;
    static const double values[] = {4096, 1, 0.1, 123456789, -7.5};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct pfw_sketch sketch = {0};
        for (int round = 0; round < 1000; round++) {
            add(&sketch, values[i]);
            if (round % 10 == 0)
                add(&sketch, values[i] * 10);
            if (round % 20 == 0)
                add(&sketch, values[i] / 10);
        }
        assert_false(pfw_sketch_is_exact(&sketch));
        if (fabs(pfw_sketch_quantile(&sketch, 0.5) / values[i] - 1) > 1e-8)
            fail_msg("%g became %.17g", values[i], pfw_sketch_quantile(&sketch, 0.5));
        pfw_sketch_fini(&sketch);
    }
}

static void for_want_of_memory_a_number_is_not_counted(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct pfw_sketch sketch = {0};
        uint64_t added = 0;
        allocation_fail_at(n);
        for (int i = 1; i <= 1000; i++)
            added += pfw_sketch_add(&sketch, i, NULL) == 0;
        bool has_failed = allocation_stop();
        assert_int_equal(sketch.count, added);
        assert_int_equal(added, has_failed ? 999 : 1000);
        assert_true(fabs(pfw_sketch_quantile(&sketch, 0.5) - 500) < 500 * PFW_SKETCH_RELATIVE_ERROR + 1);
        pfw_sketch_fini(&sketch);
        if (!has_failed)
            break;
    }
}

static void sums_of_many_keep_small_terms(void **state)
{
    (void)state;
    struct pfw_sketch sketch = {0};
    add(&sketch, 1e16);
    for (int i = 0; i < 10000; i++)
        add(&sketch, 1); /* 1e16 + 1 has no double of its own */
    assert_true(pfw_sketch_mean(&sketch) == (1e16 + 10000) / 10001);
    pfw_sketch_fini(&sketch);
}

static void the_mean_of_finite_numbers_is_finite_and_between_them(void **state)
{
    (void)state;
    struct pfw_sketch sketch = {0};
    for (int i = 0; i < 1000; i++)
        add(&sketch, i % 10 == 9 ? 1e308 : 1.7e308);
    double mean = pfw_sketch_mean(&sketch);
    if (!(fabs(mean - 1.63e308) < 1e294))
        fail_msg("the mean is %g", mean);
    pfw_sketch_fini(&sketch);

    sketch = (struct pfw_sketch){0};
    for (int i = 0; i < 1000; i++)
        add(&sketch, -DBL_MAX);
    assert_true(pfw_sketch_mean(&sketch) == -DBL_MAX);
    pfw_sketch_fini(&sketch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_numbers_have_exact_quantiles),
        cmocka_unit_test(quantiles_of_many_numbers_keep_the_stated_error),
        cmocka_unit_test(a_span_too_wide_for_the_bins_spoils_only_the_smallest),
        cmocka_unit_test(a_value_that_comes_again_and_again_is_exact),
        cmocka_unit_test(for_want_of_memory_a_number_is_not_counted),
        cmocka_unit_test(sums_of_many_keep_small_terms),
        cmocka_unit_test(the_mean_of_finite_numbers_is_finite_and_between_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
