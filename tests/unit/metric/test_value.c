/* SPDX-License-Identifier: BSD-3-Clause */
#include "metric/value.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/random.h"
#include "util/cleanup.h"

/* Whole numbers, so that sums are exact in every order. */
static struct metric_value any_value(struct random *random, enum metric_kind kind)
{
    double number = (double)random_below(random, 1000) - (kind == METRIC_GAUGE ? 500 : 0);
    int64_t wall_us = (int64_t)random_below(random, 1000);
    if (kind == METRIC_COUNTER)
        return metric_counter(number, wall_us);
    return random_below(random, 5) == 0 ? metric_zero(METRIC_GAUGE) : metric_gauge(number, wall_us);
}

static void assert_same(const struct metric_value *a, const struct metric_value *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->wall_us, b->wall_us);
    if (a->kind == METRIC_COUNTER) {
        assert_true(a->counter == b->counter);
        return;
    }
    assert_true(a->gauge.min == b->gauge.min && a->gauge.max == b->gauge.max);
    assert_true(a->gauge.hits == b->gauge.hits && a->gauge.total == b->gauge.total);
}

static void merging_is_commutative_and_associative(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (int round = 0; round < 10000; round++) {
        enum metric_kind kind = random_below(&random, 2) == 0 ? METRIC_COUNTER : METRIC_GAUGE;
        struct metric_value a = any_value(&random, kind);
        struct metric_value b = any_value(&random, kind);
        struct metric_value c = any_value(&random, kind);

        struct metric_value ab = a;
        struct metric_value ba = b;
        assert_true(metric_merge(&ab, &b) && metric_merge(&ba, &a));
        assert_same(&ab, &ba);

        struct metric_value left = ab;
        struct metric_value bc = b;
        struct metric_value right = a;
        assert_true(metric_merge(&left, &c) && metric_merge(&bc, &c) && metric_merge(&right, &bc));
        assert_same(&left, &right);
    }
}

static void nothing_is_neutral(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (int round = 0; round < 1000; round++) {
        enum metric_kind kind = round % 2 == 0 ? METRIC_COUNTER : METRIC_GAUGE;
        struct metric_value value = any_value(&random, kind);
        struct metric_value nothing = metric_zero(kind);
        struct metric_value merged = value;
        assert_true(metric_merge(&merged, &nothing));
        assert_same(&merged, &value);
        assert_true(metric_merge(&nothing, &value));
        assert_same(&nothing, &value);
    }
}

static void a_counter_and_a_gauge_do_not_merge(void **state)
{
    (void)state;
    struct metric_value counter = metric_counter(3, 7);
    const struct metric_value before = counter;
    struct metric_value gauge = metric_gauge(4, 9);
    assert_false(metric_merge(&counter, &gauge));
    assert_same(&counter, &before);
}

static void what_is_not_finite_is_zero_or_unset(void **state)
{
    (void)state;
    const double bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        assert_true(metric_counter(bad[i], 0).counter == 0);
        struct metric_value gauge = metric_gauge(bad[i], 0);
        assert_true(gauge.gauge.min == 0 && gauge.gauge.max == 0 && gauge.gauge.total == 0 && gauge.gauge.hits == 1);
        const struct metric_gauge parts[] = {
            {bad[i], 1, 1, 1}, {0, bad[i], 1, 1}, {0, 1, bad[i], 1}, {0, 1, 1, bad[i]}};
        for (size_t part = 0; part < ARRAY_LENGTH(parts); part++)
            assert_true(metric_gauge_of(parts[part], 0).gauge.hits == 0);
    }
    assert_true(metric_counter(-1, 0).counter == 0);
    assert_true(metric_gauge_of((struct metric_gauge){2, 1, 1, 1}, 0).gauge.hits == 0); /* least above greatest */
    assert_true(metric_gauge_of((struct metric_gauge){0, 1, -1, 1}, 0).gauge.hits == 0);
}

static void sums_stay_finite(void **state)
{
    (void)state;
    struct metric_value counter = metric_counter(DBL_MAX, 0);
    assert_true(metric_merge(&counter, &(struct metric_value){.kind = METRIC_COUNTER, .counter = DBL_MAX}));
    assert_true(counter.counter == DBL_MAX);
    struct metric_value gauge = metric_gauge(-DBL_MAX, 0);
    struct metric_value other = gauge;
    assert_true(metric_merge(&gauge, &other));
    assert_true(gauge.gauge.total == -DBL_MAX && isfinite(metric_shown(&gauge)));
    struct metric_value tiny =
        metric_gauge_of((struct metric_gauge){.min = 1, .max = 1, .hits = 1e-300, .total = 1e300}, 0);
    assert_true(metric_shown(&tiny) == DBL_MAX);
    assert_true(metric_sum(-DBL_MAX, -DBL_MAX) == -DBL_MAX);
}

static void people_see_the_mean_of_a_gauge(void **state)
{
    (void)state;
    struct metric_value gauge = metric_gauge(2, 0);
    const struct metric_value other = metric_gauge(6, 0);
    assert_true(metric_merge(&gauge, &other));
    assert_true(metric_shown(&gauge) == 4);
    struct metric_value unset = metric_zero(METRIC_GAUGE);
    assert_true(metric_shown(&unset) == 0);
    assert_true(metric_is_zero(&unset) && !metric_is_zero(&gauge));
    struct metric_value around_zero = metric_gauge(-3, 0);
    const struct metric_value opposite = metric_gauge(3, 0);
    assert_true(metric_merge(&around_zero, &opposite));
    assert_false(metric_is_zero(&around_zero)); /* its mean is 0, but it isn't nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_is_commutative_and_associative),
        cmocka_unit_test(nothing_is_neutral),
        cmocka_unit_test(a_counter_and_a_gauge_do_not_merge),
        cmocka_unit_test(what_is_not_finite_is_zero_or_unset),
        cmocka_unit_test(sums_stay_finite),
        cmocka_unit_test(people_see_the_mean_of_a_gauge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
