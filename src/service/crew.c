/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measured at one sample a second, when all caches are cold: each thread that wakes costs 25 us beside what it does. A
 * loop that waits for the timer, gives the work to the pool and hears of its end wakes twice; this way it sleeps.
 */
#include "service/crew.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "util/clock.h"

/* One collector in one sample. */
struct crew_job {
    struct error failure; /* code 0: none */
    atomic_bool is_running;
};

enum crew_order { CREW_GO_ON, CREW_END, CREW_SAMPLE_AND_END };

struct crew {
    struct crew_request request;
    size_t jobs_count;
    size_t works_count;
    size_t works_open; /* on the loop: not yet come back from the pool */
    uv_async_t started;
    bool is_told_started;
    atomic_int order; /* of enum crew_order */
    int64_t now_boot_ns;
    struct crew_job *jobs;  /* [jobs_count] */
    atomic_size_t next_job; /* which collector is taken next */

    pthread_mutex_t lock;
    pthread_cond_t go;   /* for the helpers */
    pthread_cond_t done; /* for the leader */

    /* guarded by lock */
    uint64_t samples; /* begun */
    size_t helpers;   /* that wait or work; the leader is none */
    size_t helpers_working;
    bool is_over;

    uv_work_t works[]; /* [works_count], the first one leads */
};

/* Runs collectors that nobody has taken yet. */
static void crew_take_jobs(struct crew *crew)
{
    size_t index;
    /* Relaxed: the index alone is shared; what a collector reads is its own. */
    while ((index = atomic_fetch_add_explicit(&crew->next_job, 1, memory_order_relaxed)) < crew->jobs_count) {
        struct crew_job *job = &crew->jobs[index];
        atomic_store_explicit(&job->is_running, true, memory_order_relaxed); /* for a message only */
        job->failure.code = sampler_run(crew->request.sampler, index, crew->now_boot_ns, &job->failure);
        atomic_store_explicit(&job->is_running, false, memory_order_relaxed);
    }
}

static void crew_lock(struct crew *crew)
{
    int rc = pthread_mutex_lock(&crew->lock);
    (void)rc; /* of a plain mutex of ours: can't fail */
}

static void crew_unlock(struct crew *crew)
{
    int rc = pthread_mutex_unlock(&crew->lock);
    (void)rc; /* we hold it */
}

/* ---- helpers ---- */

static void crew_help(struct crew *crew)
{
    crew_lock(crew);
    uint64_t seen = crew->samples; /* one that has begun already is done without this thread */
    crew->helpers++;
    while (!crew->is_over) {
        if (crew->samples == seen) {
            (void)pthread_cond_wait(&crew->go, &crew->lock); /* can't fail with a lock that we hold */
            continue;
        }
        seen = crew->samples;
        crew_unlock(crew);
        crew_take_jobs(crew);
        crew_lock(crew);
        if (--crew->helpers_working == 0)
            (void)pthread_cond_signal(&crew->done); /* fails only for what is no condition */
    }
    crew->helpers--;
    crew_unlock(crew);
}

static void crew_call_helpers(struct crew *crew)
{
    crew_lock(crew);
    crew->samples++;
    crew->helpers_working = crew->helpers;
    (void)pthread_cond_broadcast(&crew->go); /* fails only for what is no condition */
    crew_unlock(crew);
}

static void crew_await_helpers(struct crew *crew)
{
    crew_lock(crew);
    while (crew->helpers_working > 0)
        (void)pthread_cond_wait(&crew->done, &crew->lock); /* can't fail with a lock that we hold */
    crew_unlock(crew);
}

static void crew_dismiss_helpers(struct crew *crew)
{
    crew_lock(crew);
    crew->is_over = true;
    (void)pthread_cond_broadcast(&crew->go); /* fails only for what is no condition */
    crew_unlock(crew);
}

/* ---- the leader ---- */

static bool crew_sample(struct crew *crew, int64_t now_boot_ns)
{
    bool has_helpers = crew->works_count > 1;
    crew->now_boot_ns = now_boot_ns;
    /* Helpers see both by the lock that calls them. */
    atomic_store_explicit(&crew->next_job, 0, memory_order_relaxed);
    if (has_helpers)
        crew_call_helpers(crew);
    crew_take_jobs(crew);
    if (has_helpers)
        crew_await_helpers(crew);
    return crew->request.on_sampled(crew->request.context, now_boot_ns);
}

