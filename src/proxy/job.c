/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/job.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"

struct job {
    enum job_kind kind;
    uint32_t uid;
    char *key;
    bool is_shown_long; /* another live job has the same short id */
    bool has_folded;
    bool is_saving;
    unsigned save_failures;
    pid_t process;
    struct metric_job description;
    struct registry *registry;
    struct job_counts counts;
    uint64_t users; /* contributors that keep it alive */
    int64_t empty_since_mono_ns;
    double *shown_before; /* [shown_count], between jobs_begin() and jobs_end(), of a job that has folded */
    size_t shown_count;
};

void job_free(struct job *job)
{
    if (job == NULL)
        return;
    metric_job_fini(&job->description);
    registry_free(job->registry);
    free(job->shown_before);
    free(job->key);
    free(job);
}
int job_new(enum job_kind kind, uint32_t uid, const char *key, const char *id, size_t metrics_max,
            struct registry_budget *budget, struct job **out_job, struct error *err)
{
    CLEANUP(job_cleanup) struct job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return error_set(err, -ENOMEM, "no memory for job '%s'", id);
    job->kind = kind;
    job->uid = uid;
    job->key = strdup(key);
    job->registry = registry_new(metrics_max, budget);
    int rc = metric_job_init(&job->description, id, err);
    if (rc == 0 && (job->key == NULL || job->registry == NULL))
        rc = error_set(err, -ENOMEM, "no memory for job '%s'", id);
    if (rc < 0)
        return rc;
    *out_job = TAKE(job);
    return 0;
}

enum job_kind job_kind(const struct job *job)
{
    return job->kind;
}

uint32_t job_uid(const struct job *job)
{
    return job->uid;
}

const char *job_key(const struct job *job)
{
    return job->key;
}

const char *job_shown_id(const struct job *job)
{
    return job->is_shown_long ? job->key : job->description.id;
}

const struct metric_job *job_description(const struct job *job)
{
    return &job->description;
}

struct registry *job_registry(const struct job *job)
{
    return job->registry;
}

struct job_counts job_counts(const struct job *job)
{
    return job->counts;
}

struct job_counts *job_counts_of(struct job *job)
{
    return &job->counts;
}

/* What another one says of the job. Without memory a text for people is missing, and nothing else. */
static void job_merge(struct job *job, const struct metric_job *description)
{
    struct error err = {0};
    if (metric_job_merge(&job->description, description, &err) < 0)
        log_debug("job=%s %s", job->key, err.text);
}

void job_join(struct job *job, const struct metric_job *description, int64_t now_wall_ms)
{
    job_merge(job, description);
    if (job->description.start_wall_ms == 0)
        job->description.start_wall_ms = now_wall_ms;
    job->description.end_wall_ms = 0; /* it lives again if it lingered */
    job->users++;
}

void job_leave(struct job *job, int64_t now_mono_ns, int64_t now_wall_ms)
{
    assert(job->users > 0);
    job->users--;
    if (job->users > 0)
        return;
    job->empty_since_mono_ns = now_mono_ns;
    /* A clock that was set back in between must not make a profile that ends before it begins, or before 1970. */
    int64_t start_wall_ms = job->description.start_wall_ms;
    job->description.end_wall_ms = now_wall_ms > start_wall_ms ? now_wall_ms : start_wall_ms;
}

void job_restore(struct job *job, const struct metric_job *description, int64_t now_mono_ns)
{
    job_merge(job, description);
    job->description.end_wall_ms = description->end_wall_ms;
    job->empty_since_mono_ns = now_mono_ns;
}

bool job_is_empty(const struct job *job, int64_t *out_since_mono_ns)
{
    *out_since_mono_ns = job->empty_since_mono_ns;
    return job->users == 0;
}

void job_set_shown_long(struct job *job, bool is_shown_long)
{
    job->is_shown_long = is_shown_long;
}

void job_set_folded(struct job *job)
{
    job->has_folded = true;
}

bool job_is_saving(const struct job *job)
{
    return job->is_saving;
}

void job_set_saving(struct job *job, bool is_saving)
{
    job->is_saving = is_saving;
}

unsigned job_add_save_failure(struct job *job)
{
    return ++job->save_failures;
}

unsigned job_save_failures(const struct job *job)
{
    return job->save_failures;
}

/* Keeps what is shown of the counters, to be compared when they have been added anew. */
static void job_remember_shown(struct job *job)
{
    size_t count = registry_count(job->registry);
    job->shown_before = calloc(count > 0 ? count : 1, sizeof *job->shown_before);
    if (job->shown_before == NULL)
        return;
    job->shown_count = count;
    for (size_t i = 0; i < count; i++) {
        const struct metric_value *value = &registry_at(job->registry, i)->value;
        job->shown_before[i] = value->kind == METRIC_COUNTER ? value->counter : 0;
    }
}

/* A counter that fell by rounding gets back into its base what it lost. */
static void job_mend_falls(struct job *job)
{
    for (size_t i = 0; i < job->shown_count; i++) {
        struct metric *metric = registry_at(job->registry, i);
        if (metric->value.kind != METRIC_COUNTER || metric->value.counter >= job->shown_before[i])
            continue;
        metric->base.counter = metric_sum(metric->base.counter, job->shown_before[i] - metric->value.counter);
        metric->value.counter = job->shown_before[i];
    }
    free(job->shown_before);
    job->shown_before = NULL;
    job->shown_count = 0;
    job->has_folded = false;
}

void job_begin(struct job *job)
{
    if (job->has_folded)
        job_remember_shown(job);
    registry_begin(job->registry);
}

void job_end(struct job *job)
{
    if (job->has_folded)
        job_mend_falls(job);
}

pid_t job_process(const struct job *job)
{
    return job->process;
}

void job_set_process(struct job *job, pid_t pid)
{
    if (pid > 0)
        job->process = pid;
}
