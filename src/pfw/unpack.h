/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unpack: the text of a trace file, which is gzip (any number of members) or plain; its content tells, not its name.
 *
 * What is given out, and what is not:
 *
 * - Text of a gzip member is held back until the member's check sum was seen to be right, so that a damaged file never
 *   gives wrong text. A member of more than PFW_UNPACK_HOLD_MAX_BYTES is given as it comes from there on, because
 *   memory is bounded; when its check fails at last, that is told after its text.
 * - A member that the end of the file cuts off has no check sum: what there is of it is given, and the cut is told.
 * - A damaged member is left out whole (`is_salvaging` gives what precedes the damage). Reading goes on at the next
 *   member that is complete and whose check sum is right; nothing else ends the search, so bytes that only look
 *   like a member can't be taken for one. It begins at the byte after the damaged member's first: damage may have made
 *   us run past the next one's begin. Only the last PFW_WINDOW_KEEP_MAX_BYTES of a long member can be searched.
 *   PFW_UNPACK_TRIES_MAX candidates are tried after one place of damage, then the rest of the file is left.
 * - Zero bytes after the last member (file systems and tapes leave them) are told, and nothing else.
 *
 * Blocks on the file system. One thread.
 */
#ifndef PFW_UNPACK_H
#define PFW_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

#define PFW_UNPACK_HOLD_MAX_BYTES (16u << 20)
#define PFW_UNPACK_TRIES_MAX      1000

struct pfw_unpack;

struct pfw_unpack_options {
    bool is_salvaging;     /* give what precedes the damage in a damaged member, too: it may be wrong */
    size_t hold_max_bytes; /* 0: PFW_UNPACK_HOLD_MAX_BYTES */
};

enum pfw_gap_kind {
    PFW_GAP_DAMAGED,   /* these bytes of the file were left out */
    PFW_GAP_UNCHECKED, /* the text of these bytes was given already, but their check failed: some of it may be wrong */
    PFW_GAP_CUT,       /* the file ends within the member that begins here; what there is of it was given */
    PFW_GAP_ZEROS,     /* zero bytes at the end of the file */
    PFW_GAP_LONG_LINE, /* a line longer than the limit was left out; offset and length are those of text (reader.h) */
};

struct pfw_gap {
    enum pfw_gap_kind kind;
    uint64_t offset; /* in the file */
    uint64_t length;
    char reason[96]; /* "invalid distance too far back" */
};

enum pfw_piece_kind { PFW_PIECE_END, PFW_PIECE_TEXT, PFW_PIECE_GAP };

struct pfw_piece {
    enum pfw_piece_kind kind;
    const char *text; /* borrowed until the next call */
    size_t length;    /* at least 1 */
    struct pfw_gap gap;
};

struct pfw_unpack_status {
    bool is_compressed;
    uint64_t members;    /* whole ones */
    uint64_t file_bytes; /* taken so far */
    uint64_t text_bytes; /* given so far */
};

/* Takes `fd`, even on failure; reads the first bytes. Returns owned through `*out_unpack`. -ENOMEM, -EISDIR, read()'s.
 */
MUST_CHECK int pfw_unpack_open(int fd, const struct pfw_unpack_options *options, struct pfw_unpack **out_unpack,
                               struct error *err);
void pfw_unpack_close(struct pfw_unpack *unpack);
DEFINE_CLEANUP(pfw_unpack, pfw_unpack_close);

/* The next piece of text or the next gap, in the order of the file. Fails when reading does, and for want of memory. */
MUST_CHECK int pfw_unpack_next(struct pfw_unpack *unpack, struct pfw_piece *out_piece, struct error *err);

/* How far unpacking has come. */
struct pfw_unpack_status pfw_unpack_status(const struct pfw_unpack *unpack);

#endif
