/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job: one job as the proxy holds it: who it is, its metrics, who contributes to it.
 *
 * jobs.h makes, finds and forgets jobs; whoever reads one gets it from there. Loop thread only.
 */
#ifndef PROXY_JOB_H
#define PROXY_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "metric/job.h"
#include "metric/registry.h"
#include "util/error.h"

struct job;

enum job_kind {
    JOB_MAIN, /* the sum of all */
    JOB_NODE, /* "Node: <host>": what is counted on this node, and the node's telemetry */
    JOB_REAL,
};

/* Who contributes to a job now, and has so far. Of JOB_MAIN and JOB_NODE: over all jobs and those without one. */
struct job_counts {
    uint64_t ranks;             /* contributors that declared a metric `mpi___…` */
    uint64_t ranks_peak;        /* most at one time */
    uint64_t processes;         /* processes of segments, and JSON connections */
    uint64_t processes_peak;    /* most at one time, as the ticks saw it */
    uint64_t contributors_seen; /* segments and connections so far */
};

/* Which kind it is, and whose. */
enum job_kind job_kind(const struct job *job);
uint32_t job_uid(const struct job *job);

const char *job_key(const struct job *job);      /* unique and stable: for files and for merging */
const char *job_shown_id(const struct job *job); /* for people: the short id while it is unique, else the key */

/* What is known of it, its metrics, and who contributes. Borrowed until the job is forgotten. */
const struct metric_job *job_description(const struct job *job);
struct registry *job_registry(const struct job *job);
struct job_counts job_counts(const struct job *job);

/* One of its processes on this node, the newest that told; 0: none has. It may have ended. */
pid_t job_process(const struct job *job);

/* The write side. */

/* `key` and `id` are copied; `budget` is borrowed for the job's life. -ENOMEM. */
MUST_CHECK int job_new(enum job_kind kind, uint32_t uid, const char *key, const char *id, size_t metrics_max,
                       struct registry_budget *budget, struct job **out_job, struct error *err);
void job_free(struct job *job); /* NULL is fine */
DEFINE_CLEANUP(job, job_free);

/* One more contributor keeps it alive, and says this of it. An unknown start is `now_wall_ms`. */
void job_join(struct job *job, const struct metric_job *description, int64_t now_wall_ms);

/* One fewer; with the last the end time is set. */
void job_leave(struct job *job, int64_t now_mono_ns, int64_t now_wall_ms);

/* It comes from an earlier proxy, and nobody is in it yet. */
void job_restore(struct job *job, const struct metric_job *description, int64_t now_mono_ns);

/* Since when nobody has been in it; false: somebody is. */
bool job_is_empty(const struct job *job, int64_t *out_since_mono_ns);

/* 0 tells nothing. */
void job_set_process(struct job *job, pid_t pid);

/* Another live job has the same short id: the key is shown. */
void job_set_shown_long(struct job *job, bool is_shown_long);

/* The counts, which contributors and the tick keep. */
struct job_counts *job_counts_of(struct job *job);

/* A contributor of `job` was moved into the base: the next job_end() looks for falls. */
void job_set_folded(struct job *job);

/* Is the job's profile being written? Kept while it is, and not written twice. */
bool job_is_saving(const struct job *job);
void job_set_saving(struct job *job, bool is_saving);

/* Its profile could not be written: how often so far. jobs_expired() waits twice as long each time. */
unsigned job_add_save_failure(struct job *job);
unsigned job_save_failures(const struct job *job);

/* A tick of this job: see jobs_begin(). */
void job_begin(struct job *job);
void job_end(struct job *job);

#endif
