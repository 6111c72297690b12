/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jobs: who is here: `main`, the node's own job, and the jobs whose processes count, each with its metrics.
 *
 * A job is known by its user and its id. It lives while somebody contributes to it (contributor.h), and a little
 * longer, so that a script of many short runs is one job. An id that was made from a launcher's pid is only unique
 * together with the host and the launcher's start: that is its key, under which files are kept and nodes are merged;
 * people see the short form while no other live job has it.
 *
 * Owns descriptions, registries, and the list of contributors in the order in which they came, which is the order in
 * which they are added at each tick. Leaves ticks, files and sockets to others. Loop thread only.
 */
#ifndef PROXY_JOBS_H
#define PROXY_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metric/job.h"
#include "proxy/job.h"
#include "util/error.h"

struct jobs;
struct contributor;

struct jobs_config {
    const char *hostname; /* copied */
    uint32_t uid;         /* the proxy's user: jobs of others have the uid in their key */
    size_t jobs_max;
    size_t metrics_per_job_max;
    size_t metrics_max; /* of all jobs together */
    int64_t linger_ns;  /* how long a job outlives its last contributor */
};

/* What was refused, and the like, since the start: the proxy's own metrics. */
struct jobs_stats {
    uint64_t names_mapped;        /* names that had to be made legal */
    uint64_t names_refused;       /* names that can't be */
    uint64_t metrics_conflicting; /* declared as a counter here and as a gauge there */
    uint64_t values_refused;      /* of metrics that were not declared, or refused */
    uint64_t metrics_refused;     /* no room: job, all jobs, or memory */
    uint64_t jobs_started;
    uint64_t jobs_ended;
    uint64_t jobs_refused; /* past jobs_max, or with a bad description; what they count is in node and main */
};

/* `main` and the node's job are there from the start. -ENOMEM. */
MUST_CHECK int jobs_new(const struct jobs_config *config, struct jobs **out_jobs, struct error *err);
void jobs_free(struct jobs *jobs); /* contributors must have gone */
DEFINE_CLEANUP(jobs, jobs_free);

/* The read side. Index 0 is `main`, 1 the node's, then real jobs in order of arrival; valid until the next tick. */
size_t jobs_count(const struct jobs *jobs);
struct job *jobs_at(const struct jobs *jobs, size_t index);

/* By shown id, key or short id, in this order; NULL. `uid` limits the search to one user's; UINT32_MAX: anybody's. */
struct job *jobs_find(const struct jobs *jobs, uint32_t uid, const char *id);

/* What jobs_new() was given, borrowed. */
const struct jobs_config *jobs_config(const struct jobs *jobs);

/* The counts of what was refused, for whoever counts there or shows them. Borrowed. */
struct jobs_stats *jobs_stats(struct jobs *jobs);

/* Metrics that all jobs hold together; at most metrics_max. */
size_t jobs_metrics_used(const struct jobs *jobs);

/* The write side, for contributor.c, state.c, node.c and tick.c. */

/*
 * The job that a contributor's words name, new if it isn't there; one more contributor is in it. `*out_job` is NULL
 * when it has no id. `launcher_start` is not 0 for an id that is a launcher's pid: ticks as in /proc/<pid>/stat.
 * -ENOSPC (jobs_max), -ENOMEM: counted; the contributor then counts without a job.
 */
MUST_CHECK int jobs_join(struct jobs *jobs, uint32_t uid, const struct metric_job *description, uint64_t launcher_start,
                         int64_t now_wall_ms, struct job **out_job, struct error *err);

/* One contributor fewer; with the last the end time is set, and lingering begins. */
void jobs_leave(struct jobs *jobs, struct job *job, int64_t now_mono_ns, int64_t now_wall_ms);

/* A job of an earlier proxy, with nobody in it yet: it lingers from now on. -ENOMEM, -ENOSPC. */
MUST_CHECK int jobs_restore(struct jobs *jobs, uint32_t uid, const char *key, const struct metric_job *description,
                            int64_t now_mono_ns, struct job **out_job, struct error *err);

/* The next job after `after` (NULL: the first) that has lingered long enough; NULL. */
struct job *jobs_expired(const struct jobs *jobs, const struct job *after, int64_t now_mono_ns);

/* Forgets a real job without contributors, with its metrics. */
void jobs_remove(struct jobs *jobs, struct job *job);

/* Contributors, in order. contributor.c adds and takes away. */
struct contributor *jobs_first_contributor(const struct jobs *jobs);
void jobs_add_contributor(struct jobs *jobs, struct contributor *contributor);
void jobs_take_contributor(struct jobs *jobs, struct contributor *contributor);

/* Something that the state file must know has changed. */
void jobs_set_dirty(struct jobs *jobs, bool is_dirty);
bool jobs_is_dirty(const struct jobs *jobs);

/*
 * jobs_begin() starts a tick: every value is its base. jobs_end() ends it: a counter whose parts have been added in
 * another order than before, since a contributor has ended, and that would be a rounding below what was shown, stays
 * at what was shown. Without memory it may fall by that.
 */
void jobs_begin(struct jobs *jobs);
void jobs_end(struct jobs *jobs);

/* Calls `on_remove` before a job is forgotten: node.c has contributors of its own in them. NULL: nobody. */
void jobs_watch(struct jobs *jobs, void (*on_remove)(void *context, struct job *job), void *context);

#endif
