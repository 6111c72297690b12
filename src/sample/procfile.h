/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * procfile: a file of /proc or /sys that is opened once and read again and again into the same memory.
 *
 * Reading at offset 0 makes the kernel compute the text anew. The buffer grows until the text fits, so that nothing is
 * ever cut at a buffer's size, and then stays. One thread at a time.
 */
#ifndef SAMPLE_PROCFILE_H
#define SAMPLE_PROCFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cursor.h"
#include "util/error.h"

/* More than any file of the kernel that we know of: /proc/stat of 8,192 CPUs and 60,000 interrupts has 2 MiB. */
#define PROCFILE_MAX_BYTES (16 * 1024 * 1024)

struct procfile {
    int fd;
    char *path; /* for messages */
    char *text; /* what the last procfile_read() read; not NUL-terminated */
    size_t length;
    size_t capacity;
    /*
     * No line is longer; 0: unknown. The user's, after procfile_open(), for a file that the kernel makes line by line
     * or at once (seq_file): it stops early only before a line that its page has no room for, so a text that ends
     * further from the page's end is whole, and its end isn't read a second time.
     */
    size_t line_max_bytes;
};

/* Closed, and fit for procfile_close(). */
#define PROCFILE_CLOSED ((struct procfile){.fd = -1})

/* Opens `<root>/<name>`. Fails with the errno of open(), with -EMSGSIZE for a path that is too long, or -ENOMEM. */
MUST_CHECK int procfile_open(struct procfile *file, const char *root, const char *name, struct error *err);
void procfile_close(struct procfile *file);

/*
 * Reads all of it: `file->text`, `file->length`, valid until the next call. On failure the text is empty.
 * Fails with the errno of pread(), -E2BIG past PROCFILE_MAX_BYTES, -ENOMEM.
 */
MUST_CHECK int procfile_read(struct procfile *file, struct error *err);

/* Does the line start with `prefix`? */
static inline bool procfile_starts_with(const struct cursor *line, const char *prefix)
{
    struct cursor ahead = *line;
    return cursor_accept_text(&ahead, prefix);
}

/*
 * Takes up to `max` numbers from a line; what follows them is left alone, for a newer kernel may have more. False when
 * something among them is no number that fits; `*out_count` is then how many came before it. Pure.
 */
MUST_CHECK bool procfile_numbers(struct cursor *line, uint64_t *numbers, size_t max, size_t *out_count);

static inline void procfile_cleanup(struct procfile *file)
{
    procfile_close(file);
}

#endif
