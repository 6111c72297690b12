/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * example: how many files are open on the node, from /proc/sys/fs/file-nr, as one row "files".
 *
 * The smallest useful collector, to copy from: docs/howto/add-a-collector.md walks through it. It is built and tested
 * like any other and runs only when asked for by name.
 */
#ifndef SAMPLE_EXAMPLE_H
#define SAMPLE_EXAMPLE_H

#include <stddef.h>

#include "sample/collector.h"

enum example_column { EXAMPLE_OPEN, EXAMPLE_MAX, EXAMPLE_COLUMNS };

extern const struct collector_ops example_collector;

/* A table with these columns and no rows yet, for sample_table_fini(). -ENOMEM. */
MUST_CHECK int example_table_init(struct sample_table *table, struct error *err);

/* Parses the text of file-nr, "1216\t0\t9223372036854775807": see proctable_parse. */
MUST_CHECK int example_parse(const char *text, size_t length, struct sample_table *table, struct error *err);

#endif
