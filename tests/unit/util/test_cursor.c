/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/cursor.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/comma.h"
#include "support/random.h"
#include "support/scratch.h"
#include "util/cleanup.h"

enum { RANDOM_ROUNDS = 20000, LONG_DIGITS = 1200 };

/* A copy that ends with the text, so that the sanitizer sees each byte read beyond it. */
struct exact {
    char *memory;
    struct cursor cursor;
};

static struct exact exact_of(const char *text)
{
    size_t length = strlen(text);
    struct exact exact = {.memory = malloc(length > 0 ? length : 1)};
    assert_non_null(exact.memory);
    memcpy(exact.memory, text, length);
    exact.cursor = cursor_of(exact.memory, length);
    return exact;
}

static void exact_cleanup(struct exact *exact)
{
    free(exact->memory);
}

/* Is what `cursor` has left equal to `rest`? */
static void assert_rest(const char *text, const struct cursor *cursor, const char *rest)
{
    if (!cursor_equals(cursor, rest))
        fail_msg("'%s': '%.*s' is left, not '%s'", text, (int)cursor_left(cursor), cursor->at, rest);
}

static void empty_cursor_gives_nothing(void **state)
{
    (void)state;
    struct cursor cursor = cursor_of(NULL, 0);
    struct cursor part;
    uint64_t u64;
    int64_t i64;
    double real;
    assert_true(cursor_is_empty(&cursor));
    assert_int_equal(cursor_left(&cursor), 0);
    cursor_skip_blanks(&cursor);
    assert_false(cursor_line(&cursor, &part));
    assert_false(cursor_word(&cursor, &part));
    assert_false(cursor_u64(&cursor, &u64));
    assert_false(cursor_i64(&cursor, &i64));
    assert_false(cursor_double(&cursor, &real));
    assert_false(cursor_accept(&cursor, 'a'));
    assert_false(cursor_accept(&cursor, '\0'));
    assert_false(cursor_accept_text(&cursor, "a"));
    assert_true(cursor_accept_text(&cursor, ""));
    assert_true(cursor_equals(&cursor, ""));
    assert_true(cursor_equals_any_case(&cursor, ""));
    assert_false(cursor_equals(&cursor, "a"));
}

static void lines_are_taken_with_or_without_a_last_newline(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *lines[4];
    } cases[] = {
        {"", {NULL}},
        {"\n", {"", NULL}},
        {"a", {"a", NULL}},
        {"a\n", {"a", NULL}},
        {"a\nb", {"a", "b", NULL}},
        {"a\n\nb\n", {"a", "", "b", NULL}},
        {"a\r\n", {"a\r", NULL}},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(exact_cleanup) struct exact exact = exact_of(cases[i].text);
        struct cursor line;
        for (size_t n = 0; cases[i].lines[n] != NULL; n++) {
            assert_true(cursor_line(&exact.cursor, &line));
            assert_rest(cases[i].text, &line, cases[i].lines[n]);
        }
        assert_false(cursor_line(&exact.cursor, &line));
    }
}

static void words_are_parted_by_blanks_and_tabs(void **state)
{
    (void)state;
    CLEANUP(exact_cleanup) struct exact exact = exact_of(" \tab  c\t d\x01 ");
    struct cursor word;
    static const char *const words[] = {"ab", "c", "d\x01"};
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
        assert_true(cursor_word(&exact.cursor, &word));
        assert_rest("words", &word, words[i]);
    }
    assert_false(cursor_word(&exact.cursor, &word));
}

static void rubbish_with_nul_bytes_is_text_like_other(void **state)
{
    (void)state;
    static const char text[] = "a\0b 1\n\0\0\0";
    struct cursor cursor = cursor_of(text, sizeof text - 1);
    struct cursor line;
    struct cursor word;
    uint64_t number;
    assert_true(cursor_line(&cursor, &line));
    assert_true(cursor_word(&line, &word));
    assert_int_equal(cursor_left(&word), 3);
    assert_true(cursor_u64(&line, &number));
    assert_true(cursor_line(&cursor, &line));
    assert_int_equal(cursor_left(&line), 3);
    assert_false(cursor_u64(&line, &number));
}

