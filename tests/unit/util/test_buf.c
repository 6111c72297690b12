/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/buf.h"

#include <errno.h>
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

enum { TEXT_MAX_BYTES = 4096 };

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
        CLEANUP(memory_cleanup) char *exact = malloc(text_length > 0 ? text_length : 1);
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
        cmocka_unit_test(json_escapes_every_byte_as_it_must),
        cmocka_unit_test(json_text_is_strict_utf8),
        cmocka_unit_test(json_bytes_may_hold_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
