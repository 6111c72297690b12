/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lookup: what tests of collectors ask of tables and trees, failing the test when it isn't there.
 */
#ifndef TESTS_UNIT_SAMPLE_LOOKUP_H
#define TESTS_UNIT_SAMPLE_LOOKUP_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sample/table.h"
#include "util/buf.h"
#include "util/file.h"

/* The row of that name, or NULL. */
static inline struct sample_row *lookup_row(const struct sample_table *table, const char *name)
{
    for (size_t i = 0; i < table->rows_count; i++) {
        if (strcmp(table->rows[i]->name, name) == 0)
            return table->rows[i];
    }
    return NULL;
}

/* A value by the names of its row and column. */
static inline struct sample_value lookup_value(const struct sample_table *table, const char *row_name,
                                               const char *column_name)
{
    const struct sample_row *row = lookup_row(table, row_name);
    if (row == NULL)
        fail_msg("no row '%s'", row_name);
    for (size_t i = 0; row != NULL && i < table->columns_count; i++) {
        if (strcmp(table->columns[i].name, column_name) == 0)
            return row->values[i];
    }
    fail_msg("no column '%s'", column_name);
    return (struct sample_value){0};
}

/* The text of a file; freed with buf_fini(). */
static inline struct buf lookup_text(const char *path)
{
    struct buf text;
    struct error err = {0};
    buf_init(&text, (size_t)16 * 1024 * 1024);
    if (file_read(AT_FDCWD, path, &text, &err) < 0)
        fail_msg("%s", err.text);
    return text;
}

#endif
