/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/num.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/cleanup.h"

static void sums_and_products_that_wrap_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t a, b;
        bool has_sum, has_product;
    } cases[] = {
        {0, 0, true, true},
        {0, SIZE_MAX, true, true},
        {1, SIZE_MAX, false, true},
        {2, SIZE_MAX / 2, true, true},
        {2, SIZE_MAX / 2 + 1, true, false},
        {SIZE_MAX, SIZE_MAX, false, false},
        {3, 4, true, true},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        size_t a = cases[i].a;
        size_t b = cases[i].b;
        size_t sum = 99;
        size_t product = 99;
        assert_int_equal(num_add_size(a, b, &sum), cases[i].has_sum);
        assert_int_equal(num_mul_size(a, b, &product), cases[i].has_product);
        assert_int_equal(sum, cases[i].has_sum ? a + b : 99); /* outputs are untouched on failure */
        assert_int_equal(product, cases[i].has_product ? a * b : 99);
    }
}

static void smaller_and_larger_are_unsigned(void **state)
{
    (void)state;
    assert_int_equal(num_min_u64(1, UINT64_MAX), 1);
    assert_int_equal(num_min_u64(UINT64_MAX, 1), 1);
    assert_true(num_max_u64(1, UINT64_MAX) == UINT64_MAX);
    assert_true(num_max_u64(UINT64_MAX, 1) == UINT64_MAX);
    assert_int_equal(num_max_u64(5, 5), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_products_that_wrap_are_refused),
        cmocka_unit_test(smaller_and_larger_are_unsigned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
