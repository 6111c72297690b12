/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/cursor.h"

#include <math.h>

/* More digits than a double holds change nothing; this many bounds the work for a line of digits. */
enum { CURSOR_EXPONENT_MAX = 400 };

static bool cursor_is_blank(char character)
{
    return character == ' ' || character == '\t';
}

static bool cursor_is_digit(char character)
{
    return character >= '0' && character <= '9';
}

bool cursor_word(struct cursor *cursor, struct cursor *out_word)
{
    cursor_skip_blanks(cursor);
    const char *start = cursor->at;
    while (cursor->at < cursor->end && !cursor_is_blank(*cursor->at))
        cursor->at++;
    if (cursor->at == start)
        return false;
    *out_word = (struct cursor){.at = start, .end = cursor->at};
    return true;
}

bool cursor_i64(struct cursor *cursor, int64_t *out_number)
{
    struct cursor ahead = *cursor;
    cursor_skip_blanks(&ahead);
    bool is_negative = cursor_accept(&ahead, '-');
    if (!is_negative)
        (void)cursor_accept(&ahead, '+');
    if (cursor_is_empty(&ahead) || !cursor_is_digit(*ahead.at))
        return false;
    uint64_t magnitude;
    if (!cursor_u64(&ahead, &magnitude) || magnitude > (uint64_t)INT64_MAX + (is_negative ? 1 : 0))
        return false;
    *out_number = is_negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    *cursor = ahead;
    return true;
}

static bool cursor_exponent(struct cursor *cursor, int *out_exponent)
{
    struct cursor ahead = *cursor;
    if (!cursor_accept(&ahead, 'e') && !cursor_accept(&ahead, 'E'))
        return false;
    int64_t exponent;
    if (!cursor_is_empty(&ahead) && cursor_is_blank(*ahead.at))
        return false;
    if (!cursor_i64(&ahead, &exponent))
        return false;
    if (exponent > CURSOR_EXPONENT_MAX)
        exponent = CURSOR_EXPONENT_MAX;
    if (exponent < -CURSOR_EXPONENT_MAX)
        exponent = -CURSOR_EXPONENT_MAX;
    *out_exponent = (int)exponent;
    *cursor = ahead;
    return true;
}

bool cursor_double(struct cursor *cursor, double *out_number)
{
    struct cursor ahead = *cursor;
    cursor_skip_blanks(&ahead);
    bool is_negative = cursor_accept(&ahead, '-');
    if (!is_negative)
        (void)cursor_accept(&ahead, '+');

    long double mantissa = 0;
    int exponent = 0;
    bool has_digit = false;
    for (; !cursor_is_empty(&ahead) && cursor_is_digit(*ahead.at); ahead.at++, has_digit = true)
        mantissa = mantissa * 10 + (*ahead.at - '0');
    if (cursor_accept(&ahead, '.')) {
        for (; !cursor_is_empty(&ahead) && cursor_is_digit(*ahead.at); ahead.at++, has_digit = true) {
            mantissa = mantissa * 10 + (*ahead.at - '0');
            exponent--;
        }
    }
    if (!has_digit)
        return false;
    int written_exponent = 0;
    if (cursor_exponent(&ahead, &written_exponent))
        exponent += written_exponent;

    double number = (double)(mantissa * powl(10, exponent));
    if (!isfinite(number))
        return false;
    *out_number = is_negative ? -number : number;
    *cursor = ahead;
    return true;
}

bool cursor_accept_text(struct cursor *cursor, const char *text)
{
    size_t length = strlen(text);
    if (cursor_left(cursor) < length || memcmp(cursor->at, text, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

bool cursor_equals(const struct cursor *cursor, const char *text)
{
    size_t length = strlen(text);
    return cursor_left(cursor) == length && memcmp(cursor->at, text, length) == 0;
}

static char cursor_lower(char character)
{
    return character >= 'A' && character <= 'Z' ? (char)(character - 'A' + 'a') : character;
}

bool cursor_equals_any_case(const struct cursor *cursor, const char *text)
{
    if (cursor_left(cursor) != strlen(text))
        return false;
    for (size_t i = 0; text[i] != '\0'; i++) {
        if (cursor_lower(cursor->at[i]) != cursor_lower(text[i]))
            return false;
    }
    return true;
}
