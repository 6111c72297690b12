/* SPDX-License-Identifier: BSD-3-Clause */
/* What test_buf.c leaves of util/buf.h: numbers. */
#include "util/buf.h"

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

#include "support/comma.h"
#include "support/random.h"
#include "support/scratch.h"

enum { RANDOM_ROUNDS = 20000 };

static void integers_are_written_in_full(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf buf;
    buf_init(&buf, 100);
    char expected[64];
    uint64_t power = 1;
    for (int digits = 1; digits <= 20; digits++, power *= 10) {
        const uint64_t numbers[] = {power - 1, power, power + 1};
        for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
            buf_reset(&buf);
            buf_u64(&buf, numbers[i]);
            (void)snprintf(expected, sizeof expected, "%llu", (unsigned long long)numbers[i]);
            assert_string_equal(buf_string(&buf), expected);
        }
    }
    const int64_t edges[] = {INT64_MIN, INT64_MIN + 1, -10, -9, -1, 0, 1, INT64_MAX};
    for (size_t i = 0; i < ARRAY_LENGTH(edges); i++) {
        buf_reset(&buf);
        buf_i64(&buf, edges[i]);
        (void)snprintf(expected, sizeof expected, "%lld", (long long)edges[i]);
        assert_string_equal(buf_string(&buf), expected);
    }
    buf_reset(&buf);
    buf_u64(&buf, UINT64_MAX);
    assert_string_equal(buf_string(&buf), "18446744073709551615");
}

static void random_integers_are_as_printf_writes_them(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    CLEANUP(buf_cleanup) struct buf buf;
    buf_init(&buf, 100);
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        uint64_t number = random_u64(&random) >> random_below(&random, 64);
        char expected[64];
        (void)snprintf(expected, sizeof expected, "%llu %lld", (unsigned long long)number, (long long)number);
        buf_reset(&buf);
        buf_u64(&buf, number);
        buf_char(&buf, ' ');
        buf_i64(&buf, (int64_t)number);
        assert_string_equal(buf_string(&buf), expected);
    }
}

static void fixed_rounds_and_leaves_zeros_out(void **state)
{
    (void)state;
    static const struct {
        double number;
        unsigned decimals;
        const char *expected;
    } cases[] = {
        {0, 4, "0"},
        {-0.0, 4, "0"},
        {100, 4, "100"},
        {12.5, 4, "12.5"},
        {12.50004, 4, "12.5"},
        {12.50006, 4, "12.5001"},
        {-12.5, 4, "-12.5"},
        {-0.00001, 4, "0"},
        {0.00005, 4, "0.0001"},
        {0.05, 2, "0.05"},
        {0.007, 2, "0.01"},
        {99.99999, 4, "100"},
        {0.99, 1, "1"},
        {9.5, 0, "10"},
        {-9.5, 0, "-10"},
        {2.5, 0, "3"},
        {0.125, 2, "0.13"},
        {1.5, 0, "2"},
        {0.000000001, 9, "0.000000001"},
        {123456789.123456789, 9, "123456789.123456791"}, /* what the double is */
        {0.1, 9, "0.1"},
        {0.1, 12, "0.1"}, /* more decimals than there are: as 9 */
        {999999999999999.0, 4, "999999999999999"},
        {999999999999999.9, 0, "1000000000000000"},
        {-999999999999999.9, 0, "-1000000000000000"},
        {1e15, 4, "1e+15"},
        {-1e300, 4, "-1e+300"},
        {5e-324, 9, "0"},
        {(double)NAN, 4, "0"},
        {(double)INFINITY, 4, "0"},
        {-(double)INFINITY, 4, "0"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(buf_cleanup) struct buf buf;
        buf_init(&buf, 100);
        buf_fixed(&buf, cases[i].number, cases[i].decimals);
        assert_string_equal(buf_string(&buf), cases[i].expected);
    }
}

/* A double of any size that buf_fixed() writes without an exponent, of either sign. */
static double random_plain_double(struct random *random)
{
    double fraction = (double)(random_u64(random) >> 11) / (double)(UINT64_C(1) << 53);
    double magnitude = fraction * pow(10, (double)random_below(random, 16));
    return random_below(random, 2) == 0 ? magnitude : -magnitude;
}

static void random_fixed_is_within_half_a_unit(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    CLEANUP(buf_cleanup) struct buf buf;
    buf_init(&buf, 100);
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        double number = random_plain_double(&random);
        unsigned decimals = (unsigned)random_below(&random, 10);
        buf_reset(&buf);
        buf_fixed(&buf, number, decimals);
        const char *text = buf_string(&buf);
        const char *point = strchr(text, '.');
        size_t written = point != NULL ? strlen(point + 1) : 0;
        double allowed = 0.5 * pow(10, -(double)decimals) * (1 + 1e-6) + fabs(number) * DBL_EPSILON;
        if (fabs(strtod(text, NULL) - number) > allowed || written > decimals)
            fail_msg("%.17g with %u decimals became %s", number, decimals, text);
        if (point != NULL && (written == 0 || text[strlen(text) - 1] == '0'))
            fail_msg("%.17g with %u decimals became %s, with a zero at the end", number, decimals, text);
        if (strcmp(text, "-0") == 0)
            fail_msg("%.17g became -0", number);
    }
}

