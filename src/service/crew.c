/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/crew.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* One collector in one sample. */
struct crew_job {
    struct error failure; /* code 0: none */
    atomic_bool is_running;
};

struct crew {
    struct crew_request request;
    size_t jobs_count;
    size_t works_count;
    size_t works_open; /* on the loop: not yet come back from the pool */
    int64_t now_boot_ns;
    atomic_size_t next_job;   /* which collector is taken next */
    atomic_size_t works_left; /* on the pool: not yet out of collectors */
    struct crew_job *jobs;    /* [jobs_count] */
    uv_work_t works[];        /* [works_count] */
};

static void crew_run(uv_work_t *work)
{
    struct crew *crew = work->data;
    size_t index;
    /* Relaxed: the index alone is shared; what a collector reads is its own. */
    while ((index = atomic_fetch_add_explicit(&crew->next_job, 1, memory_order_relaxed)) < crew->jobs_count) {
        struct crew_job *job = &crew->jobs[index];
        atomic_store_explicit(&job->is_running, true, memory_order_relaxed); /* for a message only */
        job->failure.code = sampler_run(crew->request.sampler, index, crew->now_boot_ns, &job->failure);
        atomic_store_explicit(&job->is_running, false, memory_order_relaxed);
    }
    /* Acquire and release: the last one out sees what all others have measured. */
    if (atomic_fetch_sub_explicit(&crew->works_left, 1, memory_order_acq_rel) == 1)
        crew->request.on_sampled(crew->request.context, crew->now_boot_ns);
}

static void crew_after(uv_work_t *work, int status)
{
    (void)status; /* nobody cancels */
    struct crew *crew = work->data;
    if (--crew->works_open == 0)
        crew->request.on_done(crew->request.context);
}

int crew_new(const struct crew_request *request, struct crew **out_crew, struct error *err)
{
    size_t jobs = sampler_count(request->sampler);
    size_t works = request->threads < jobs ? request->threads : jobs;
    if (works == 0)
        works = 1; /* without a collector, on_sampled() is still called each tick */
    char threads[16];
    (void)snprintf(threads, sizeof threads, "%zu", works); /* more would never have work */
    struct crew *crew = calloc(1, sizeof *crew + works * sizeof crew->works[0]);
    struct crew_job *crew_jobs = calloc(jobs + 1, sizeof *crew_jobs);
    if (crew == NULL || crew_jobs == NULL || setenv("UV_THREADPOOL_SIZE", threads, 1) < 0) {
        free(crew);
        free(crew_jobs);
        return error_set(err, -ENOMEM, "no memory for the collectors' threads");
    }
    crew->request = *request;
    crew->jobs = crew_jobs;
    crew->jobs_count = jobs;
    crew->works_count = works;
    for (size_t i = 0; i < works; i++)
        crew->works[i].data = crew;
    *out_crew = crew;
    return 0;
}

void crew_free(struct crew *crew)
{
    if (crew == NULL)
        return;
    free(crew->jobs);
    free(crew);
}

int crew_start(struct crew *crew, int64_t now_boot_ns, struct error *err)
{
    crew->now_boot_ns = now_boot_ns;
    atomic_store(&crew->next_job, 0);
    atomic_store(&crew->works_left, crew->works_count);
    for (size_t i = 0; i < crew->works_count; i++) {
        int rc = uv_queue_work(crew->request.loop, &crew->works[i], crew_run, crew_after);
        if (rc < 0) /* it fails only for a missing function, which would be ours */
            return error_set(err, rc, "giving work to libuv's pool: %s", uv_strerror(rc));
        crew->works_open++;
    }
    return 0;
}

bool crew_is_busy(const struct crew *crew)
{
    return crew->works_open > 0;
}

const char *crew_failure(const struct crew *crew, size_t index)
{
    return crew->jobs[index].failure.code < 0 ? crew->jobs[index].failure.text : NULL;
}

const char *crew_straggler(const struct crew *crew)
{
    for (size_t i = 0; i < crew->jobs_count; i++) {
        if (atomic_load_explicit(&crew->jobs[i].is_running, memory_order_relaxed))
            return sampler_ops(crew->request.sampler, i)->name;
    }
    return NULL;
}
