/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job: what is known of a job beside its numbers; merged from what its processes and nodes say of it.
 *
 * Descriptions of one job that differ never refuse a merge: the start is the earliest, the end the latest and only when
 * all have ended, the size the newest sum, the list of nodes a union. Knows JSON, since that is the protocol's and the
 * profiles' form. One thread.
 */
#ifndef METRIC_JOB_H
#define METRIC_JOB_H

#include <jansson.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/error.h"

#define METRIC_JOB_ID_MAX_BYTES      1024
#define METRIC_JOB_COMMAND_MAX_BYTES 8192
#define METRIC_JOB_TEXT_MAX_BYTES    4096

struct metric_job {
    char *id; /* as the job named itself; "" for processes without a job. None of these is ever NULL */
    char *command;
    char *nodelist;
    char *partition;
    char *cluster;
    char *run_dir;
    uint64_t size;         /* ranks that the launcher announced */
    int64_t start_wall_ms; /* since 1970; 0: unknown */
    int64_t end_wall_ms;   /* 0: still running */
};

/* An empty description of job `id` (copied). -ENOMEM. metric_job_fini() accepts a zeroed one. */
MUST_CHECK int metric_job_init(struct metric_job *job, const char *id, struct error *err);
void metric_job_fini(struct metric_job *job);

/*
 * Reads {"jobid":…,"command":…,"size":…,…}. Missing fields are empty; wrong types, bad numbers and texts past their
 * limits fail with -EINVAL and the field's name; `*out_job` is then untouched.
 */
MUST_CHECK int metric_job_from_json(const json_t *object, struct metric_job *out_job, struct error *err);

/* Appends the same form, keys in the order of the existing proxy. */
void metric_job_to_json(const struct metric_job *job, struct buf *out);

/* Makes `into` say what both say. Texts: the first that is not empty stays. -ENOMEM leaves `into` usable. */
MUST_CHECK int metric_job_merge(struct metric_job *into, const struct metric_job *from, struct error *err);

#endif
