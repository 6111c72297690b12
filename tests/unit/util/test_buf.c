/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/buf.h"

#include <errno.h>
#include <float.h>
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

#include "support/allocation.h"
#include "support/comma.h"
#include "support/random.h"
#include "support/scratch.h"

enum { TEXT_MAX_BYTES = 4096, RANDOM_ROUNDS = 20000 };

#define REPLACEMENT "\xef\xbf\xbd"

static void assert_text(const char *name, struct buf *buf, const char *expected, size_t length)
{
    if (buf->length != length || memcmp(buf->data, expected, length) != 0)
        fail_msg("%s: got '%s', expected '%.*s'", name, buf_string(buf), (int)length, expected);
}

/* Appends of every kind, each of more than one byte, to be tried where there is no room for them. */

static void append_bytes(struct buf *buf)
{
    buf_bytes(buf, "abc", 3);
}

static void append_text(struct buf *buf)
{
    buf_text(buf, "abc");
}

static void append_two_chars(struct buf *buf)
{
    buf_char(buf, 'a');
    buf_char(buf, 'b');
}

static void append_short_printf(struct buf *buf)
{
    buf_printf(buf, "%d", 12345);
}

static void append_long_printf(struct buf *buf)
{
    buf_printf(buf, "%1000d", 12345);
}

static void append_u64(struct buf *buf)
{
    buf_u64(buf, UINT64_MAX);
}

static void append_i64(struct buf *buf)
{
    buf_i64(buf, -7);
}

static void append_fixed(struct buf *buf)
{
    buf_fixed(buf, -1.25, 2);
}

static void append_short_double(struct buf *buf)
{
    buf_double(buf, -1.25);
}

static void append_long_double(struct buf *buf)
{
    buf_double(buf, 1.0 / 3);
}

static void append_null_double(struct buf *buf)
{
    buf_double(buf, (double)NAN);
}

static void append_json(struct buf *buf)
{
    buf_json_string(buf, "a\nb\xff"
                         "c");
}

static const struct {
    const char *name;
    void (*append)(struct buf *buf);
    size_t bytes;
    bool is_two_appends;
} appends[] = {
    {"bytes", append_bytes, 3, false},
    {"text", append_text, 3, false},
    {"char", append_two_chars, 2, true},
    {"short printf", append_short_printf, 5, false},
    {"long printf", append_long_printf, 1000, false},
    {"u64", append_u64, 20, false},
    {"i64", append_i64, 2, false},
    {"fixed", append_fixed, 5, false},
    {"short double", append_short_double, 5, false},
    {"long double", append_long_double, 18, false},
    {"null double", append_null_double, 4, false},
    {"json", append_json, 10, false},
};

static void every_append_fits_exactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(appends); i++) {
        CLEANUP(buf_cleanup) struct buf buf;
        buf_init(&buf, appends[i].bytes);
        appends[i].append(&buf);
        if (buf.length != appends[i].bytes || buf_status(&buf, NULL) != 0)
            fail_msg("%s: %zu bytes, status %d", appends[i].name, buf.length, buf.status);
        assert_int_equal(strlen(buf_string(&buf)), appends[i].bytes); /* the NUL has its room beyond the limit */
    }
}

static void append_that_does_not_fit_changes_nothing_and_sticks(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(appends); i++) {
        for (size_t room = 0; room < appends[i].bytes; room++) {
            CLEANUP(buf_cleanup) struct buf buf;
            struct error err = {0};
            buf_init(&buf, 2 + room);
            buf_text(&buf, "x=");
            appends[i].append(&buf);
            size_t kept = 2 + (appends[i].is_two_appends ? room : 0);
            if (buf.length != kept || memcmp(buf.data, "x=", 2) != 0)
                fail_msg("%s with room for %zu: left '%.*s'", appends[i].name, room, (int)buf.length, buf.data);
            buf_truncate(&buf, 1);
            buf_char(&buf, 'y'); /* would fit now, but comes after a failure */
            assert_int_equal(buf.length, 1);
            assert_int_equal(buf_status(&buf, &err), -E2BIG);
            assert_non_null(strstr(err.text, "limit"));
            assert_string_equal(buf_string(&buf), "");
        }
    }
}

static void every_append_survives_every_failed_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(appends); i++) {
        for (size_t n = 0;; n++) {
            CLEANUP(buf_cleanup) struct buf buf;
            buf_init(&buf, TEXT_MAX_BYTES);
            for (int fill = 0; fill < 255; fill++)
                buf_char(&buf, '.'); /* so that the next append has to grow what is there */
            allocation_fail_at(n);
            appends[i].append(&buf);
            bool has_failed = allocation_stop();
            struct error err = {0};
            assert_int_equal(buf_status(&buf, &err), has_failed ? -ENOMEM : 0);
            size_t kept = 255 + (appends[i].is_two_appends ? 1 : 0);
            if (has_failed && buf.length != kept)
                fail_msg("%s: %zu bytes are left", appends[i].name, buf.length);
            if (!has_failed) {
                assert_int_equal(n, 1); /* each of these grows once */
                break;
            }
            assert_non_null(strstr(err.text, "memory"));
        }
    }
}

