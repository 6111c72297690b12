/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perfetto: DFTracer events as Chrome's JSON trace format, for ui.perfetto.dev and chrome://tracing.
 *
 *   [
 *   {"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"node1"}},
 *   {"ph":"C","name":"cpu","cat":"sys","pid":1,"tid":0,"ts":1796098782398492,"args":{"user_pct":4.6,"idle_pct":91.5}},
 *   {"ph":"X","name":"read","cat":"POSIX","pid":2,"tid":17,"ts":1796098782398493,"dur":12,"args":{…}}
 *   ]
 *
 * One array, closed, of one event a line. Each host is a process whose counters are its tracks; each process that
 * wrote complete events is one of its own ("node1 pid 1234"); what DFTracer says about the trace stands with the host.
 * Counters keep their numbers alone, each key once; metadata with a time stamp becomes an instant, other metadata only
 * gives names. Numbers go over as they were written; time stamps become microseconds. Events of several traces may
 * follow one another: hosts are told apart by their hashes. Pure. One thread.
 */
#ifndef PFW_PERFETTO_H
#define PFW_PERFETTO_H

#include <stdint.h>

#include "pfw/args.h"
#include "pfw/hosts.h"
#include "pfw/line.h"
#include "pfw/unit.h"
#include "util/buf.h"

struct pfw_perfetto {
    uint64_t events;   /* written */
    uint64_t counters; /* of those */
    uint64_t values;   /* numbers in counters */
    uint64_t left_out; /* events without a place in the format: of an unknown phase, or without a time stamp */

    /* the rest is perfetto.c's */
    struct pfw_hosts hosts;
    struct pfw_args args;
    struct pfw_names processes; /* host and pid; the number plus 1 is the pid in the output */
    bool *is_named;
    uint32_t capacity;
};

/* Empty; allocates nothing yet. */
void pfw_perfetto_init(struct pfw_perfetto *perfetto);
void pfw_perfetto_fini(struct pfw_perfetto *perfetto);

static inline void pfw_perfetto_cleanup(struct pfw_perfetto *perfetto)
{
    pfw_perfetto_fini(perfetto);
}

/* Appends the array's begin. */
void pfw_perfetto_begin(struct buf *out);

/* Appends the next event, whose time stamps are in `unit`. `is_wanted` false: only the names in it are kept. */
MUST_CHECK int pfw_perfetto_add(struct pfw_perfetto *perfetto, const struct pfw_line *line, enum pfw_unit unit,
                                bool is_wanted, struct buf *out, struct error *err);

/* Appends names that are still missing, and the array's end. */
MUST_CHECK int pfw_perfetto_end(struct pfw_perfetto *perfetto, struct buf *out, struct error *err);

#endif
