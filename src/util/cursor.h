/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cursor: reads text from outside and can't pass its end. For the files of /proc and /sys and for other lines.
 *
 * A cursor is two pointers into memory that somebody else owns. Nothing here allocates, depends on the locale, or
 * needs a NUL. Parsing takes a line as a cursor of its own, so that rubbish in one line spoils that line alone.
 * Any thread; a cursor belongs to one.
 */
#ifndef UTIL_CURSOR_H
#define UTIL_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const char *at;
    const char *end;
};

/* `bytes` are borrowed; NULL with a length of 0 is fine. */
static inline struct cursor cursor_of(const char *bytes, size_t length)
{
    return (struct cursor){.at = bytes, .end = bytes != NULL ? bytes + length : NULL};
}

/* How many bytes are left. */
static inline size_t cursor_left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

/* Is nothing left? */
static inline bool cursor_is_empty(const struct cursor *cursor)
{
    return cursor->at >= cursor->end;
}

/* Skips blanks and tabs, not newlines. */
static inline void cursor_skip_blanks(struct cursor *cursor)
{
    while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\t'))
        cursor->at++;
}

/* Takes the next line without its newline; a last line without newline counts. False when nothing is left. */
static inline bool cursor_line(struct cursor *cursor, struct cursor *out_line)
{
    if (cursor_is_empty(cursor))
        return false;
    const char *newline = memchr(cursor->at, '\n', cursor_left(cursor));
    const char *line_end = newline != NULL ? newline : cursor->end;
    *out_line = (struct cursor){.at = cursor->at, .end = line_end};
    cursor->at = newline != NULL ? newline + 1 : cursor->end;
    return true;
}

/* Skips blanks, takes bytes up to the next blank or the end. False when nothing is left. */
bool cursor_word(struct cursor *cursor, struct cursor *out_word);

/* Skips blanks, takes a decimal number that fits; false, cursor untouched, when there is none. */
static inline bool cursor_u64(struct cursor *cursor, uint64_t *out_number)
{
    const char *at = cursor->at;
    while (at < cursor->end && (*at == ' ' || *at == '\t'))
        at++;
    const char *first = at;
    uint64_t number = 0;
    while (at < cursor->end && (unsigned char)(*at - '0') <= 9) {
        unsigned digit = (unsigned)(*at - '0');
        if (number >= UINT64_MAX / 10 && (number > UINT64_MAX / 10 || digit > UINT64_MAX % 10))
            return false;
        number = number * 10 + digit;
        at++;
    }
    if (at == first)
        return false;
    cursor->at = at;
    *out_number = number;
    return true;
}

/* The same with an optional sign. */
bool cursor_i64(struct cursor *cursor, int64_t *out_number);

/*
 * Skips blanks, takes a decimal number with optional sign, fraction and exponent, the point as separator, and rounds it
 * to the nearest double. False, cursor untouched, when there is none or it is larger than any double.
 */
bool cursor_double(struct cursor *cursor, double *out_number);

/* Takes `character` if it is next. */
static inline bool cursor_accept(struct cursor *cursor, char character)
{
    if (cursor_is_empty(cursor) || *cursor->at != character)
        return false;
    cursor->at++;
    return true;
}

/* Takes `text` if it is next. */
bool cursor_accept_text(struct cursor *cursor, const char *text);

/* Is the whole of `cursor` equal to `text`? */
bool cursor_equals(const struct cursor *cursor, const char *text);

/* The same, but ASCII letters of either case are equal, whatever the locale. */
bool cursor_equals_any_case(const struct cursor *cursor, const char *text);

#endif
