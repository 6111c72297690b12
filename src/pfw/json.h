/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json: a JSON value as a slice of the text that it stands in, and what it means.
 *
 * Slices come from line.h, which has checked them: their syntax, escapes and UTF-8 are right. Pure; any thread.
 */
#ifndef PFW_JSON_H
#define PFW_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/cursor.h"

enum pfw_json_kind {
    PFW_JSON_NONE, /* the key is missing */
    PFW_JSON_STRING,
    PFW_JSON_NUMBER,
    PFW_JSON_OBJECT,
    PFW_JSON_ARRAY,
    PFW_JSON_TRUE,
    PFW_JSON_FALSE,
    PFW_JSON_NULL,
};

/* One JSON value in place. */
struct pfw_json {
    struct cursor text; /* a string without its quotes, still escaped; an object with its braces; a number as it is */
    enum pfw_json_kind kind;
    bool is_escaped; /* a string that holds backslashes */
};

/* Is `string` a string and, unescaped, equal to `text`? */
bool pfw_json_equals(const struct pfw_json *string, const char *text);

/*
 * Appends a string's text, unescaped; half a surrogate pair becomes U+FFFD. Never longer than the slice. A value that
 * is no string is appended as it stands.
 */
void pfw_json_unescape(const struct pfw_json *string, struct buf *out);

/* A number as an integer, a fraction rounded to the nearest; false when it is none or doesn't fit into 64 bits. */
bool pfw_json_i64(const struct pfw_json *number, int64_t *out_value);

/* The code of the four hex digits at `at`, or -1 when they are not there before `end`. */
int32_t pfw_json_hex4(const char *at, const char *end);

#endif
