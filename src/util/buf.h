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

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

struct buf {
    char *data;      /* not NUL-terminated; NULL while empty. Read it freely, change it only through buf_… */
    size_t length;   /* bytes in use */
    size_t capacity; /* bytes allocated */
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

/* Returns where `bytes` more may be written, to be followed by buf_commit(); NULL when that failed. */
char *buf_reserve(struct buf *buf, size_t bytes);
void buf_commit(struct buf *buf, size_t bytes);

void buf_bytes(struct buf *buf, const void *bytes, size_t length);
void buf_text(struct buf *buf, const char *text);
void buf_char(struct buf *buf, char character);
void buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);
void buf_u64(struct buf *buf, uint64_t number);
void buf_i64(struct buf *buf, int64_t number);

/*
 * `number` with at most `decimals` (0 to 9) digits after the point, zeros at the end left out: 12.5, 0, 100.
 * A number that is not finite becomes 0: JSON has no word for it. From 1e15 on like buf_double().
 */
void buf_fixed(struct buf *buf, double number, unsigned decimals);

/* The shortest text that reads back as the same double; not finite: null. */
void buf_double(struct buf *buf, double number);

/*
 * A JSON string with its quotes. Any bytes go in: control characters, quotes and backslashes are escaped, and bytes
 * that are not UTF-8 become U+FFFD, one for each maximal bad part, so that what comes out is strict UTF-8 and JSON.
 */
void buf_json_string(struct buf *buf, const char *text);
void buf_json_bytes(struct buf *buf, const char *bytes, size_t length);

/* NUL-terminates (the NUL isn't counted in length) and returns the text; "" when that failed. Borrowed. */
const char *buf_string(struct buf *buf);

#endif
