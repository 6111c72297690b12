/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/example.h"

#include <errno.h>

#include "sample/proctable.h"
#include "util/cursor.h"

static const struct sample_column example_columns[EXAMPLE_COLUMNS] = {
    [EXAMPLE_OPEN] = {"open", "", "files that are open", SAMPLE_INTEGER},
    [EXAMPLE_MAX] = {"max", "", "files that may be open, if limited", SAMPLE_INTEGER},
};

int example_table_init(struct sample_table *table, struct error *err)
{
    return sample_table_init(table, example_columns, EXAMPLE_COLUMNS, 1, err);
}

/* The kernel's word for "no limit": the largest number there is (since Linux 5.1). */
static const int64_t example_no_limit = INT64_MAX;

int example_parse(const char *text, size_t length, struct sample_table *table, struct error *err)
{
    struct cursor all = cursor_of(text, length);
    int64_t allocated, unused, max; /* the second has been 0 since Linux 2.6 and is read for its place */
    if (!cursor_i64(&all, &allocated) || !cursor_i64(&all, &unused) || !cursor_i64(&all, &max))
        return error_set(err, -EBADMSG, "it doesn't start with three numbers");

    /* Only now the tick begins: a text that makes no sense leaves the table as it was. */
    sample_table_begin(table);
    struct sample_row *row = sample_table_row(table, "files", strlen("files"));
    if (row != NULL) {
        sample_row_integer(row, EXAMPLE_OPEN, allocated - unused);
        if (max != example_no_limit)
            sample_row_integer(row, EXAMPLE_MAX, max); /* else it is unknown, which readers can tell from 0 */
    }
    sample_table_end(table);
    return row != NULL ? 0 : error_set(err, -ENOMEM, "no memory for a row");
}

static int example_open(const struct sample_config *config, struct collector **out_collector, struct error *err)
{
    return proctable_open(config, "sys/fs/file-nr", example_columns, EXAMPLE_COLUMNS, out_collector, err);
}

static int example_read(struct collector *collector, int64_t now_boot_ns, struct error *err)
{
    (void)now_boot_ns; /* for those who divide by the time since the last tick */
    return proctable_read(collector, example_parse, err);
}

const struct collector_ops example_collector = {
    .name = "example",
    .help = "open files of the node (/proc/sys/fs/file-nr); the worked example of the documentation",
    .is_optional = true,
    .open = example_open,
    .read = example_read,
    .table = proctable_table,
    .close = proctable_close,
};
