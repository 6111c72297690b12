/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proctable: the collectors that are one file of /proc and one table, which is most of them.
 *
 * This is their `struct collector`: such a collector's own file adds columns, a pure parser, and its row of
 * collector_ops, whose table and close are those of this module. One thread at a time.
 */
#ifndef SAMPLE_PROCTABLE_H
#define SAMPLE_PROCTABLE_H

#include "sample/collector.h"
#include "sample/procfile.h"

struct collector {
    struct procfile file;
    struct sample_table table;
    void *own; /* what a collector keeps beside these; it frees that itself, before proctable_close() */
};

/*
 * Turns the text of a file into one tick of `table`. Pure. A line that makes no sense is counted in the table's
 * lines_bad and spoils itself alone. Fails, and then leaves the table untouched, when nothing in the text makes sense.
 */
typedef int proctable_parse(const char *text, size_t length, struct sample_table *table, struct error *err);

/*
 * Opens `<proc_path>/<name>` beside an empty table. Returns owned through `*out_collector`, freed by proctable_close().
 * Fails as procfile_open() does, but with -ENODEV when there is no such file.
 */
MUST_CHECK int proctable_open(const struct sample_config *config, const char *name, const struct sample_column *columns,
                              size_t columns_count, struct collector **out_collector, struct error *err);

/* Reads the file and parses it. */
MUST_CHECK int proctable_read(struct collector *collector, proctable_parse *parse, struct error *err);

/* For collector_ops: the table, borrowed until the next read, and the end; NULL is accepted. */
const struct sample_table *proctable_table(const struct collector *collector);
void proctable_close(struct collector *collector);
DEFINE_CLEANUP(collector, proctable_close);

#endif
