/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/columns.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { COLUMNS_GAP = 2 };

static size_t columns_cell_begin(const struct columns *columns, size_t column)
{
    return column == 0 ? 0 : columns->ends[column - 1];
}

/* How many columns a terminal uses for it: characters, as far as one can tell without knowing its fonts. */
static size_t columns_cell_width(const struct columns *columns, size_t column)
{
    size_t width = 0;
    for (size_t i = columns_cell_begin(columns, column); i < columns->ends[column]; i++)
        width += ((unsigned char)columns->line.data[i] & 0xc0) != 0x80;
    return width;
}

static void columns_pad(struct buf *out, size_t blanks)
{
    for (size_t i = 0; i < blanks; i++)
        buf_char(out, ' ');
}

void columns_init(struct columns *columns, const char *sides)
{
    *columns = (struct columns){.sides = sides, .count = strlen(sides)};
    assert(columns->count <= COLUMNS_MAX);
    buf_init(&columns->line, SIZE_MAX);
}

void columns_fini(struct columns *columns)
{
    buf_fini(&columns->line);
}

struct buf *columns_begin(struct columns *columns)
{
    buf_reset(&columns->line);
    columns->cells = 0;
    return &columns->line;
}

void columns_end_cell(struct columns *columns)
{
    assert(columns->cells < columns->count);
    columns->ends[columns->cells++] = columns->line.length;
}

void columns_heads(struct columns *columns, const char *const *heads)
{
    struct buf *line = columns_begin(columns);
    for (size_t i = 0; i < columns->count; i++) {
        buf_text(line, heads[i]);
        columns_end_cell(columns);
    }
}

void columns_measure(struct columns *columns)
{
    if (columns->line.status != 0)
        return;
    assert(columns->cells == columns->count);
    for (size_t i = 0; i < columns->count; i++) {
        size_t width = columns_cell_width(columns, i);
        columns->widths[i] = width > columns->widths[i] ? width : columns->widths[i];
    }
}

int columns_put(const struct columns *columns, struct buf *out, struct error *err)
{
    int rc = buf_status(&columns->line, err);
    if (rc < 0)
        return rc;
    assert(columns->cells == columns->count);
    for (size_t i = 0; i < columns->count; i++) {
        size_t begin = columns_cell_begin(columns, i);
        size_t width = columns_cell_width(columns, i);
        size_t blanks = width < columns->widths[i] ? columns->widths[i] - width : 0;
        bool is_text = columns->sides[i] == 'l';
        bool is_last = i + 1 == columns->count;
        columns_pad(out, (i > 0 ? COLUMNS_GAP : 0) + (is_text ? 0 : blanks));
        buf_bytes(out, columns->line.data + begin, columns->ends[i] - begin);
        columns_pad(out, is_text && !is_last ? blanks : 0);
    }
    buf_char(out, '\n');
    return 0;
}
