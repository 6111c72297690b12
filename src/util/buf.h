/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buf: text that is built piece by piece, with its largest size given at birth.
 *
 * The first append that fails (out of memory, larger than the limit) sticks: append freely, ask buf_status() once.
 * A failed append leaves the text as it was before it. Numbers don't depend on the locale.
 * One thread.
 */
#ifndef UTIL_BUF_H
#define UTIL_BUF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/error.h"

struct buf {
    char *data;      /* not NUL-terminated; NULL while empty. Read it freely, change it only through buf_… */
    size_t length;   /* bytes in use */
    size_t capacity; /* bytes allocated, but for one more that is kept for buf_string()'s NUL; at most max */
    size_t max;      /* bytes allowed */
    int status;      /* 0, -ENOMEM or -E2BIG: the first append that failed */
};

/* An empty text of at most `max_bytes`; allocates nothing yet. */
void buf_init(struct buf *buf, size_t max_bytes);
void buf_fini(struct buf *buf);

static inline void buf_cleanup(struct buf *buf)
{
    buf_fini(buf);
}

/* Empties the text and forgets a failure; keeps the memory. */
void buf_reset(struct buf *buf);

/* Cuts the text to its first `length` bytes; longer than it is does nothing. */
void buf_truncate(struct buf *buf, size_t length);

/* The first failure as an error, or 0. */
MUST_CHECK int buf_status(const struct buf *buf, struct error *err);

/* buf_reserve() when there is no room yet. */
char *buf_grow(struct buf *buf, size_t bytes);

/* Returns where `bytes` (at least 1) more may be written, to be followed by buf_commit(); NULL when that failed. */
static inline char *buf_reserve(struct buf *buf, size_t bytes)
{
    if (buf->status == 0 && bytes <= buf->capacity - buf->length)
        return buf->data + buf->length;
    return buf_grow(buf, bytes);
}

/* Counts `bytes`, at most as many as were reserved, as written. */
static inline void buf_commit(struct buf *buf, size_t bytes)
{
    buf->length += bytes;
}

/* `length` bytes as they are; NULL with a length of 0 is fine. */
static inline void buf_bytes(struct buf *buf, const void *bytes, size_t length)
{
    if (length == 0)
        return; /* memcpy() may not be given NULL */
    char *to = buf_reserve(buf, length);
    if (to == NULL)
        return;
    memcpy(to, bytes, length);
    buf_commit(buf, length);
}

/* `text` up to its NUL. Inline, since the compiler knows the length of a literal. */
static inline void buf_text(struct buf *buf, const char *text)
{
    buf_bytes(buf, text, strlen(text));
}

/* One byte, NUL too. */
static inline void buf_char(struct buf *buf, char character)
{
    char *to = buf_reserve(buf, 1);
    if (to == NULL)
        return;
    *to = character;
    buf_commit(buf, 1);
}

/* Not for fractions (%f, %e, %g, %a), which printf() writes as the locale wants them: see buf_fixed(), buf_double(). */
void buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);
void buf_u64(struct buf *buf, uint64_t number);
void buf_i64(struct buf *buf, int64_t number);

/*
 * `number` with at most `decimals` (0 to 9) digits after the point, zeros at the end left out: 12.5, 0, 100. Rounded to
 * the nearest, halves away from zero; what rounds to 0 has no sign. A number that is not finite becomes 0: JSON has no
 * word for it. From 1e15 on like buf_double().
 */
void buf_fixed(struct buf *buf, double number, unsigned decimals);

/*
 * A text that reads back as the same double, in as few digits as that takes: 0.1, 1500, 1e+300, -0. Not finite: null.
 */
void buf_double(struct buf *buf, double number);

/*
 * A JSON string with its quotes. Any bytes go in: control characters, quotes and backslashes are escaped, and bytes
 * that are not UTF-8 become U+FFFD, one for each maximal bad part, so that what comes out is strict UTF-8 and JSON.
 */
void buf_json_string(struct buf *buf, const char *text);
void buf_json_bytes(struct buf *buf, const char *bytes, size_t length);

/* NUL-terminates (the NUL counts neither in length nor for the limit) and returns the text; "" after a failure.
 * Borrowed until the next append. */
const char *buf_string(struct buf *buf);

#endif