static void doubles_are_short(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *expected;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-1, "-1"},
        {0.1, "0.1"},
        {0.3, "0.3"},
        {0.1 + 0.2, "0.30000000000000004"},
        {33.5, "33.5"},
        {1500, "1500"},
        {123456789012345.0, "123456789012345"},
        {9007199254740993.0, "9007199254740992"},
        {1e15, "1e+15"},
        {1e22, "1e+22"},
        {1e23, "1e+23"},
        {0.0001, "0.0001"},
        {0.00012345, "0.00012345"},
        {0.00001, "1e-05"},
        {1.0 / 3, "0.3333333333333333"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {5e-324, "5e-324"},
        {1e-323, "1e-323"},
        {(double)NAN, "null"},
        {(double)INFINITY, "null"},
        {-(double)INFINITY, "null"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(buf_cleanup) struct buf buf;
        buf_init(&buf, 100);
        buf_double(&buf, cases[i].number);
        assert_string_equal(buf_string(&buf), cases[i].expected);
    }
}

/* How many digits from the first that isn't 0 to the last that isn't. */
static size_t significant_digits(const char *text)
{
    size_t count = 0;
    size_t zeros = 0;
    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (*text == '0' && count == 0))
            continue;
        zeros = *text == '0' ? zeros + 1 : 0;
        count++;
    }
    return count - zeros;
}

static void assert_reads_back(struct buf *buf, double number)
{
    buf_reset(buf);
    buf_double(buf, number);
    const char *text = buf_string(buf);
    double back = strtod(text, NULL);
    if (back != number || (signbit(back) != 0) != (signbit(number) != 0))
        fail_msg("%.17g became %s, which reads back as %.17g", number, text, back);
    for (int digits = 1; digits <= DBL_DECIMAL_DIG; digits++) {
        char shorter[64];
        (void)snprintf(shorter, sizeof shorter, "%.*e", digits - 1, number);
        if (strtod(shorter, NULL) != number)
            continue;
        if (significant_digits(text) > significant_digits(shorter))
            fail_msg("%.17g became %s, though %s would do", number, text, shorter);
        break;
    }
}

static void random_doubles_read_back_and_are_the_shortest(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    CLEANUP(buf_cleanup) struct buf buf;
    buf_init(&buf, 100);
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        uint64_t bits = random_u64(&random);
        double number;
        memcpy(&number, &bits, sizeof number);
        if (isfinite(number))
            assert_reads_back(&buf, number);
        bits &= ~(UINT64_C(0x7ff) << 52);
        memcpy(&number, &bits, sizeof number); /* subnormal */
        assert_reads_back(&buf, number);
        assert_reads_back(&buf, random_plain_double(&random));
        double scale = pow(10, (double)random_below(&random, 18));
        assert_reads_back(&buf, (double)(random_u64(&random) >> random_below(&random, 64)) / scale);
    }
    for (int exponent = -1074; exponent < 1024; exponent++)
        assert_reads_back(&buf, ldexp(1, exponent)); /* doubles are twice as dense below these as above */
}

static void numbers_have_points_where_the_locale_has_commas(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    if (!comma_enter(&scratch))
        skip();
    char check[16];
    (void)snprintf(check, sizeof check, "%.1f", 1.5);
    CLEANUP(buf_cleanup) struct buf buf;
    buf_init(&buf, 200);
    buf_fixed(&buf, 1234.5, 4);
    buf_char(&buf, ' ');
    buf_double(&buf, 33.5);
    buf_char(&buf, ' ');
    buf_double(&buf, 1.0 / 3);
    buf_char(&buf, ' ');
    buf_double(&buf, 1.5e300);
    buf_char(&buf, ' ');
    buf_u64(&buf, 1234567);
    buf_char(&buf, ' ');
    buf_i64(&buf, -1234567);
    char after[16];
    (void)snprintf(after, sizeof after, "%.1f", 1.5);
    comma_leave();
    assert_string_equal(check, "1,5");
    assert_string_equal(after, "1,5"); /* the host's locale is as it was */
    assert_string_equal(buf_string(&buf), "1234.5 33.5 0.3333333333333333 1.5e+300 1234567 -1234567");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_written_in_full),
        cmocka_unit_test(random_integers_are_as_printf_writes_them),
        cmocka_unit_test(fixed_rounds_and_leaves_zeros_out),
        cmocka_unit_test(random_fixed_is_within_half_a_unit),
        cmocka_unit_test(doubles_are_short),
        cmocka_unit_test(random_doubles_read_back_and_are_the_shortest),
        cmocka_unit_test(numbers_have_points_where_the_locale_has_commas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
