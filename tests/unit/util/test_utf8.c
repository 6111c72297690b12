/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "util/cleanup.h"

/* The length of a sequence by its definition, from the code point that its bits spell; 0 when there is none. */
static size_t defined_length(const unsigned char *bytes, size_t left)
{
    static const struct {
        size_t length;
        uint32_t least; /* less has a shorter form */
        unsigned char mask, lead;
    } forms[] = {{1, 0, 0x80, 0x00}, {2, 0x80, 0xe0, 0xc0}, {3, 0x800, 0xf0, 0xe0}, {4, 0x10000, 0xf8, 0xf0}};
    for (size_t i = 0; i < ARRAY_LENGTH(forms); i++) {
        if ((bytes[0] & forms[i].mask) != forms[i].lead || left < forms[i].length)
            continue;
        uint32_t point = bytes[0] & (unsigned char)~forms[i].mask;
        for (size_t at = 1; at < forms[i].length; at++) {
            if ((bytes[at] & 0xc0) != 0x80)
                return 0;
            point = point << 6 | (bytes[at] & 0x3f);
        }
        bool is_surrogate = point >= 0xd800 && point <= 0xdfff;
        return point < forms[i].least || point > 0x10ffff || is_surrogate ? 0 : forms[i].length;
    }
    return 0;
}

/* Can `length` bytes be continued to a sequence? By trying the bytes that decide it. */
static bool is_beginning(const unsigned char *bytes, size_t length)
{
    for (unsigned second = 0x80; second < 0xc0; second++) {
        unsigned char whole[4] = {bytes[0], (unsigned char)second, 0x80, 0x80};
        memcpy(whole, bytes, length);
        if (defined_length(whole, 4) > length)
            return true;
    }
    return false;
}

static void assert_sequence(const unsigned char *bytes, size_t left)
{
    size_t bad = 99;
    size_t length = utf8_sequence(bytes, left, &bad);
    if (length != defined_length(bytes, left))
        fail_msg("%02x %02x %02x %02x of %zu: length %zu", bytes[0], bytes[1], bytes[2], bytes[3], left, length);
    if (length != 0)
        return;
    /* The maximal bad part: the longest beginning of a sequence, or one byte. */
    size_t expected = 1;
    while (expected < left && expected < 4 && is_beginning(bytes, expected + 1))
        expected++;
    if (bad != expected)
        fail_msg("%02x %02x %02x %02x of %zu: bad part %zu, not %zu", bytes[0], bytes[1], bytes[2], bytes[3], left, bad,
                 expected);
}

static void sequences_are_what_the_standard_defines(void **state)
{
    (void)state;
    static const unsigned char edges[] = {0x22, 0x7f, 0x80, 0xbf, 0xc0};
    for (unsigned first = 0; first < 256; first++) {
        for (unsigned second = 0; second < 256; second++) {
            for (size_t third = 0; third < ARRAY_LENGTH(edges); third++) {
                for (size_t fourth = 0; fourth < ARRAY_LENGTH(edges); fourth++) {
                    const unsigned char bytes[4] = {(unsigned char)first, (unsigned char)second, edges[third],
                                                    edges[fourth]};
                    assert_sequence(bytes, 4);
                }
                const unsigned char bytes[4] = {(unsigned char)first, (unsigned char)second, edges[third], 0};
                for (size_t left = 1; left < 4; left++)
                    assert_sequence(bytes, left);
            }
        }
    }
}

static void cleaned_line_is_printable(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *text;
        const char *expected;
    } cases[] = {
        {"empty", "", ""},
        {"plain",
         "Gr\xc3\xbc\xc3\x9f"
         "e \xf0\x9f\xa6\x97",
         "Gr\xc3\xbc\xc3\x9f"
         "e \xf0\x9f\xa6\x97"},
        {"newlines", "a\r\nb\tc", "a  b c"},
        {"terminal escape", "\x1b]0;title\x07", " ]0;title "},
        {"delete",
         "a\x7f"
         "b",
         "a b"},
        {"C1 control",
         "a\xc2\x9b"
         "2Jb",
         "a  2Jb"},
        {"right to left override",
         "a\xe2\x80\xae"
         "b",
         "a   b"},
        {"line separator, isolate, Arabic mark", "\xe2\x80\xa8\xe2\x81\xa9\xd8\x9c", "        "},
        {"their neighbours", "\xe2\x80\x8d\xe2\x80\xaf\xe2\x81\xa5\xd8\x9b",
         "\xe2\x80\x8d\xe2\x80\xaf\xe2\x81\xa5\xd8\x9b"},
        {"first after C1", "\xc2\xa0", "\xc2\xa0"},
        {"bad bytes",
         "a\xff\xfe"
         "b\xc0\x80"
         "c",
         "a??b??c"},
        {"surrogate", "\xed\xa0\x80.", "???."},
        {"part within", "\xe2\x82z", "??z"},
        {"cut after one of two", "ab\xc3", "ab"},
        {"cut after three of four", "ab\xf0\x9f\xa6", "ab"},
        {"cut after two of three", "ab\xe2\x82", "ab"},
        {"bad byte at the end is no cut", "ab\xff", "ab?"},
        {"continuation at the end is no cut", "ab\x80", "ab?"},
        {"overlong at the end is no cut", "ab\xe0\x80", "ab??"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        size_t length = strlen(cases[i].text);
        CLEANUP(memory_cleanup) char *text = malloc(length > 0 ? length : 1);
        memcpy(text, cases[i].text, length);
        size_t cleaned = utf8_clean_line(text, length);
        if (cleaned != strlen(cases[i].expected) || memcmp(text, cases[i].expected, cleaned) != 0)
            fail_msg("%s: '%.*s'", cases[i].name, (int)cleaned, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_are_what_the_standard_defines),
        cmocka_unit_test(cleaned_line_is_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
