/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * columns: a table of text for a terminal, each column as wide as its widest cell.
 *
 * Holds one line at a time: its user makes each line twice, once to measure and once to print, so that a table of any
 * length needs no memory. Pure; one thread.
 */
#ifndef CLI_COLUMNS_H
#define CLI_COLUMNS_H

#include <stddef.h>

#include "util/buf.h"
#include "util/cleanup.h"

#define COLUMNS_MAX 16

/* Fields are columns.c's. */
struct columns {
    const char *sides; /* one letter a column: 'l' for text, 'r' for numbers; borrowed */
    size_t count;
    size_t widths[COLUMNS_MAX];
    struct buf line;
    size_t ends[COLUMNS_MAX]; /* of the cells so far, in `line` */
    size_t cells;
};

/* `sides`, such as "llrr", says for each column to which side its cells go. */
void columns_init(struct columns *columns, const char *sides);
void columns_fini(struct columns *columns);
static inline void columns_cleanup(struct columns *columns)
{
    columns_fini(columns);
}

/* Begins a line. The cell's text is appended to what this returns, and columns_end_cell() ends it: `count` times. */
struct buf *columns_begin(struct columns *columns);
void columns_end_cell(struct columns *columns);

/* A line whose cells are these texts, [count]. */
void columns_heads(struct columns *columns, const char *const *heads);

/* The line is one of the table: its cells must fit. */
void columns_measure(struct columns *columns);

/* Appends the line and a newline. Fails when a cell had no memory. */
MUST_CHECK int columns_put(const struct columns *columns, struct buf *out, struct error *err);

#endif
