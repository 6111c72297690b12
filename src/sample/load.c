/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/load.h"

#include <errno.h>

#include "sample/proctable.h"
#include "util/cursor.h"

static const struct sample_column load_columns[LOAD_COLUMNS] = {
    [LOAD_1] = {"load1", "", "tasks that run or wait for a CPU or a disk, mean of 1 minute", SAMPLE_REAL},
    [LOAD_5] = {"load5", "", "the same of 5 minutes", SAMPLE_REAL},
    [LOAD_15] = {"load15", "", "the same of 15 minutes", SAMPLE_REAL},
    [LOAD_RUNNING] = {"running", "", "tasks that run or wait for a CPU now", SAMPLE_INTEGER},
    [LOAD_THREADS] = {"threads", "", "tasks that exist", SAMPLE_INTEGER},
};

int load_table_init(struct sample_table *table, struct error *err)
{
    return sample_table_init(table, load_columns, LOAD_COLUMNS, 1, err);
}

int load_parse(const char *text, size_t length, struct sample_table *table, struct error *err)
{
    struct cursor all = cursor_of(text, length);
    double means[3];
    int64_t running, threads;
    for (size_t i = 0; i < ARRAY_LENGTH(means); i++) {
        if (!cursor_double(&all, &means[i]))
            return error_set(err, -EBADMSG, "it doesn't start with three numbers");
    }
    if (!cursor_i64(&all, &running) || !cursor_accept(&all, '/') || !cursor_i64(&all, &threads))
        return error_set(err, -EBADMSG, "no '1/80' after three numbers");

    sample_table_begin(table);
    struct sample_row *row = sample_table_row(table, "load", 4);
    for (size_t i = 0; row != NULL && i < ARRAY_LENGTH(means); i++)
        sample_row_real(row, LOAD_1 + i, means[i]);
    if (row != NULL) {
        sample_row_integer(row, LOAD_RUNNING, running);
        sample_row_integer(row, LOAD_THREADS, threads);
    }
    sample_table_end(table);
    return row != NULL ? 0 : error_set(err, -ENOMEM, "no memory for a row");
}

static int load_open(const struct sample_config *config, struct collector **out_collector, struct error *err)
{
    return proctable_open(config, "loadavg", load_columns, LOAD_COLUMNS, out_collector, err);
}

static int load_read(struct collector *collector, int64_t now_boot_ns, struct error *err)
{
    (void)now_boot_ns;
    return proctable_read(collector, load_parse, err);
}

const struct collector_ops load_collector = {
    .name = "load",
    .help = "load averages and the run queue (/proc/loadavg)",
    .open = load_open,
    .read = load_read,
    .table = proctable_table,
    .close = proctable_close,
};
