/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/cursor.h"

#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CURSOR_LEADING_DIGITS = 15,      /* any so many are an exact double */
    CURSOR_ROUND_DIGITS = 768,       /* DBL_MIN_EXP and its subnormals: 767 digits, and one to stand beside them */
    CURSOR_TAIL_BYTES = 32,          /* one more digit, 'e', an int64_t, a NUL */
    CURSOR_EXPONENT_LIMIT = 1000000, /* the length of a line can't make up for this many powers of ten */
};

/* One operation of the short way must be rounded once, to double. */
_Static_assert(FLT_EVAL_METHOD == 0, "doubles are computed with more precision here than they have");

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

/* A decimal number as it was read: all its digits as one integer, times 10^exponent. */
struct cursor_decimal {
    const char *first; /* the digits, and the point among them */
    const char *end;
    size_t significant; /* how many digits there are from the first that isn't 0 on */
    uint64_t leading;   /* the first CURSOR_LEADING_DIGITS of these */
    int64_t exponent;
};

/* Takes the digits at `cursor`. Returns how many there are. */
static size_t cursor_digits(struct cursor *cursor, struct cursor_decimal *decimal)
{
    const char *start = cursor->at;
    for (; !cursor_is_empty(cursor) && cursor_is_digit(*cursor->at); cursor->at++) {
        if (*cursor->at == '0' && decimal->significant == 0)
            continue;
        if (decimal->significant++ < CURSOR_LEADING_DIGITS)
            decimal->leading = decimal->leading * 10 + (uint64_t)(*cursor->at - '0');
    }
    return (size_t)(cursor->at - start);
}

/* Takes "e-12" if it is there. One beyond all doubles is cut to what still is. */
static int64_t cursor_exponent(struct cursor *cursor)
{
    struct cursor ahead = *cursor;
    if (!cursor_accept(&ahead, 'e') && !cursor_accept(&ahead, 'E'))
        return 0;
    bool is_negative = cursor_accept(&ahead, '-');
    if (!is_negative)
        (void)cursor_accept(&ahead, '+');
    if (cursor_is_empty(&ahead) || !cursor_is_digit(*ahead.at))
        return 0;
    int64_t exponent = 0;
    for (; !cursor_is_empty(&ahead) && cursor_is_digit(*ahead.at); ahead.at++) {
        if (exponent < CURSOR_EXPONENT_LIMIT)
            exponent = exponent * 10 + (*ahead.at - '0');
    }
    *cursor = ahead;
    return is_negative ? -exponent : exponent;
}

/*
 * Rounds what the short way can't: the digits are written anew without point for strtod(). Half way between two
 * doubles lies no number of more than CURSOR_ROUND_DIGITS, so that all that comes after these, if it isn't zero, counts
 * as one digit more.
 */
static double cursor_round(const struct cursor_decimal *decimal)
{
    char text[CURSOR_ROUND_DIGITS + CURSOR_TAIL_BYTES];
    size_t length = 0;
    const char *at = decimal->first;
    while (at < decimal->end && (*at == '0' || *at == '.'))
        at++;
    bool has_rest = false;
    for (; at < decimal->end; at++) {
        if (length == CURSOR_ROUND_DIGITS)
            has_rest = has_rest || (*at != '0' && *at != '.');
        else if (*at != '.')
            text[length++] = *at;
    }
    if (has_rest)
        text[length++] = '1';
    int64_t exponent = decimal->exponent + (int64_t)(decimal->significant - length);
    (void)snprintf(text + length, sizeof text - length, "e%" PRId64, exponent);
    /* A program that hosts us may have set a locale whose point is a comma. "C" is always there and costs no memory. */
    return strtod_l(text, NULL, newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

static double cursor_decimal_value(const struct cursor_decimal *decimal)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    enum { POWER_MAX = sizeof powers / sizeof powers[0] - 1 };
    if (decimal->significant == 0)
        return 0;
    if (decimal->significant > CURSOR_LEADING_DIGITS || decimal->exponent > POWER_MAX || decimal->exponent < -POWER_MAX)
        return cursor_round(decimal);
    /* Both are exact, so the one operation rounds once. (Clinger, "How to read floating point numbers accurately") */
    double digits = (double)decimal->leading;
    return decimal->exponent < 0 ? digits / powers[-decimal->exponent] : digits * powers[decimal->exponent];
}

bool cursor_double(struct cursor *cursor, double *out_number)
{
    struct cursor ahead = *cursor;
    cursor_skip_blanks(&ahead);
    bool is_negative = cursor_accept(&ahead, '-');
    if (!is_negative)
        (void)cursor_accept(&ahead, '+');

    struct cursor_decimal decimal = {.first = ahead.at};
    size_t whole_digits = cursor_digits(&ahead, &decimal);
    size_t fraction_digits = cursor_accept(&ahead, '.') ? cursor_digits(&ahead, &decimal) : 0;
    if (whole_digits + fraction_digits == 0)
        return false;
    decimal.end = ahead.at;
    decimal.exponent = cursor_exponent(&ahead) - (int64_t)fraction_digits;

    double number = cursor_decimal_value(&decimal);
    if (!isfinite(number))
        return false;
    *out_number = is_negative ? -number : number;
    *cursor = ahead;
    return true;
}

bool cursor_accept_text(struct cursor *cursor, const char *text)
{
    size_t length = strlen(text);
    if (length == 0)
        return true; /* memcmp() may not be given NULL */
    if (cursor_left(cursor) < length || memcmp(cursor->at, text, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

bool cursor_equals(const struct cursor *cursor, const char *text)
{
    struct cursor ahead = *cursor;
    return cursor_accept_text(&ahead, text) && cursor_is_empty(&ahead);
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
