/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * records: what the lines of a trace are called and hold: tables of samples become DFTracer events.
 *
 * One row a collector in a table of this file says how its events are named; the keys are the columns' names. A row of
 * a sample that was seen for the first time is left out while some of its columns are differences. Pure; any thread.
 */
#ifndef SERVICE_RECORDS_H
#define SERVICE_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "pfw/event.h"
#include "sample/table.h"
#include "util/buf.h"

struct records {
    const struct pfw_source *source; /* borrowed */
    bool has_memory_percent;         /* memory as percentages of MemAvailable */
};

/*
 * Appends the events of one collector's `table` with the stamp `ts`; returns how many. A collector without a row of its
 * own is written as the general rule has it: "<collector>-<row>", category "sys".
 */
uint64_t records_append(const struct records *records, const char *collector, const struct sample_table *table,
                        int64_t ts, struct buf *out);

#endif
