/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpu: where the time of the CPUs went, from /proc/stat: a row "cpu" for all of them together, and "cpu0", "cpu1", …
 * for those that are online, in the kernel's order.
 *
 * Counters are the kernel's, in ticks of 1/sysconf(_SC_CLK_TCK) s (proc(5)). The time that a guest ran is in `user` as
 * well as in `guest` (and in `nice` and `guest_nice`): whoever adds the columns up counts it twice, which
 * cpu_percentages() doesn't. Columns that an older kernel lacks are unknown.
 */
#ifndef SAMPLE_CPU_H
#define SAMPLE_CPU_H

#include <stdbool.h>
#include <stddef.h>

#include "sample/collector.h"

/* The table's columns, in the order of the kernel's numbers. */
enum cpu_column {
    CPU_USER,
    CPU_NICE,
    CPU_SYSTEM,
    CPU_IDLE,
    CPU_IOWAIT,
    CPU_IRQ,
    CPU_SOFTIRQ,
    CPU_STEAL,
    CPU_GUEST,
    CPU_GUEST_NICE,
    CPU_COLUMNS,
};

extern const struct collector_ops cpu_collector;

/* A table with these columns and no rows yet, for sample_table_fini(). -ENOMEM. */
MUST_CHECK int cpu_table_init(struct sample_table *table, struct error *err);

/* Parses the text of /proc/stat: see proctable_parse. */
MUST_CHECK int cpu_parse(const char *text, size_t length, struct sample_table *table, struct error *err);

/*
 * What part of the time since the previous tick a row's CPU spent on what, in percent, by enum cpu_column; the ten add
 * up to 100. Guest time is in CPU_GUEST and CPU_GUEST_NICE alone. False, and `out_percent` untouched, when there is no
 * such time: in a row's first tick, in one in which no time passed, in one whose line made no sense.
 */
MUST_CHECK bool cpu_percentages(const struct sample_row *row, double out_percent[CPU_COLUMNS]);

#endif