static void unsigned_numbers_fit_or_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_number;
        uint64_t number;
        const char *rest;
    } cases[] = {
        {"0", true, 0, ""},
        {"7 8", true, 7, " 8"},
        {" \t42x", true, 42, "x"},
        {"007", true, 7, ""},
        {"12345678901234567890", true, UINT64_C(12345678901234567890), ""},
        {"18446744073709551615", true, UINT64_MAX, ""},
        {"18446744073709551616", false, 0, "18446744073709551616"},
        {"18446744073709551620", false, 0, "18446744073709551620"},
        {"18446744073709551700", false, 0, "18446744073709551700"},
        {"99999999999999999999", false, 0, "99999999999999999999"},
        {"184467440737095516150", false, 0, "184467440737095516150"},
        {"0000000000000000000000000000001", true, 1, ""},
        {"", false, 0, ""},
        {" ", false, 0, " "},
        {"-1", false, 0, "-1"},
        {"+1", false, 0, "+1"},
        {"\n1", false, 0, "\n1"},
        {"x1", false, 0, "x1"},
        {"/1", false, 0, "/1"}, /* the characters beside the digits */
        {":1", false, 0, ":1"},
        {"\xb2", false, 0, "\xb2"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(exact_cleanup) struct exact exact = exact_of(cases[i].text);
        uint64_t number = 99;
        bool is_number = cursor_u64(&exact.cursor, &number);
        if (is_number != cases[i].is_number || number != (is_number ? cases[i].number : 99))
            fail_msg("'%s': %d, %llu", cases[i].text, is_number, (unsigned long long)number);
        assert_rest(cases[i].text, &exact.cursor, cases[i].rest);
    }
}

static void signed_numbers_fit_or_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_number;
        int64_t number;
        const char *rest;
    } cases[] = {
        {"0", true, 0, ""},
        {"-0", true, 0, ""},
        {" -5 ", true, -5, " "},
        {"+5", true, 5, ""},
        {"9223372036854775807", true, INT64_MAX, ""},
        {"9223372036854775808", false, 0, "9223372036854775808"},
        {"-9223372036854775808", true, INT64_MIN, ""},
        {"-9223372036854775809", false, 0, "-9223372036854775809"},
        {"-18446744073709551616", false, 0, "-18446744073709551616"},
        {"- 5", false, 0, "- 5"},
        {"--5", false, 0, "--5"},
        {"+-5", false, 0, "+-5"},
        {"-", false, 0, "-"},
        {"", false, 0, ""},
        {"-1.5", true, -1, ".5"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(exact_cleanup) struct exact exact = exact_of(cases[i].text);
        int64_t number = 99;
        bool is_number = cursor_i64(&exact.cursor, &number);
        if (is_number != cases[i].is_number || number != (is_number ? cases[i].number : 99))
            fail_msg("'%s': %d, %lld", cases[i].text, is_number, (long long)number);
        assert_rest(cases[i].text, &exact.cursor, cases[i].rest);
    }
}

/* Equal, and the same zero if they are zeros. */
static bool is_same(double a, double b)
{
    return a == b && (signbit(a) != 0) == (signbit(b) != 0);
}

