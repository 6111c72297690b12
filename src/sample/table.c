/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows stand in `rows` in the order in which the kernel listed them last. During a tick rows[0 .. next) are those that
 * have been seen, in the new order, and rows[next .. rows_count) are those that are still missing; rows[next] is the
 * one that followed last time. A row that comes out of turn is found through the hash index and changes places with
 * rows[next], so that any change of order costs one look-up a row, once.
 *
 * A counter has lives: one begins when it grows from a value that it fell to. In each, `peak` is its highest value.
 *
 *     raw      900  1000     0     0   100  1100        a new life from 0, then back in the old one: 100 more
 *     increase       100     0     0   100   100
 *
 *     raw      900  1000   200   450   700  1100        past half of the old peak by its own growth: that is forgotten
 *     increase       100     0   250   250   400
 *
 *     raw      900  1000   999   999  1001              a little taken back: nothing until the peak is passed
 *     increase       100     0     0     1
 */
#include "sample/table.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row that finds no memory in the index is refused like one that finds no memory for itself. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum {
    TABLE_ROWS_FIRST = 8,    /* capacity of a table that gets its first row; doubled from there */
    TABLE_COLUMNS_MORE = 16, /* columns that a table makes room for when one appears */
    TABLE_LITTLE_PART = 8    /* a value is near a peak when no more than this part of it is missing */
};

struct sample_index_row {
    struct sample_row row; /* first: a row's address is its index row's */
    size_t position;       /* in the table's rows */
    size_t name_length;
    UT_hash_handle hh;
};

static struct sample_index_row *sample_index_of(struct sample_row *row)
{
    return (struct sample_index_row *)row;
}

/* Frees a text of ours that readers may not change. */
static void sample_text_free(const char *text)
{
    free((char *)(uintptr_t)text);
}

static void sample_row_free(struct sample_index_row *own)
{
    if (own == NULL)
        return;
    sample_text_free(own->row.name);
    sample_text_free(own->row.label);
    sample_text_free(own->row.type);
    free(own->row.values);
    free(own);
}

static struct sample_index_row *sample_row_new(const struct sample_table *table, const char *name, size_t length)
{
    struct sample_index_row *own = calloc(1, sizeof *own);
    if (own == NULL)
        return NULL;
    char *copy = malloc(length + 1);
    own->row.name = copy;
    own->row.values = calloc(table->columns_capacity + 1, sizeof *own->row.values); /* + 1: never of no bytes */
    if (copy == NULL || own->row.values == NULL) {
        sample_row_free(own);
        return NULL;
    }
    memcpy(copy, name, length);
    copy[length] = '\0';
    own->name_length = length;
    own->row.is_first = true;
    return own;
}

static bool sample_table_grow_rows(struct sample_table *table)
{
    if (table->rows_count < table->rows_capacity)
        return true;
    size_t capacity = table->rows_capacity == 0 ? TABLE_ROWS_FIRST : 2 * table->rows_capacity; /* bounded by rows_max */
    struct sample_row **rows = realloc(table->rows, capacity * sizeof(struct sample_row *));
    if (rows == NULL)
        return false;
    table->rows = rows;
    table->rows_capacity = capacity;
    return true;
}

static bool sample_name_is_good(const char *name, size_t length)
{
    return length > 0 && length <= SAMPLE_NAME_MAX_BYTES && memchr(name, '\0', length) == NULL;
}

/* Makes a row and puts it at the end of the table's rows. */
static struct sample_index_row *sample_table_add(struct sample_table *table, const char *name, size_t length)
{
    if (table->rows_count >= table->rows_max || !sample_name_is_good(name, length)) {
        table->rows_refused++;
        return NULL;
    }
    if (!sample_table_grow_rows(table))
        return NULL;
    struct sample_index_row *own = sample_row_new(table, name, length);
    if (own == NULL)
        return NULL;
    HASH_ADD_KEYPTR(hh, table->index, own->row.name, own->name_length, own);
    if (own->hh.tbl == NULL) {
        sample_row_free(own);
        return NULL;
    }
    own->position = table->rows_count;
    table->rows[table->rows_count++] = &own->row;
    return own;
}

