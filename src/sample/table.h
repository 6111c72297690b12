/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table: what a collector measured at one tick: rows (a CPU, a disk, a mount) by columns (what is measured of each).
 *
 * Rows are found by name and keep the order in which the kernel lists them. A counter is turned into what a reader can
 * add up: `increase` since the row's previous tick and `total` since the row was first seen, which never falls. How a
 * step back is read (a wrap, a reset, a kernel that takes a little back, a device that reads 0 once) is decided here
 * for all collectors:
 *   - a raw value below the last one increases nothing, and the difference starts anew from it: guessing a wrap
 *     makes petabytes out of a reset, so one interval is given up instead;
 *   - a raw value that is back at or above the old one goes on from the old one, until the counter has grown to more
 *     than half of that (see table.c);
 *   - a raw value that fell by an eighth or less is the kernel taking a little back: nothing increases until the old
 *     value is passed.
 * A row that was not seen in a tick is dropped; when it comes back, it is a new one.
 * One thread at a time; allocates only when a row or column appears.
 */
#ifndef SAMPLE_TABLE_H
#define SAMPLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

enum sample_kind {
    SAMPLE_COUNTER, /* grows; `increase` and `total` */
    SAMPLE_INTEGER, /* a gauge in whole units: `integer` */
    SAMPLE_REAL,    /* a gauge: `real` */
};

struct sample_column {
    const char *name; /* as in traces: "bytes_read" */
    const char *unit; /* "bytes", "seconds", "ticks", "kB", "celsius", …; "" for a plain number */
    const char *help; /* one line for a person, no full stop */
    enum sample_kind kind;
};

struct sample_value {
    union {
        uint64_t total; /* SAMPLE_COUNTER */
        int64_t integer;
        double real;
    };
    uint64_t increase; /* SAMPLE_COUNTER: since the previous tick in which it was known; 0 in a row's first */
    /* the rest is table.c's, but for is_known, which stands where it makes the struct smallest */
    uint64_t raw;             /* what the kernel said last; may be read */
    uint64_t raw_peak;        /* the highest of this life of the counter; above `raw` after a fall */
    uint64_t raw_peak_before; /* the highest of the life before, while that may still come back; else 0 */
    bool has_raw;
    bool is_known; /* false: this row lacks the column (an older kernel, a device that didn't answer) */
};

struct sample_row {
    const char *name;            /* the kernel's: "cpu0", "dm-0"; any bytes but NUL. Owned by the table */
    const char *label;           /* a person's, or NULL: "vg-root". Owned by the table */
    const char *type;            /* of a file system, or NULL: "ext4". Owned by the table */
    const char *group;           /* family within the collector, or NULL: "cpu", "memory" for power. Static text */
    struct sample_value *values; /* [columns_count] */
    bool is_first;               /* new in this tick, or restarted: its counters have no increase yet */
    bool has_fallen;             /* a counter of it was less in this tick than in the one before */
};

struct sample_table {
    struct sample_column *columns; /* [columns_count] */
    size_t columns_count;
    struct sample_row **rows; /* [rows_count], in the kernel's order; all of them seen in the last tick */
    size_t rows_count;
    uint64_t rows_refused; /* since the start: rows that found no place, or whose name is none */
    uint64_t lines_bad;    /* since the start: lines of the kernel's that made no sense. Parsers count them */
    /* the rest is table.c's */
    size_t rows_capacity, rows_max;
    size_t columns_capacity;        /* of `columns`, and of the values of each row */
    size_t columns_borrowed;        /* the first so many columns have names that are the caller's */
    size_t next;                    /* rows before it have been seen in this tick */
    struct sample_index_row *index; /* the rows by name */
};

/* Limits of what a file of the kernel can make us hold. */
#define SAMPLE_ROWS_MAX       8192
#define SAMPLE_COLUMNS_MAX    256
#define SAMPLE_NAME_MAX_BYTES 4096

/*
 * An empty table of at most `rows_max` (0: SAMPLE_ROWS_MAX) rows; `columns` are copied, their texts borrowed for the
 * table's life. -ENOMEM, and then the table is empty and may be given to sample_table_fini().
 */
MUST_CHECK int sample_table_init(struct sample_table *table, const struct sample_column *columns, size_t columns_count,
                                 size_t rows_max, struct error *err);
void sample_table_fini(struct sample_table *table);

/* Starts a tick: no row has been seen yet. */
void sample_table_begin(struct sample_table *table);

/*
 * The row of `name` (`length` bytes, copied), new if there was none; marks it as seen and its values as unknown. The
 * next call expects the row that followed last time, so a tick over rows that don't change compares each name once.
 * NULL when the name was seen in this tick already (the kernel listed it twice), when the table is full or the name is
 * empty, holds a NUL or is longer than SAMPLE_NAME_MAX_BYTES (counted in rows_refused), or out of memory.
 */
struct sample_row *sample_table_row(struct sample_table *table, const char *name, size_t length);

/* Ends a tick: rows that were not seen are freed, the others stand in the order in which they were seen. */
void sample_table_end(struct sample_table *table);

/*
 * After a tick: the name means another thing than in the tick before. What was read of its counters now is the first of
 * them, and has increased nothing. Totals stay. A name that has no row is fine.
 */
void sample_table_restart(struct sample_table *table, const char *name);

/* Index of a column that a kernel may or may not have, new if `name` (copied) is not there yet; -ENOSPC, -ENOMEM. */
MUST_CHECK int sample_table_column(struct sample_table *table, const char *name, size_t length, const char *unit,
                                   enum sample_kind kind, size_t *out_column);

/* Sets a row's label or type (copied), unless it is the same already. Without memory the row stays without. */
void sample_row_set_label(struct sample_row *row, const char *label, size_t length);
void sample_row_set_type(struct sample_row *row, const char *type, size_t length);

/*
 * What a collector read: a counter's raw value as the kernel gives it, of which the first in a tick counts, or a gauge;
 * one that isn't finite is unknown.
 */
void sample_row_count(struct sample_row *row, size_t column, uint64_t raw);
void sample_row_integer(struct sample_row *row, size_t column, int64_t integer);
void sample_row_real(struct sample_row *row, size_t column, double real);

#endif
