/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reader: the lines of a trace, one after another, in constant memory however large the file is.
 *
 * Takes gzip with any number of members and plain text, and goes on after damage (unpack.h says what is given out and
 * what is not). A line is given as it stands, without the blanks around it; empty lines are passed over. Older DFTracer
 * traces are a JSON array: after a line that begins with '[', brackets and the commas behind events are taken away.
 * What a line says is for line.h. Blocks on the file system. One thread.
 */
#ifndef PFW_READER_H
#define PFW_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pfw/unpack.h"
#include "util/error.h"

/* A longer line is left out, and told. */
#define PFW_READER_LINE_MAX_BYTES (64u << 20)

struct pfw_reader;

struct pfw_reader_options {
    struct pfw_unpack_options unpack;
    size_t line_max_bytes; /* 0: PFW_READER_LINE_MAX_BYTES */
};

enum pfw_item_kind { PFW_ITEM_END, PFW_ITEM_LINE, PFW_ITEM_GAP };

struct pfw_item {
    enum pfw_item_kind kind;
    const char *text; /* borrowed until the next call */
    size_t length;    /* at least 1 */
    uint64_t number;  /* of the line, from 1; after a gap, of the lines that could be read */
    bool is_cut;      /* the file ended before the line's newline came: it may be half a line */
    struct pfw_gap gap;
};

struct pfw_reader_status {
    struct pfw_unpack_status unpack;
    uint64_t size_bytes; /* of the file when it was opened; 0 for what has no size */
};

/* Opens `path`; "-" is standard input. Returns owned through `*out_reader`; `err` names the path. */
MUST_CHECK int pfw_reader_open(const char *path, const struct pfw_reader_options *options,
                               struct pfw_reader **out_reader, struct error *err);

/* The same for an open descriptor. Takes `fd`, even on failure. */
MUST_CHECK int pfw_reader_open_fd(int fd, const struct pfw_reader_options *options, struct pfw_reader **out_reader,
                                  struct error *err);
void pfw_reader_close(struct pfw_reader *reader);
DEFINE_CLEANUP(pfw_reader, pfw_reader_close);

/* The next line or the next gap, in the order of the file. Fails when reading does, and for want of memory. */
MUST_CHECK int pfw_reader_next(struct pfw_reader *reader, struct pfw_item *out_item, struct error *err);

/* How far reading has come. */
struct pfw_reader_status pfw_reader_status(const struct pfw_reader *reader);

#endif