static void sample_table_place(struct sample_table *table, struct sample_index_row *own, size_t position)
{
    own->position = position;
    table->rows[position] = &own->row;
}

static bool sample_row_is_named(struct sample_row *row, const char *name, size_t length)
{
    return sample_index_of(row)->name_length == length && memcmp(row->name, name, length) == 0;
}

int sample_table_init(struct sample_table *table, const struct sample_column *columns, size_t columns_count,
                      size_t rows_max, struct error *err)
{
    assert(columns_count <= SAMPLE_COLUMNS_MAX && rows_max <= SAMPLE_ROWS_MAX);
    *table = (struct sample_table){.rows_max = rows_max != 0 ? rows_max : SAMPLE_ROWS_MAX};
    if (columns_count == 0)
        return 0;
    table->columns = calloc(columns_count, sizeof *table->columns);
    if (table->columns == NULL)
        return error_set(err, -ENOMEM, "no memory for a table of %zu columns", columns_count);
    memcpy(table->columns, columns, columns_count * sizeof *columns);
    table->columns_count = columns_count;
    table->columns_capacity = columns_count;
    table->columns_borrowed = columns_count;
    return 0;
}

void sample_table_fini(struct sample_table *table)
{
    HASH_CLEAR(hh, table->index);
    for (size_t i = 0; i < table->rows_count; i++)
        sample_row_free(sample_index_of(table->rows[i]));
    free(table->rows);
    for (size_t i = table->columns_borrowed; i < table->columns_count; i++)
        sample_text_free(table->columns[i].name);
    free(table->columns);
    *table = (struct sample_table){0};
}

void sample_table_begin(struct sample_table *table)
{
    table->next = 0;
}

struct sample_row *sample_table_row(struct sample_table *table, const char *name, size_t length)
{
    size_t next = table->next;
    struct sample_index_row *own = NULL;
    if (next < table->rows_count && sample_row_is_named(table->rows[next], name, length))
        own = sample_index_of(table->rows[next]);
    else
        HASH_FIND(hh, table->index, name, length, own);

    bool is_new = own == NULL;
    if (is_new)
        own = sample_table_add(table, name, length);
    if (own == NULL || own->position < next)
        return NULL;
    if (own->position != next) {
        sample_table_place(table, sample_index_of(table->rows[next]), own->position);
        sample_table_place(table, own, next);
    }
    table->next = next + 1;

    struct sample_row *row = &own->row;
    row->is_first = is_new;
    row->has_fallen = false;
    for (size_t i = 0; i < table->columns_count; i++) {
        row->values[i].is_known = false;
        row->values[i].increase = 0;
    }
    return row;
}

void sample_table_restart(struct sample_table *table, const char *name)
{
    struct sample_index_row *own = NULL;
    HASH_FIND(hh, table->index, name, strlen(name), own);
    if (own == NULL)
        return;
    own->row.is_first = true;
    for (size_t i = 0; i < table->columns_count; i++) {
        struct sample_value *value = &own->row.values[i];
        if (table->columns[i].kind != SAMPLE_COUNTER)
            continue;
        value->total -= value->increase;
        value->increase = 0;
        value->raw_peak = value->raw;
        value->raw_peak_before = 0;
    }
}

void sample_table_end(struct sample_table *table)
{
    for (size_t i = table->next; i < table->rows_count; i++) {
        struct sample_index_row *own = sample_index_of(table->rows[i]);
        assert(table->index != NULL); /* every row is in it */
        HASH_DEL(table->index, own);
        sample_row_free(own);
    }
    table->rows_count = table->next;
}

