/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * omnistat: the rows of a CSV file of Omnistat (metrics of AMD GPUs) as events of the trace.
 *
 * The file has a line of names, then a line for each instant and device: a time since 1970, perhaps "hostname" and
 * "device_id", and metrics, one a column:
 *
 *     timestamp,hostname,device_id,rocm_gpu_utilization,rocm_memory_usage
 *     1710000000.5,node001,0,85.5,1024
 *
 * Each metric of a row becomes one event, as DFTracer makes it:
 *
 *     {"name":"rocm_gpu_utilization","cat":"omnistat","type":12,"ts":1710000000500000,"ph":2,…,"args":{"hhash":"…",
 *      "source":"omnistat","metric":"rocm_gpu_utilization","value":85.5,"hostname":"node001","device_id":"0",
 *      "original_timestamp":"1710000000.5"}}
 *
 * Pure but for memory: takes text in pieces as it comes, whole lines of it. One thread.
 */
#ifndef SERVICE_OMNISTAT_H
#define SERVICE_OMNISTAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pfw/event.h"
#include "service/options.h"
#include "util/buf.h"
#include "util/cursor.h"
#include "util/error.h"

/* What a line may be: more is no table of metrics. */
#define OMNISTAT_LINE_MAX_BYTES 65536
#define OMNISTAT_COLUMNS_MAX    1024

struct omnistat;

struct omnistat_request {
    const struct pfw_source *source; /* all of these are borrowed for the reader's life */
    const char *time_column;
    const char *counters; /* names of metrics, separated by commas */
    bool has_all_counters;
    enum options_stamp stamp;
    enum options_time time;
};

/* Returns owned, freed by omnistat_free(). -ENOMEM. */
MUST_CHECK int omnistat_new(const struct omnistat_request *request, struct omnistat **out_omnistat, struct error *err);
void omnistat_free(struct omnistat *omnistat);

/* Forgets the header: the file begins anew. */
void omnistat_restart(struct omnistat *omnistat);

/*
 * Takes one line, without its newline: the first is the header. Appends the events of a row to `out`, and returns how
 * many. A row without a time that makes sense is passed over and counted. -EINVAL when the header lacks what was asked
 * for: the words say what.
 */
MUST_CHECK int omnistat_line(struct omnistat *omnistat, struct cursor line, struct buf *out, struct error *err);

/* Rows passed over since omnistat_new(). */
uint64_t omnistat_bad_rows(const struct omnistat *omnistat);

#endif
