/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pages: lays whole lines out as the bytes of a file so that no piece of them crosses a page boundary (file.h of this
 * folder says why). A piece is a gzip member or a plain line.
 *
 * Pure: reads lines, fills memory of its own; file.c writes it. One thread.
 */
#ifndef PFW_PAGES_H
#define PFW_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

#define PFW_PAGE_BYTES 4096

struct pfw_pages;

/* What one write() shall put where. The bytes are borrowed from pfw_pages, or from the lines, until the next call. */
struct pfw_batch {
    uint64_t offset; /* in the file: the asked one, or the byte before it, see pfw_pages_lay() */
    const char *bytes;
    size_t length;
};

/* Returns owned, or NULL without memory. */
struct pfw_pages *pfw_pages_new(bool is_compressed);
void pfw_pages_free(struct pfw_pages *pages);
DEFINE_CLEANUP(pfw_pages, pfw_pages_free);

/*
 * Lays out the first lines of `lines` (whole ones, `length` > 0) for a file that ends at `offset` with a whole piece.
 * Takes as many as one batch holds, at least one. To fill up a page behind a plain line that is in the file already,
 * the batch begins with that line's newline, one byte before `offset`, and makes a blank of it. Returns 0, or -ENOMEM.
 */
MUST_CHECK int pfw_pages_lay(struct pfw_pages *pages, uint64_t offset, const char *lines, size_t length,
                             struct pfw_batch *out_batch);

/*
 * Of the last batch only the first `written` bytes are in the file. Returns how many of them are whole pieces, and in
 * `*out_lines` how many bytes of the lines these hold. A page that isn't there to its last piece counts as not there.
 */
size_t pfw_pages_whole(const struct pfw_pages *pages, size_t written, size_t *out_lines);

#endif