/* Makes room for more columns in the table and in each of its rows. */
static int sample_table_grow_columns(struct sample_table *table)
{
    size_t capacity = table->columns_capacity + TABLE_COLUMNS_MORE;
    struct sample_column *columns = realloc(table->columns, capacity * sizeof *columns);
    if (columns == NULL)
        return -ENOMEM;
    table->columns = columns;
    for (size_t i = 0; i < table->rows_count; i++) {
        struct sample_row *row = table->rows[i];
        struct sample_value *values = realloc(row->values, capacity * sizeof *values);
        if (values == NULL)
            return -ENOMEM; /* rows before this one have more room than the table thinks, which harms nothing */
        memset(values + table->columns_count, 0, (capacity - table->columns_count) * sizeof *values);
        row->values = values;
    }
    table->columns_capacity = capacity;
    return 0;
}

int sample_table_column(struct sample_table *table, const char *name, size_t length, const char *unit,
                        enum sample_kind kind, size_t *out_column)
{
    for (size_t i = 0; i < table->columns_count; i++) {
        const char *known = table->columns[i].name;
        if (strlen(known) == length && memcmp(known, name, length) == 0) {
            *out_column = i;
            return 0;
        }
    }
    if (table->columns_count >= SAMPLE_COLUMNS_MAX || !sample_name_is_good(name, length))
        return -ENOSPC;
    if (table->columns_count >= table->columns_capacity && sample_table_grow_columns(table) < 0)
        return -ENOMEM;
    char *copy = strndup(name, length);
    if (copy == NULL)
        return -ENOMEM;
    table->columns[table->columns_count] = (struct sample_column){.name = copy, .unit = unit, .help = "", .kind = kind};
    *out_column = table->columns_count++;
    return 0;
}

static void sample_text_replace(const char **text, const char *by, size_t length)
{
    length = strnlen(by, length);
    if (*text != NULL && strncmp(*text, by, length) == 0 && (*text)[length] == '\0')
        return;
    sample_text_free(*text);
    *text = length > 0 ? strndup(by, length) : NULL;
}

void sample_row_set_label(struct sample_row *row, const char *label, size_t length)
{
    sample_text_replace(&row->label, label, length);
}

void sample_row_set_type(struct sample_row *row, const char *type, size_t length)
{
    sample_text_replace(&row->type, type, length);
}

/* Is `raw` at least `peak`, or less by so little that it isn't another life? */
static bool sample_is_near(uint64_t raw, uint64_t peak)
{
    return raw >= peak - peak / TABLE_LITTLE_PART;
}

/* How much a counter has grown by going to `raw`; see the top of this file. */
static uint64_t sample_value_step(struct sample_value *value, uint64_t raw)
{
    uint64_t last = value->raw;
    value->raw = raw;
    if (value->raw_peak_before != 0 && sample_is_near(raw, value->raw_peak_before)) {
        value->raw_peak = value->raw_peak_before; /* back in the life before */
        value->raw_peak_before = 0;
    }

    uint64_t increase;
    if (raw >= value->raw_peak) {
        increase = raw - value->raw_peak;
    } else if (sample_is_near(raw, value->raw_peak) || raw <= last) {
        return 0;
    } else {
        increase = raw - last;
        if (value->raw_peak_before < value->raw_peak)
            value->raw_peak_before = value->raw_peak;
    }
    value->raw_peak = raw;
    if (raw > value->raw_peak_before / 2)
        value->raw_peak_before = 0;
    return increase;
}

void sample_row_count(struct sample_row *row, size_t column, uint64_t raw)
{
    struct sample_value *value = &row->values[column];
    if (value->is_known)
        return; /* the kernel listed it twice in this tick: as with rows, the first one counts */
    if (!value->has_raw)
        value->raw = value->raw_peak = raw;
    if (raw < value->raw)
        row->has_fallen = true;
    value->increase = sample_value_step(value, raw);
    if (__builtin_add_overflow(value->total, value->increase, &value->total))
        value->total = UINT64_MAX; /* numbers without sense may sum up to more; a total doesn't fall for it */
    value->has_raw = true;
    value->is_known = true;
}

void sample_row_integer(struct sample_row *row, size_t column, int64_t integer)
{
    row->values[column].integer = integer;
    row->values[column].is_known = true;
}

void sample_row_real(struct sample_row *row, size_t column, double real)
{
    row->values[column].real = real;
    row->values[column].is_known = isfinite(real);
}