/* Waits for the timer, which crew_end() lets expire, too. */
static enum crew_order crew_wait(struct crew *crew)
{
    uint64_t expiries;
    for (;;) {
        /* Acquire: with the order comes what its giver did before. */
        enum crew_order order = (enum crew_order)atomic_load_explicit(&crew->order, memory_order_acquire);
        if (order != CREW_GO_ON)
            return order;
        if (read(crew->request.timer_fd, &expiries, sizeof expiries) == (ssize_t)sizeof expiries)
            return (enum crew_order)atomic_load_explicit(&crew->order, memory_order_acquire);
        if (errno != EINTR)
            return CREW_END; /* no timer any more: a fault of ours, which must not make a busy loop */
    }
}

static void crew_lead(struct crew *crew)
{
    bool goes_on = crew_sample(crew, crew->now_boot_ns);
    (void)uv_async_send(&crew->started); /* fails only for a wrong handle */
    enum crew_order order = CREW_GO_ON;
    while (goes_on && order == CREW_GO_ON) {
        int64_t busy_until_boot_ns = clock_boot_ns();
        order = crew_wait(crew);
        if (order != CREW_GO_ON)
            break;
        int64_t now_boot_ns = clock_boot_ns();
        if (crew->request.on_tick(crew->request.context, now_boot_ns, busy_until_boot_ns))
            goes_on = crew_sample(crew, now_boot_ns);
    }
    if (order == CREW_SAMPLE_AND_END)
        (void)crew_sample(crew, clock_boot_ns()); /* it ends anyway */
    crew_dismiss_helpers(crew);
}

/* ---- the loop ---- */

static void crew_run(uv_work_t *work)
{
    struct crew *crew = work->data;
    if (work == &crew->works[0])
        crew_lead(crew);
    else
        crew_help(crew);
}

static void crew_tell_started(struct crew *crew)
{
    if (crew->is_told_started)
        return;
    crew->is_told_started = true;
    crew->request.on_started(crew->request.context);
}

static void crew_on_started(uv_async_t *async)
{
    crew_tell_started(async->data);
}

static void crew_after(uv_work_t *work, int status)
{
    (void)status; /* nobody cancels */
    struct crew *crew = work->data;
    if (--crew->works_open > 0)
        return;
    crew_tell_started(crew); /* the end may overtake the other message */
    uv_close((uv_handle_t *)&crew->started, NULL);
    crew->request.on_ended(crew->request.context);
}

static int crew_init_locks(struct crew *crew)
{
    int rc = pthread_mutex_init(&crew->lock, NULL);
    if (rc == 0)
        rc = pthread_cond_init(&crew->go, NULL);
    if (rc == 0)
        rc = pthread_cond_init(&crew->done, NULL);
    return -rc;
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
    if (crew == NULL || crew_jobs == NULL || setenv("UV_THREADPOOL_SIZE", threads, 1) < 0 ||
        crew_init_locks(crew) < 0) {
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
    (void)pthread_mutex_destroy(&crew->lock); /* nobody has them any more */
    (void)pthread_cond_destroy(&crew->go);
    (void)pthread_cond_destroy(&crew->done);
    free(crew->jobs);
    free(crew);
}

int crew_start(struct crew *crew, int64_t now_boot_ns, struct error *err)
{
    int rc = uv_async_init(crew->request.loop, &crew->started, crew_on_started);
    if (rc < 0)
        return error_set(err, rc, "making a way from the pool to the loop: %s", uv_strerror(rc));
    crew->started.data = crew;
    crew->now_boot_ns = now_boot_ns;
    for (size_t i = 0; i < crew->works_count; i++) {
        rc = uv_queue_work(crew->request.loop, &crew->works[i], crew_run, crew_after);
        if (rc < 0) /* it fails only for a missing function, which would be ours */
            return error_set(err, rc, "giving work to libuv's pool: %s", uv_strerror(rc));
        crew->works_open++;
    }
    return 0;
}

void crew_end(struct crew *crew, bool takes_sample)
{
    /* Release: see crew_wait(). */
    atomic_store_explicit(&crew->order, takes_sample ? CREW_SAMPLE_AND_END : CREW_END, memory_order_release);
    const struct itimerspec at_once = {.it_value = {.tv_nsec = 1}, .it_interval = {.tv_nsec = CLOCK_NS_PER_MS}};
    (void)timerfd_settime(crew->request.timer_fd, 0, &at_once, NULL); /* fails only for a wrong argument */
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