static void doubles_are_taken_as_far_as_they_go(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_number;
        double number;
        const char *rest;
    } cases[] = {
        {"0", true, 0, ""},
        {" 1.5,", true, 1.5, ","},
        {"-1.5e3", true, -1500, ""},
        {"+.5", true, 0.5, ""},
        {"5.", true, 5, ""},
        {"5.e1", true, 50, ""},
        {"1E-2x", true, 0.01, "x"},
        {"1e+2", true, 100, ""},
        {"1e", true, 1, "e"},
        {"1e+", true, 1, "e+"},
        {"1e 5", true, 1, "e 5"},
        {"1e-x", true, 1, "e-x"},
        {"0x10", true, 0, "x10"},
        {"1.2.3", true, 1.2, ".3"},
        {"1,5", true, 1, ",5"},
        {"1e-400", true, 0, ""},
        {"1e-99999999999999999999999", true, 0, ""},
        {"0e99999999999999999999999", true, 0, ""},
        {"0.000000000000000000000000000000000000000000e5", true, 0, ""},
        {"1e308", true, 1e308, ""},
        {"1.7976931348623157e308", true, DBL_MAX, ""},
        {"1.7976931348623159e308", false, 0, "1.7976931348623159e308"},
        {"1e309", false, 0, "1e309"},
        {"-1e309", false, 0, "-1e309"},
        {"1e99999999999999999999999", false, 0, "1e99999999999999999999999"},
        {"", false, 0, ""},
        {".", false, 0, "."},
        {"-", false, 0, "-"},
        {"-.e5", false, 0, "-.e5"},
        {"e5", false, 0, "e5"},
        {"nan", false, 0, "nan"},
        {"inf", false, 0, "inf"},
        {"Infinity", false, 0, "Infinity"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(exact_cleanup) struct exact exact = exact_of(cases[i].text);
        double number = 99;
        bool is_number = cursor_double(&exact.cursor, &number);
        double expected = is_number ? cases[i].number : 99;
        if (is_number != cases[i].is_number || !is_same(number, expected))
            fail_msg("'%s': %d, %.17g", cases[i].text, is_number, number);
        assert_rest(cases[i].text, &exact.cursor, cases[i].rest);
    }
}

/* Reads `text` and compares it bit by bit with what strtod() makes of it, which glibc rounds correctly. */
static void assert_read_as_strtod(const char *text)
{
    CLEANUP(exact_cleanup) struct exact exact = exact_of(text);
    double number = 0;
    bool is_number = cursor_double(&exact.cursor, &number);
    double expected = strtod(text, NULL);
    if (is_number != (isfinite(expected) != 0))
        fail_msg("'%s': %d", text, is_number);
    if (is_number && !is_same(number, expected))
        fail_msg("'%s': %.17g instead of %.17g", text, number, expected);
    assert_rest(text, &exact.cursor, is_number ? "" : text);
}

static void random_doubles_are_rounded_correctly(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    char text[64];
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        uint64_t bits = random_u64(&random);
        double number;
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number))
            continue;
        (void)snprintf(text, sizeof text, "%.*e", (int)random_below(&random, 25), number);
        assert_read_as_strtod(text);
        (void)snprintf(text, sizeof text, "%.*f", (int)random_below(&random, 20),
                       (double)(bits >> 11) / (double)(1 + random_below(&random, 1000000)));
        assert_read_as_strtod(text);
        (void)snprintf(text, sizeof text, "%llue%d", (unsigned long long)(bits >> random_below(&random, 64)),
                       (int)random_below(&random, 60) - 30);
        assert_read_as_strtod(text);
    }
}

static void negative_zero_keeps_its_sign(void **state)
{
    (void)state;
    assert_read_as_strtod("-0");
    assert_read_as_strtod("-0.000e7");
}

static void doubles_of_very_many_digits_are_rounded_correctly(void **state)
{
    (void)state;
    /* 2^-1074 / 2, half way between 0 and the least double, has 751 digits; half an ulp below DBL_MIN has 767. */
    const double neighbours[] = {0, DBL_TRUE_MIN, DBL_MIN, DBL_MIN - DBL_TRUE_MIN, 1, 0.1, 12345.678};
    for (size_t i = 0; i < ARRAY_LENGTH(neighbours); i++) {
        char text[2 * LONG_DIGITS];
        long double middle = ((long double)neighbours[i] + (long double)nextafter(neighbours[i], 2e10)) / 2;
        int length = snprintf(text, sizeof text, "%.*Lf", LONG_DIGITS, middle); /* exact: all digits after are 0 */
        assert_in_range(length, LONG_DIGITS, sizeof text - 3);
        assert_read_as_strtod(text);   /* a tie, to the even one */
        memcpy(text + length, "1", 2); /* a hair above it */
        assert_read_as_strtod(text);
        text[length - 1] = '\0'; /* without the last zero, still a tie */
        char *digit = strrchr(text, '5');
        assert_non_null(digit);
        *digit = '4'; /* below it */
        assert_read_as_strtod(text);
    }
    char digits[LONG_DIGITS + 16];
    memset(digits, '9', LONG_DIGITS);
    (void)snprintf(digits + LONG_DIGITS, 16, "e-%d", LONG_DIGITS - 5);
    assert_read_as_strtod(digits);
    memset(digits, '0', LONG_DIGITS);
    digits[0] = '1';
    assert_read_as_strtod(digits);
    (void)snprintf(digits, sizeof digits, "0.%0*d", LONG_DIGITS - 10, 7);
    assert_read_as_strtod(digits);
    (void)snprintf(digits + strlen(digits), 8, "e%d", LONG_DIGITS);
    assert_read_as_strtod(digits);
}

