/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * window: the bytes of a file or pipe, read forwards, with a way back of limited length.
 *
 *   file  ……………|kept|at………………end|……………
 *               base^              ^what has been read so far
 *
 * Whoever wants to go back later marks where to; the window keeps what follows the mark, at most WINDOW_KEEP_MAX_BYTES.
 * Blocks on the file system. One thread.
 */
#ifndef PFW_WINDOW_H
#define PFW_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

#define PFW_WINDOW_KEEP_MAX_BYTES (4u << 20)

struct pfw_window {
    int fd; /* owned */
    unsigned char *data;
    size_t capacity;
    size_t at;     /* index of the next byte to take */
    size_t length; /* bytes in data */
    size_t mark;   /* index of the oldest byte to keep, at most `at` */
    uint64_t base; /* offset in the file of data[0] */
    bool is_at_end;
};

/* Takes `fd`, even on failure. -ENOMEM. */
MUST_CHECK int pfw_window_init(struct pfw_window *window, int fd, struct error *err);
void pfw_window_fini(struct pfw_window *window);

/* Makes room and reads once. After it `left` is the same or larger; the same means the end. What read() fails with. */
MUST_CHECK int pfw_window_fill(struct pfw_window *window, struct error *err);

/* Fills until `bytes` (at most a page) are left to take or the file ends. */
MUST_CHECK int pfw_window_need(struct pfw_window *window, size_t bytes, struct error *err);

/* Goes to an offset that is still in the window; one that is older becomes the oldest there is. */
void pfw_window_seek(struct pfw_window *window, uint64_t offset);

/* Bytes that can be taken without reading. */
static inline size_t pfw_window_left(const struct pfw_window *window)
{
    return window->length - window->at;
}

/* Those bytes, borrowed until the next fill. */
static inline const unsigned char *pfw_window_bytes(const struct pfw_window *window)
{
    return window->data + window->at;
}

/* Of the next byte to take, in the file. */
static inline uint64_t pfw_window_offset(const struct pfw_window *window)
{
    return window->base + window->at;
}

/* From now on keep what follows the place where we are. */
static inline void pfw_window_mark(struct pfw_window *window)
{
    window->mark = window->at;
}

/* Is the byte at `offset` still here? */
static inline bool pfw_window_holds(const struct pfw_window *window, uint64_t offset)
{
    return offset >= window->base && offset <= window->base + window->length;
}

#endif
