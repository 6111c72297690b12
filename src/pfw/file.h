/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file: appends whole lines to a trace so that what is on disk is valid at every moment, whoever kills us.
 *
 * Linux ends a write() early for a fatal signal only between two pages of the file (generic_perform_write() and
 * iomap_write_iter() look for one before each chunk, and a chunk never crosses a page). So no gzip member crosses a
 * page boundary, and neither does a plain line: a write() that is cut leaves whole members. Members are filled up to
 * the boundary with a comment in the gzip header (FCOMMENT, RFC 1952), plain lines with blanks before their newline,
 * which JSON allows. One line whose member alone is larger than a page is written as it is; it is the one exception.
 *
 *   page 0                                    page 1
 *   |member|member|member, comment to the end|member|member …
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

#define PFW_FILE_PAGE_BYTES 4096

struct pfw_file;

/* Takes `fd` (even on failure), empty or at a page boundary or not: goes on at its end. Returns owned. -ENOMEM, -EIO….
 */
MUST_CHECK int pfw_file_new(int fd, bool is_compressed, struct pfw_file **out_file, struct error *err);
void pfw_file_free(struct pfw_file *file);

/*
 * Appends whole lines. `*out_taken` is how many bytes of `lines` are in the file now, always whole lines, also on
 * failure: call again with the rest. -ENOSPC and what else write() gives.
 */
MUST_CHECK int pfw_file_append(struct pfw_file *file, const char *lines, size_t length, size_t *out_taken,
                               struct error *err);

MUST_CHECK int pfw_file_sync(struct pfw_file *file, struct error *err);

/* Does `path` still name this file? (It may have been removed, or its directory.) */
bool pfw_file_is_at(const struct pfw_file *file, const char *path);

uint64_t pfw_file_size(const struct pfw_file *file);

#endif