static void points_are_points_where_the_locale_has_commas(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    if (!comma_enter(&scratch))
        skip();
    double short_number = 0;
    double long_number = 0;
    struct cursor cursor = cursor_of("1.5", 3);
    bool has_short = cursor_double(&cursor, &short_number);
    cursor = cursor_of("1.50000000000000000000001", 25);
    bool has_long = cursor_double(&cursor, &long_number);
    cursor = cursor_of("1,5", 3);
    double comma_number = 0;
    bool has_comma = cursor_double(&cursor, &comma_number);
    comma_leave();
    assert_true(has_short && has_long && has_comma);
    assert_true(short_number == 1.5 && long_number == 1.5 && comma_number == 1.0);
    assert_rest("1,5", &cursor, ",5");
}

static void texts_are_accepted_whole_or_not_at_all(void **state)
{
    (void)state;
    CLEANUP(exact_cleanup) struct exact exact = exact_of("MemTotal: 5");
    struct cursor *cursor = &exact.cursor;
    assert_false(cursor_accept_text(cursor, "MemTotal; "));
    assert_false(cursor_accept_text(cursor, "MemTotal: 50"));
    assert_false(cursor_accept(cursor, 'm'));
    assert_rest("untouched", cursor, "MemTotal: 5");
    assert_true(cursor_accept(cursor, 'M'));
    assert_true(cursor_accept_text(cursor, "emTotal:"));
    assert_rest("taken", cursor, " 5");
}

static void equality_is_of_the_whole(void **state)
{
    (void)state;
    static const struct {
        const char *text, *other;
        bool is_equal, is_equal_any_case;
    } cases[] = {
        {"abc", "abc", true, true},   {"abc", "ab", false, false},
        {"ab", "abc", false, false},  {"abc", "abd", false, false},
        {"Abc", "aBC", false, true},  {"a[c", "A{C", false, false},
        {"a@c", "a`c", false, false}, {"\xc3\x84", "\xc3\xa4", false, false},
        {"", "", true, true},         {"Z", "z", false, true},
        {"A", "a", false, true},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(exact_cleanup) struct exact exact = exact_of(cases[i].text);
        if (cursor_equals(&exact.cursor, cases[i].other) != cases[i].is_equal ||
            cursor_equals_any_case(&exact.cursor, cases[i].other) != cases[i].is_equal_any_case)
            fail_msg("'%s' and '%s'", cases[i].text, cases[i].other);
        assert_rest("untouched", &exact.cursor, cases[i].text);
    }
    struct cursor with_nul = cursor_of("ab\0", 3);
    assert_false(cursor_equals(&with_nul, "ab"));
    assert_false(cursor_equals_any_case(&with_nul, "ab"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_cursor_gives_nothing),
        cmocka_unit_test(lines_are_taken_with_or_without_a_last_newline),
        cmocka_unit_test(words_are_parted_by_blanks_and_tabs),
        cmocka_unit_test(rubbish_with_nul_bytes_is_text_like_other),
        cmocka_unit_test(unsigned_numbers_fit_or_are_refused),
        cmocka_unit_test(signed_numbers_fit_or_are_refused),
        cmocka_unit_test(doubles_are_taken_as_far_as_they_go),
        cmocka_unit_test(random_doubles_are_rounded_correctly),
        cmocka_unit_test(negative_zero_keeps_its_sign),
        cmocka_unit_test(doubles_of_very_many_digits_are_rounded_correctly),
        cmocka_unit_test(points_are_points_where_the_locale_has_commas),
        cmocka_unit_test(texts_are_accepted_whole_or_not_at_all),
        cmocka_unit_test(equality_is_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
