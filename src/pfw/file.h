/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file: appends whole lines to a trace so that what is on disk is valid at every moment, whoever kills us.
 *
 * Linux ends a write() early for a fatal signal only between two pages of the file (generic_perform_write() and
 * iomap_write_iter() look for one before each chunk, and a chunk never crosses a page). So no gzip member crosses a
 * page boundary, and neither does a plain line: a write() that is cut leaves whole members. Members are filled up to
 * the boundary in the gzip header (an extra field or a comment, RFC 1952), plain lines with blanks before their
 * newline, which JSON allows. One line whose member alone is larger than a page is written as it is; it is the one
 * exception. pages.h lays lines out in this way.
 *
 *   page 0                                 page 1
 *   |member|member|member, filled         |member|member …
 *
 * A write that fails half-way (disk full) is cut off again, so the next one begins after a whole member.
 * Blocks on the file system. One thread.
 */
#ifndef PFW_FILE_H
#define PFW_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

struct pfw_file;

/*
 * Takes `fd` (even on failure), a regular file open for writing that ends anywhere: goes on at its end. Returns owned.
 * -EINVAL (no regular file), -ENOMEM, -EIO….
 */
MUST_CHECK int pfw_file_new(int fd, bool is_compressed, struct pfw_file **out_file, struct error *err);

/* Frees, and tells what the file system could not store only now (NFS). Accepts NULL. */
int pfw_file_close(struct pfw_file *file, struct error *err);

/*
 * Appends whole lines. `*out_taken` is how many bytes of `lines` are in the file now, always whole lines, also on
 * failure: call again with the rest. -ENOSPC and what else write() gives.
 */
MUST_CHECK int pfw_file_append(struct pfw_file *file, const char *lines, size_t length, size_t *out_taken,
                               struct error *err);

/* What was appended survives power loss from now on. */
MUST_CHECK int pfw_file_sync(struct pfw_file *file, struct error *err);

enum pfw_file_place {
    PFW_FILE_AT_PATH,   /* as far as anyone can tell */
    PFW_FILE_ELSEWHERE, /* nothing is at the path, but the file has another name: it was moved, or its directory was */
    PFW_FILE_REMOVED,   /* the file has no name any more */
};

/* Where is the file that was opened at `path`? */
enum pfw_file_place pfw_file_place(const struct pfw_file *file, const char *path);

/* Up to the end of the last whole member or line. */
uint64_t pfw_file_size(const struct pfw_file *file);

#endif
