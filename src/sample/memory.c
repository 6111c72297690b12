/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/memory.h"

#include <errno.h>
#include <string.h>

#include "sample/proctable.h"
#include "util/cursor.h"

static const char memory_row_name[] = "memory";

int memory_table_init(struct sample_table *table, struct error *err)
{
    return sample_table_init(table, NULL, 0, 1, err);
}

/* Takes "MemTotal:  16303220 kB" apart; the unit is "kB" or "". */
static bool memory_take_line(struct cursor line, struct cursor *out_key, const char **out_unit, int64_t *out_number)
{
    const char *colon = memchr(line.at, ':', cursor_left(&line));
    if (colon == NULL || colon == line.at)
        return false;
    *out_key = (struct cursor){.at = line.at, .end = colon};
    line.at = colon + 1;
    if (!cursor_i64(&line, out_number))
        return false;
    cursor_skip_blanks(&line);
    *out_unit = cursor_is_empty(&line) ? "" : "kB";
    return cursor_is_empty(&line) || cursor_equals(&line, "kB");
}

/*
 * One line; `*expected` is the column of the line before it plus one: as long as the kernel doesn't change its lines,
 * that is where this one belongs.
 */
static bool memory_parse_line(struct cursor line, struct sample_table *table, struct sample_row *row, size_t *expected)
{
    struct cursor key;
    const char *unit;
    int64_t number;
    if (!memory_take_line(line, &key, &unit, &number))
        return false;
    size_t column = *expected;
    if (column >= table->columns_count || !cursor_equals(&key, table->columns[column].name)) {
        int rc = sample_table_column(table, key.at, cursor_left(&key), unit, SAMPLE_INTEGER, &column);
        if (rc < 0)
            return false;
    }
    sample_row_integer(row, column, number);
    *expected = column + 1;
    return true;
}

int memory_parse(const char *text, size_t length, struct sample_table *table, struct error *err)
{
    struct cursor all = cursor_of(text, length);
    struct cursor line, key;
    const char *unit;
    int64_t number;
    bool has_any = false;
    for (struct cursor ahead = all; !has_any && cursor_line(&ahead, &line);)
        has_any = memory_take_line(line, &key, &unit, &number);
    if (!has_any)
        return error_set(err, -EBADMSG, "no line like 'MemTotal: 1024 kB'");

    sample_table_begin(table);
    struct sample_row *row = sample_table_row(table, memory_row_name, sizeof memory_row_name - 1);
    size_t expected = 0;
    while (row != NULL && cursor_line(&all, &line)) {
        if (!memory_parse_line(line, table, row, &expected))
            table->lines_bad++;
    }
    sample_table_end(table);
    return row != NULL ? 0 : error_set(err, -ENOMEM, "no memory for the row '%s'", memory_row_name);
}

/* The value of a key in kB, as a double since numbers without sense may add up to anything; false when it is unknown.
 */
static bool memory_find(const struct sample_table *table, const char *name, double *out_kb)
{
    for (size_t i = 0; i < table->columns_count; i++) {
        const struct sample_value *value = &table->rows[0]->values[i];
        if (value->is_known && strcmp(table->columns[i].name, name) == 0) {
            *out_kb = (double)value->integer;
            return true;
        }
    }
    return false;
}

bool memory_used_percent(const struct sample_table *table, double *out_percent)
{
    double total, available;
    if (table->rows_count == 0 || !memory_find(table, "MemTotal", &total) || total <= 0)
        return false;
    if (!memory_find(table, "MemAvailable", &available)) {
        double unused, buffers, cached;
        if (!memory_find(table, "MemFree", &unused) || !memory_find(table, "Buffers", &buffers) ||
            !memory_find(table, "Cached", &cached))
            return false;
        available = unused + buffers + cached;
    }
    double used = 100.0 * (1.0 - available / total);
    *out_percent = used < 0 ? 0 : used > 100 ? 100 : used;
    return true;
}

static int memory_open(const struct sample_config *config, struct collector **out_collector, struct error *err)
{
    return proctable_open(config, "meminfo", NULL, 0, out_collector, err);
}

static int memory_read(struct collector *collector, int64_t now_boot_ns, struct error *err)
{
    (void)now_boot_ns;
    return proctable_read(collector, memory_parse, err);
}

const struct collector_ops memory_collector = {
    .name = "memory",
    .help = "how the memory is used (/proc/meminfo)",
    .open = memory_open,
    .read = memory_read,
    .table = proctable_table,
    .close = proctable_close,
};
