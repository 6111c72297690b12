/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/codec.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/random.h"
#include "util/cleanup.h"

enum { COUNT = 1024, TEXT_MAX_BYTES = 1 << 20 };

static double of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Codes and decodes; returns how many bytes it took. */
static size_t assert_round_trip(const double *values, size_t count)
{
    CLEANUP(buf_cleanup) struct buf coded;
    buf_init(&coded, TEXT_MAX_BYTES);
    struct error err = {0};
    if (codec_encode(values, count, &coded, &err) < 0)
        fail_msg("%s", err.text);
    double *back = calloc(count + 1, sizeof *back);
    assert_non_null(back);
    if (codec_decode(coded.data, coded.length, back, count, &err) < 0)
        fail_msg("%s", err.text);
    assert_memory_equal(back, values, count * sizeof *values);
    free(back);
    return coded.length;
}

static void every_double_comes_back_bit_for_bit(void **state)
{
    (void)state;
    const double values[] = {0,
                             -0.0,
                             1,
                             -1,
                             0.1,
                             1e308,
                             -1e308,
                             DBL_MIN,
                             DBL_MAX,
                             5e-324,
                             -5e-324,
                             INFINITY,
                             -INFINITY,
                             NAN,
                             1.0 / 3,
                             9007199254740993.0,
                             1e15,
                             123.456,
                             of_bits(0x7ff0000000000001),
                             of_bits(0xfff8deadbeef0001)};
    for (size_t count = 1; count <= ARRAY_LENGTH(values); count++)
        (void)assert_round_trip(values, count);
    for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
        (void)assert_round_trip(&values[i], 1);
        double column[100]; /* one of them among numbers of another kind */
        for (size_t j = 0; j < ARRAY_LENGTH(column); j++)
            column[j] = (double)j / 10;
        column[57] = values[i];
        (void)assert_round_trip(column, ARRAY_LENGTH(column));
    }
}

static void minus_zero_is_not_zero(void **state)
{
    (void)state;
    double values[COUNT] = {0};
    for (size_t i = 0; i < COUNT; i += 3)
        values[i] = -0.0;
    (void)assert_round_trip(values, COUNT);
}

/* Bytes for 1,024 values of each kind, a little above what they take. */
static void kinds_of_metrics_are_small(void **state)
{
    (void)state;
    double values[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        values[i] = 0.1;
    assert_int_equal(assert_round_trip(values, COUNT), 9);
    for (size_t i = 0; i < COUNT; i++) /* a counter of bytes */
        values[i] = 1e12 + 4096.0 * (double)(i * i % 13 + i * 6);
    assert_in_range(assert_round_trip(values, COUNT), 1, COUNT / 2 + 80);
    for (size_t i = 0; i < COUNT; i++) /* three decimals */
        values[i] = (double)(i * 7919 % 1000) / 1000 + 20;
    assert_in_range(assert_round_trip(values, COUNT), 1, COUNT * 10 / 8 + 60);
    for (size_t i = 0; i < COUNT; i++) /* sixteenths */
        values[i] = (double)(i * 7919 % 64) / 16;
    assert_in_range(assert_round_trip(values, COUNT), 1, COUNT * 6 / 8 + 60);
    for (size_t i = 0; i < COUNT; i++) /* four values without any order */
        values[i] = (const double[]){M_PI, M_E, 1e-300, 1e300}[i * 7919 % 31 % 4];
    assert_in_range(assert_round_trip(values, COUNT), 1, COUNT / 4 + 80);
    for (size_t i = 0; i < COUNT; i++) /* whole numbers but for a few */
        values[i] = i % 100 == 99 ? M_PI * (double)i : (double)(i * 7919 % 4);
    assert_in_range(assert_round_trip(values, COUNT), 1, COUNT / 4 + 200);
}

static void random_columns_come_back(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    double values[COUNT];
    for (size_t turn = 0; turn < 300; turn++) {
        size_t count = 1 + random_below(&random, COUNT);
        size_t kind = random_below(&random, 6);
        double scale = pow(10, (double)random_below(&random, 12));
        for (size_t i = 0; i < count; i++) {
            uint64_t bits = random_u64(&random);
            double small = (double)(bits % 1000);
            double before = i > 0 ? values[i - 1] : 0;
            const double kinds[] = {of_bits(bits),          small,
                                    small / scale,          before + small,
                                    before + small / scale, ldexp(small, -(int)(bits >> 60))};
            values[i] = random_below(&random, 300) == 0 ? of_bits(bits) : kinds[kind];
        }
        (void)assert_round_trip(values, count);
    }
}

static void other_counts_and_cuts_are_damage(void **state)
{
    (void)state;
    double values[200];
    for (size_t i = 0; i < ARRAY_LENGTH(values); i++)
        values[i] = i == 77 ? NAN : (double)(i * 7919 % 50) / 4;
    CLEANUP(buf_cleanup) struct buf coded;
    buf_init(&coded, TEXT_MAX_BYTES);
    assert_int_equal(codec_encode(values, ARRAY_LENGTH(values), &coded, NULL), 0);
    double back[ARRAY_LENGTH(values)];
    struct error err = {0};
    for (size_t length = 0; length < coded.length; length++)
        assert_int_equal(codec_decode(coded.data, length, back, ARRAY_LENGTH(values), &err), -EBADMSG);
    buf_char(&coded, 0);
    assert_int_equal(codec_decode(coded.data, coded.length, back, ARRAY_LENGTH(values), &err), -EBADMSG);
    assert_int_equal(codec_decode("\x07", 1, back, 1, &err), -EBADMSG);
    assert_int_equal(codec_decode("", 0, back, 0, &err), -EBADMSG);
    assert_int_equal(codec_encode(values, 0, &coded, &err), -EINVAL);
}

static void without_memory_it_says_so(void **state)
{
    (void)state;
    double values[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        values[i] = (double)(i % 7) / 4;
    for (size_t n = 0;; n++) {
        CLEANUP(buf_cleanup) struct buf coded;
        buf_init(&coded, TEXT_MAX_BYTES);
        allocation_fail_at(n);
        int rc = codec_encode(values, COUNT, &coded, NULL);
        bool has_failed = allocation_stop();
        if (!has_failed) {
            assert_int_equal(rc, 0);
            break;
        }
        assert_true(rc == 0 || rc == -ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_double_comes_back_bit_for_bit), cmocka_unit_test(minus_zero_is_not_zero),
        cmocka_unit_test(kinds_of_metrics_are_small),          cmocka_unit_test(random_columns_come_back),
        cmocka_unit_test(other_counts_and_cuts_are_damage),    cmocka_unit_test(without_memory_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
