/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory: /proc/meminfo as one row "memory" with a column for each of its lines, named by the kernel's own key
 * ("MemTotal", "Active(anon)"). Sizes are in kB as the kernel gives them; HugePages_* are counts of pages.
 *
 * Columns come and go with the kernel: a new line makes a new column, a line that is gone makes its column unknown.
 */
#ifndef SAMPLE_MEMORY_H
#define SAMPLE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "sample/collector.h"

extern const struct collector_ops memory_collector;

/* A table without columns: they come with the first text. -ENOMEM. */
MUST_CHECK int memory_table_init(struct sample_table *table, struct error *err);

/* Parses the text of /proc/meminfo: see proctable_parse. */
MUST_CHECK int memory_parse(const char *text, size_t length, struct sample_table *table, struct error *err);

/*
 * How much of the memory is in use, in percent: (MemTotal - MemAvailable) / MemTotal. Linux before 3.14 doesn't say
 * what is available: there it is MemFree + Buffers + Cached, which counts tmpfs and shared memory as available although
 * they are not. False when the row lacks what is needed.
 */
MUST_CHECK bool memory_used_percent(const struct sample_table *table, double *out_percent);

#endif
