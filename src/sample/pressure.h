/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pressure: how long tasks stood still for want of a resource, from /proc/pressure (PSI, Linux 4.20; the kernel's
 * Documentation/accounting/psi.rst): a row for each of "cpu", "memory", "io" and "irq" that the kernel has.
 *
 * "some" is time in which at least one task stood still, "full" time in which all of them did: averages in percent over
 * 10, 60 and 300 s as the kernel computes them, and counters in microseconds. `cpu` has no "full" before 5.13, and
 * `irq` (6.1) no "some": those columns are unknown.
 */
#ifndef SAMPLE_PRESSURE_H
#define SAMPLE_PRESSURE_H

#include <stddef.h>

#include "sample/collector.h"

enum pressure_column {
    PRESSURE_SOME_AVG10,
    PRESSURE_SOME_AVG60,
    PRESSURE_SOME_AVG300,
    PRESSURE_SOME_TOTAL_US,
    PRESSURE_FULL_AVG10,
    PRESSURE_FULL_AVG60,
    PRESSURE_FULL_AVG300,
    PRESSURE_FULL_TOTAL_US,
    PRESSURE_COLUMNS,
};

extern const struct collector_ops pressure_collector;

/* A table with these columns and no rows yet, for sample_table_fini(). -ENOMEM. */
MUST_CHECK int pressure_table_init(struct sample_table *table, struct error *err);

/*
 * Parses the text of one file into the row `name` of a tick that has begun. Pure. A line that makes no sense is counted
 * and leaves its columns unknown.
 */
void pressure_parse(const char *text, size_t length, const char *name, struct sample_table *table);

#endif
