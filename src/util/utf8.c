/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/utf8.h"

#include <stdbool.h>
#include <string.h>

/* What a lead byte asks of the bytes after it: their number, and the range of the first of them. */
struct utf8_rule {
    unsigned char lead_min, lead_max;
    unsigned char length;
    unsigned char second_min, second_max;
};

static const struct utf8_rule utf8_rules[] = {
    {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf}, {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f},
    {0xee, 0xef, 3, 0x80, 0xbf}, {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
};

static const struct utf8_rule *utf8_rule_of(unsigned char lead)
{
    for (size_t i = 0; i < sizeof utf8_rules / sizeof utf8_rules[0]; i++) {
        if (lead >= utf8_rules[i].lead_min && lead <= utf8_rules[i].lead_max)
            return &utf8_rules[i];
    }
    return NULL;
}

size_t utf8_sequence(const unsigned char *bytes, size_t left, size_t *out_bad)
{
    if (bytes[0] < 0x80)
        return 1;
    *out_bad = 1;
    const struct utf8_rule *rule = utf8_rule_of(bytes[0]);
    if (rule == NULL)
        return 0;
    for (size_t i = 1; i < rule->length; i++) {
        unsigned char least = i == 1 ? rule->second_min : 0x80;
        unsigned char most = i == 1 ? rule->second_max : 0xbf;
        if (i >= left || bytes[i] < least || bytes[i] > most) {
            *out_bad = i;
            return 0;
        }
    }
    return rule->length;
}

/* Does it end a line, or make what stands beside it appear in another order (Unicode Standard Annex 9, chapter 2)? */
static bool utf8_is_format(const unsigned char *bytes, size_t length)
{
    if (length == 2)
        return bytes[0] == 0xd8 && bytes[1] == 0x9c; /* U+061C */
    if (length != 3 || bytes[0] != 0xe2)
        return false;
    if (bytes[1] == 0x80)
        return bytes[2] == 0x8e || bytes[2] == 0x8f ||
               (bytes[2] >= 0xa8 && bytes[2] <= 0xae);               /* U+200E, U+200F, U+2028 to U+202E */
    return bytes[1] == 0x81 && bytes[2] >= 0xa6 && bytes[2] <= 0xa9; /* U+2066 to U+2069 */
}

static bool utf8_is_control(const unsigned char *bytes, size_t length)
{
    if (length == 1)
        return bytes[0] < 0x20 || bytes[0] == 0x7f;
    if (length == 2 && bytes[0] == 0xc2)
        return bytes[1] < 0xa0; /* C1: terminals obey U+009B as they obey ESC [ */
    return utf8_is_format(bytes, length);
}

size_t utf8_clean_line(char *text, size_t length)
{
    unsigned char *bytes = (unsigned char *)text;
    size_t at = 0;
    while (at < length) {
        size_t bad = 0;
        size_t good = utf8_sequence(bytes + at, length - at, &bad);
        if (good == 0) {
            bool is_cut = at + bad == length && utf8_rule_of(bytes[at]) != NULL;
            if (is_cut)
                return at;
            memset(bytes + at, '?', bad);
            at += bad;
            continue;
        }
        if (utf8_is_control(bytes + at, good))
            memset(bytes + at, ' ', good);
        at += good;
    }
    return length;
}
