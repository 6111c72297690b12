/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * summary: what a trace holds, and whether it hangs together, from its lines one after another.
 *
 * Counts events, hosts, series and runs (a service writes a start and an end; a file may hold several runs), finds the
 * span of time, the interval and the gaps, and looks for what a reader would stumble over. What it finds is counted,
 * and told to whoever wants to know. Memory grows with hosts and series, not with events. Pure. One thread.
 */
#ifndef PFW_SUMMARY_H
#define PFW_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "pfw/cadence.h"
#include "pfw/hosts.h"
#include "pfw/line.h"
#include "pfw/series.h"
#include "pfw/unit.h"

enum pfw_finding {
    PFW_FINDING_KEY,           /* a key that every event of its phase has is missing or of another type */
    PFW_FINDING_PHASE,         /* a phase that is none of DFTracer's */
    PFW_FINDING_BACKWARDS,     /* the time stamps of a series fall */
    PFW_FINDING_NO_NAME,       /* no "HH" event names the host */
    PFW_FINDING_GAP,           /* no sample for more than 1.75 intervals */
    PFW_FINDING_DROPPED,       /* the writer dropped events */
    PFW_FINDING_COUNT,         /* an end event counts other than there are events of its run */
    PFW_FINDING_FOREIGN_COUNT, /* the same in an end event that is not our service's: others may count otherwise */
    PFW_FINDING_NO_START,      /* a host without a start event: not a trace of the service, or its begin is missing */
    PFW_FINDING_NO_END,        /* a run without an end event: its writer was killed, or still runs */
    PFW_FINDING_CLOCK,         /* the wall clock was set */
    PFW_FINDINGS,              /* how many kinds there are */
};

/* `text` says what, with names and times; it is borrowed until return. */
typedef void pfw_summary_on_finding(void *context, enum pfw_finding finding, const char *text);

struct pfw_summary_host {
    uint64_t events;
    uint64_t dropped;     /* as its writer told */
    uint64_t clock_steps; /* as its writer told */
    uint32_t series;
    uint32_t runs;            /* start events */
    uint32_t runs_ended;      /* of those */
    int64_t interval_told_ms; /* by the last start or end event; 0: by none */
    int64_t first_ns;         /* of its events, when `has_time` */
    int64_t last_ns;
    bool has_time;
    struct pfw_cadence cadence;
};

struct pfw_summary {
    uint64_t events;
    uint64_t phases[PFW_METADATA + 1]; /* events of each phase; [0]: of none of ours */
    uint64_t findings[PFW_FINDINGS];
    struct pfw_unit_of_trace unit;
    struct pfw_hosts hosts;
    struct pfw_series series;
    struct pfw_summary_host *host_list; /* by number of the host */

    /* the rest is summary.c's */
    struct pfw_summary_series *series_list;
    uint32_t host_capacity;
    uint32_t series_capacity;
    struct pfw_names runs; /* host and pid */
    struct pfw_summary_run *run_list;
    uint32_t run_capacity;
    pfw_summary_on_finding *on_finding;
    void *context;
};

/* `on_finding` may be NULL. */
void pfw_summary_init(struct pfw_summary *summary, pfw_summary_on_finding *on_finding, void *context);
void pfw_summary_fini(struct pfw_summary *summary);

static inline void pfw_summary_cleanup(struct pfw_summary *summary)
{
    pfw_summary_fini(summary);
}

/* The next event. -ENOSPC past the limits of hosts.h and series.h, -ENOMEM. */
MUST_CHECK int pfw_summary_add(struct pfw_summary *summary, const struct pfw_line *line, struct error *err);

/* After the last event: finds what only the whole tells (names, gaps, runs without an end). */
void pfw_summary_finish(struct pfw_summary *summary);

/* Events of series number `series`. */
uint64_t pfw_summary_series_events(const struct pfw_summary *summary, uint32_t series);

#endif