static void new_text_is_empty_and_allocates_nothing(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 100);
    assert_null(buf.data);
    assert_string_equal(buf_string(&buf), "");
    assert_int_equal(buf_status(&buf, NULL), 0);
    buf_bytes(&buf, NULL, 0);
    buf_text(&buf, "");
    assert_null(buf.data);
    buf_fini(&buf);
    buf_fini(&buf); /* a second time is fine */
}

static void reset_forgets_failure_and_keeps_memory(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf buf;
    buf_init(&buf, 4);
    buf_text(&buf, "abc");
    const char *memory = buf.data;
    buf_text(&buf, "de");
    assert_int_equal(buf_status(&buf, NULL), -E2BIG);
    buf_reset(&buf);
    buf_text(&buf, "de");
    assert_int_equal(buf_status(&buf, NULL), 0);
    assert_string_equal(buf_string(&buf), "de");
    assert_ptr_equal(buf.data, memory);
}

static void truncate_cuts_and_never_lengthens(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf buf;
    buf_init(&buf, 10);
    buf_text(&buf, "abc");
    buf_truncate(&buf, 4);
    assert_string_equal(buf_string(&buf), "abc");
    buf_truncate(&buf, 1);
    assert_string_equal(buf_string(&buf), "a");
    buf_truncate(&buf, 0);
    assert_string_equal(buf_string(&buf), "");
}

static void reserve_gives_room_that_commit_takes(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf buf;
    buf_init(&buf, 1000);
    char *to = buf_reserve(&buf, 1000);
    assert_non_null(to);
    memset(to, 'x', 1000);
    buf_commit(&buf, 3);
    assert_string_equal(buf_string(&buf), "xxx");
    assert_null(buf_reserve(&buf, 998));
    assert_int_equal(buf_status(&buf, NULL), -E2BIG);
    assert_null(buf_reserve(&buf, 1)); /* would fit, but comes after a failure */
}

static void sizes_that_wrap_are_too_big(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf buf;
    buf_init(&buf, SIZE_MAX);
    buf_text(&buf, "ab");
    assert_null(buf_reserve(&buf, SIZE_MAX - 1));
    assert_int_equal(buf_status(&buf, NULL), -E2BIG);
    assert_int_equal(buf.length, 2);
}

static void text_grows_to_its_limit_byte_by_byte(void **state)
{
    (void)state;
    enum { LIMIT = 100003 };
    CLEANUP(buf_cleanup) struct buf buf;
    buf_init(&buf, LIMIT);
    for (int i = 0; i < LIMIT + 10; i++)
        buf_char(&buf, (char)('a' + i % 26));
    assert_int_equal(buf.length, LIMIT);
    assert_int_equal(buf.capacity, LIMIT);
    for (int i = 0; i < LIMIT; i++)
        assert_int_equal(buf.data[i], 'a' + i % 26);
}

static void printf_takes_texts_around_its_inner_size(void **state)
{
    (void)state;
    for (int width = 250; width < 262; width++) {
        CLEANUP(buf_cleanup) struct buf buf;
        buf_init(&buf, 300);
        buf_printf(&buf, "%*d|", width, 7);
        assert_int_equal(buf.length, width + 1);
        assert_memory_equal(buf.data + width - 1, "7|", 2);
    }
}

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
        assert_text("fixed", &buf, cases[i].expected, strlen(cases[i].expected));
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
        assert_text("double", &buf, cases[i].expected, strlen(cases[i].expected));
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
    if (memcmp(&back, &number, sizeof number) != 0)
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

static void json_escapes_every_byte_as_it_must(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        char expected[16];
        const char *short_escape = NULL;
        static const struct {
            char byte;
            const char *escape;
        } shorts[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"}, {'\f', "\\f"},
                      {'\n', "\\n"}, {'\r', "\\r"},  {'\t', "\\t"}};
        for (size_t i = 0; i < ARRAY_LENGTH(shorts); i++) {
            if (shorts[i].byte == (char)byte)
                short_escape = shorts[i].escape;
        }
        if (short_escape != NULL)
            (void)snprintf(expected, sizeof expected, "\"%s\"", short_escape);
        else if (byte < 0x20 || byte == 0x7f)
            (void)snprintf(expected, sizeof expected, "\"\\u%04x\"", byte);
        else if (byte < 0x80)
            (void)snprintf(expected, sizeof expected, "\"%c\"", byte);
        else
            (void)snprintf(expected, sizeof expected, "\"" REPLACEMENT "\"");
        CLEANUP(buf_cleanup) struct buf buf;
        buf_init(&buf, 100);
        char text = (char)byte;
        buf_json_bytes(&buf, &text, 1);
        if (strcmp(buf_string(&buf), expected) != 0)
            fail_msg("byte %02x became %s, not %s", byte, buf_string(&buf), expected);
    }
}

