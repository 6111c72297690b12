/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls: the metrics of each MPI function, and the totals.
 *
 * Metrics are made when they first count something, so a process that never calls MPI costs the proxy nothing, and one
 * that does shows what it uses. Nothing here knows MPI. Any thread; adding takes no lock and makes no system call.
 */
#ifndef MPI_CALLS_H
#define MPI_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "metric_proxy_client.h"

struct calls_metric {
    MetricProxyValue *value; /* atomic; NULL: not made yet, or refused */
    uint32_t is_asked;       /* atomic: not to be asked for again */
};

enum calls_kind { CALLS_HITS, CALLS_TIME, CALLS_SIZE, CALLS_OUT, CALLS_IN, CALLS_KINDS };

/* The two names under which a program reaches a function; and the exporter that counts for us (library.h). */
enum calls_entry { CALLS_MPI, CALLS_PMPI, CALLS_OTHER, CALLS_ENTRIES };

/* One function of MPI; the generated table has all of them. */
struct calls_function {
    const char *name;          /* MPI_Send */
    const char *key;           /* mpi_send */
    void *next[CALLS_ENTRIES]; /* atomic: what to call; NULL: not looked up yet */
    struct calls_metric metrics[CALLS_KINDS];
};

/* The function whose next one this thread is in. A tool behind us that calls PMPI itself is not counted again. */
extern __attribute__((visibility("hidden"),
                      tls_model("initial-exec"))) _Thread_local const struct calls_function *calls_running;

/*
 * Asks `job_ranks` how many ranks the job has when the first call is counted; 0: it isn't known then. Before any call
 * is counted.
 */
void calls_set_job_ranks(uint64_t (*job_ranks)(void));

/* Counts one call that took `elapsed_ns` and moved these bytes. */
void calls_count(struct calls_function *function, uint64_t elapsed_ns, uint64_t in_bytes, uint64_t out_bytes);

/* Counts bytes of a call that has been counted: those of a request that completed. */
void calls_moved(struct calls_function *function, uint64_t in_bytes, uint64_t out_bytes);

/* Counts a request that was not followed, for lack of memory: what it moves is missing from the bytes. */
void calls_lost_request(void);

/* One more use of MPI begins; one ends. The first to leave none tells the proxy that the program came to its end. */
void calls_begin_use(void);
void calls_end_use(void);

#endif
