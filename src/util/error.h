/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * error: what failed and why, for the program (a negative errno) and for a person (the text).
 *
 * A function that can fail returns 0 or a negative errno, and takes a `struct error *` last, which may be NULL.
 * Each level adds what only it knows with error_wrap(): "trace: opening '/x/a.pfw.gz': No space left on device".
 * Any thread; a struct error belongs to one.
 */
#ifndef UTIL_ERROR_H
#define UTIL_ERROR_H

#include "util/cleanup.h"

#define ERROR_TEXT_MAX_BYTES 1024

struct error {
    int code;                        /* the negative errno that was returned, 0 when nothing failed */
    char text[ERROR_TEXT_MAX_BYTES]; /* one printable line of UTF-8 without a full stop; cut, never overrun */
};

/*
 * Says that something failed: stores `code` and the words, returns `code`. `err` may be NULL. Control characters become
 * blanks and bytes that are not UTF-8 '?': texts from outside may go in as they are.
 */
int error_set(struct error *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* The same from errno: returns -errno, the text ends with ": <its words>", for which too long words make room. */
int error_errno(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Puts "<words>: " before the text that is there. Returns `code`. */
int error_wrap(struct error *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