static void json_text_is_strict_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *text;
        const char *expected; /* between the quotes */
    } cases[] = {
        {"empty", "", ""},
        {"plain", "user_pct", "user_pct"},
        {"two bytes", "\xc2\x80\xdf\xbf", "\xc2\x80\xdf\xbf"},
        {"three bytes", "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf",
         "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"},
        {"four bytes", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
        {"overlong of two", "\xc0\x80\xc1\xbf", REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT},
        {"overlong of three", "\xe0\x9f\xbf", REPLACEMENT REPLACEMENT REPLACEMENT},
        {"overlong of four", "\xf0\x8f\xbf\xbf", REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT},
        {"surrogates", "\xed\xa0\x80\xed\xbf\xbf",
         REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT},
        {"above U+10FFFF", "\xf4\x90\x80\x80", REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT},
        {"no lead at all", "\xf5\xff\xfe", REPLACEMENT REPLACEMENT REPLACEMENT},
        {"lone continuation", "a\x80z", "a" REPLACEMENT "z"},
        {"two of three, then the end", "a\xe2\x82", "a" REPLACEMENT},
        {"two of three, then text", "\xe2\x82z", REPLACEMENT "z"},
        {"three of four, then a lead", "\xf0\x9f\xa6\xc3\xa4", REPLACEMENT "\xc3\xa4"},
        {"one of two, then a quote", "\xc3\"", REPLACEMENT "\\\""},
        {"the Unicode Standard's example",
         "a\xf1\x80\x80\xe1\x80\xc2"
         "b\x80"
         "c\x80\xbf"
         "d",
         "a" REPLACEMENT REPLACEMENT REPLACEMENT "b" REPLACEMENT "c" REPLACEMENT REPLACEMENT "d"},
        {"quotes among letters", "vg \"0\"\\x2droot", "vg \\\"0\\\"\\\\x2droot"},
        {"escapes side by side", "\n\n\\", "\\n\\n\\\\"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char expected[128];
        int length = snprintf(expected, sizeof expected, "\"%s\"", cases[i].expected);
        CLEANUP(buf_cleanup) struct buf buf;
        buf_init(&buf, 200);
        buf_json_string(&buf, cases[i].text);
        assert_text(cases[i].name, &buf, expected, (size_t)length);
        /* The same from memory that ends with the text: a byte read beyond it is seen by the sanitizer. */
        size_t text_length = strlen(cases[i].text);
        CLEANUP(memory_cleanup) char *exact = malloc(text_length);
        memcpy(exact, cases[i].text, text_length);
        buf_reset(&buf);
        buf_json_bytes(&buf, exact, text_length);
        assert_text(cases[i].name, &buf, expected, (size_t)length);
    }
}

static void json_bytes_may_hold_nul(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf buf;
    buf_init(&buf, 100);
    buf_json_bytes(&buf, "a\0b", 3);
    buf_json_bytes(&buf, NULL, 0);
    assert_string_equal(buf_string(&buf), "\"a\\u0000b\"\"\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_append_fits_exactly),
        cmocka_unit_test(append_that_does_not_fit_changes_nothing_and_sticks),
        cmocka_unit_test(every_append_survives_every_failed_allocation),
        cmocka_unit_test(new_text_is_empty_and_allocates_nothing),
        cmocka_unit_test(reset_forgets_failure_and_keeps_memory),
        cmocka_unit_test(truncate_cuts_and_never_lengthens),
        cmocka_unit_test(reserve_gives_room_that_commit_takes),
        cmocka_unit_test(sizes_that_wrap_are_too_big),
        cmocka_unit_test(text_grows_to_its_limit_byte_by_byte),
        cmocka_unit_test(printf_takes_texts_around_its_inner_size),
        cmocka_unit_test(integers_are_written_in_full),
        cmocka_unit_test(random_integers_are_as_printf_writes_them),
        cmocka_unit_test(fixed_rounds_and_leaves_zeros_out),
        cmocka_unit_test(random_fixed_is_within_half_a_unit),
        cmocka_unit_test(doubles_are_short),
        cmocka_unit_test(random_doubles_read_back_and_are_the_shortest),
        cmocka_unit_test(numbers_have_points_where_the_locale_has_commas),
        cmocka_unit_test(json_escapes_every_byte_as_it_must),
        cmocka_unit_test(json_text_is_strict_utf8),
        cmocka_unit_test(json_bytes_may_hold_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
