/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load: /proc/loadavg as one row "load": the mean number of tasks that run, want to run or wait for a disk, over 1, 5
 * and 15 minutes, how many run or want to run now, and how many there are.
 *
 * Whoever reads it runs: `running` is at least 1.
 */
#ifndef SAMPLE_LOAD_H
#define SAMPLE_LOAD_H

#include <stddef.h>

#include "sample/collector.h"

enum load_column { LOAD_1, LOAD_5, LOAD_15, LOAD_RUNNING, LOAD_THREADS, LOAD_COLUMNS };

extern const struct collector_ops load_collector;

/* A table with these columns and no rows yet, for sample_table_fini(). -ENOMEM. */
MUST_CHECK int load_table_init(struct sample_table *table, struct error *err);

/* Parses the text of /proc/loadavg, "0.20 0.18 0.12 1/80 11206": see proctable_parse. */
MUST_CHECK int load_parse(const char *text, size_t length, struct sample_table *table, struct error *err);

#endif
