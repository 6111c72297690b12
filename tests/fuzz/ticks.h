/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ticks: an input as the texts that a collector's parser gets in consecutive ticks, separated by bytes 0xfe (which no
 * UTF-8 has), and what must hold of its table after each of them, whatever the text. Ends the process when it doesn't.
 */
#ifndef FUZZ_TICKS_H
#define FUZZ_TICKS_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "sample/table.h"

enum { TICKS_SEPARATOR = 0xfe };

static inline void ticks_check_value(const struct sample_table *table, const struct sample_row *row, size_t column)
{
    const struct sample_value *value = &row->values[column];
    if (table->columns[column].kind == SAMPLE_COUNTER) {
        assert(value->increase <= value->total);
        assert(!row->is_first || value->increase == 0);
        assert(value->is_known || value->increase == 0);
    }
    if (table->columns[column].kind == SAMPLE_REAL && value->is_known)
        assert(value->real - value->real == 0); /* neither infinite nor not a number */
}

static inline void ticks_check(const struct sample_table *table)
{
    assert(table->rows_count <= SAMPLE_ROWS_MAX && table->columns_count <= SAMPLE_COLUMNS_MAX);
    for (size_t i = 0; i < table->rows_count; i++) {
        const struct sample_row *row = table->rows[i];
        assert(row->name[0] != '\0' && strlen(row->name) <= SAMPLE_NAME_MAX_BYTES);
        for (size_t other = i < 64 ? 0 : i - 64; other < i; other++) /* bounded: a thousand rows take their time */
            assert(strcmp(row->name, table->rows[other]->name) != 0);
        for (size_t column = 0; column < table->columns_count; column++)
            ticks_check_value(table, row, column);
    }
}

/* One text of an input: in memory of its own size, so that a sanitizer sees each byte read beyond it. */
typedef void ticks_parse(const char *text, size_t length, void *context);

static inline void ticks_run(const uint8_t *data, size_t size, ticks_parse *parse, void *context)
{
    for (size_t start = 0; start <= size;) {
        const uint8_t *separator = size > start ? memchr(data + start, TICKS_SEPARATOR, size - start) : NULL;
        size_t length = separator != NULL ? (size_t)(separator - data) - start : size - start;
        char *text = length > 0 ? malloc(length) : NULL; /* an empty text may be NULL for a parser */
        if (text == NULL && length > 0)
            return;
        if (length > 0)
            memcpy(text, data + start, length);
        parse(text, length, context);
        free(text);
        start += length + 1;
    }
}

/* For the parsers that are a proctable_parse. */
#define TICKS_TARGET(module)                                                                                           \
    static void module##_tick(const char *text, size_t length, void *context)                                          \
    {                                                                                                                  \
        struct sample_table *table = context;                                                                          \
        size_t rows_count = table->rows_count;                                                                         \
        if (module##_parse(text, length, table, NULL) < 0)                                                             \
            assert(table->rows_count == rows_count);                                                                   \
        ticks_check(table);                                                                                            \
    }                                                                                                                  \
                                                                                                                       \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)                                                       \
    {                                                                                                                  \
        struct sample_table table;                                                                                     \
        if (module##_table_init(&table, NULL) == 0)                                                                    \
            ticks_run(data, size, module##_tick, &table);                                                              \
        sample_table_fini(&table);                                                                                     \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static_assert(1, "the macro takes a semicolon")

#endif
