/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job_cgroup: what the kernel counts of a job's cgroup, as metrics of the job: cicada_job_….
 *
 * Only a cgroup that is the job's own says something about the job: one whose path has the job's id in it, as batch
 * systems make them. All others (a login session, a container, the machine) are shared with who knows what. Counters
 * are the kernel's, from the cgroup's beginning on. Reads files of the kernel's own memory. Loop thread only.
 */
#ifndef PROXY_JOB_CGROUP_H
#define PROXY_JOB_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proxy/jobs.h"
#include "sample/sampler.h"
#include "util/error.h"

struct job_cgroup;

/*
 * The cgroup of `job`, in which process `pid` is. `sample` is borrowed for the call; its texts, and `job`, for the
 * object's life. -ENODEV: it has none of its own; -ENOMEM.
 */
MUST_CHECK int job_cgroup_open(struct jobs *jobs, struct job *job, const struct sample_config *sample, pid_t pid,
                               struct job_cgroup **out_cgroup, struct error *err);

/* Reads it; its metrics are new in the tick that follows. What the kernel tells no more stays, if it is a counter. */
void job_cgroup_read(struct job_cgroup *cgroup, int64_t now_wall_us);

/* The job goes, and its metrics with it. NULL is fine. */
void job_cgroup_close(struct job_cgroup *cgroup);

/* Does the path of a cgroup name job `id`? As a whole word: "/slurm/uid_0/job_42/step_0" names "42" and "42-0". Pure.
 */
bool job_cgroup_is_of(const char *path, const char *id);

#endif
