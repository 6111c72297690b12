/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/jobs.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/contributor.h"
#include "util/buf.h"

static const char jobs_main_id[] = "main";
static const char jobs_node_prefix[] = "Node: ";

enum { JOBS_KEY_MAX_BYTES = 2 * METRIC_JOB_ID_MAX_BYTES };

struct jobs {
    struct jobs_config config;
    char *hostname;
    struct job **jobs;
    size_t count, capacity;
    struct registry_budget budget;
    struct jobs_stats stats;
    struct contributor *first, *last;
    bool is_dirty;
    void (*on_remove)(void *context, struct job *job);
    void *watcher;
};

static void jobs_free_all(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        job_free(jobs->jobs[i]);
    free(jobs->jobs);
    free(jobs->hostname);
    free(jobs);
}

void jobs_free(struct jobs *jobs)
{
    if (jobs == NULL)
        return;
    assert(jobs->first == NULL);
    jobs_free_all(jobs);
}

/*
 * Short ids are shown while they are unique among live jobs: looks at those that are called `id`. main and the node are
 * always called what they are called.
 */
static void jobs_mark_shown(struct jobs *jobs, const char *id)
{
    struct job *first = NULL;
    for (size_t i = 0; i < jobs->count; i++) {
        struct job *job = jobs->jobs[i];
        if (strcmp(job_description(job)->id, id) != 0)
            continue;
        job_set_shown_long(job, first != NULL);
        if (first != NULL && job_kind(first) == JOB_REAL)
            job_set_shown_long(first, true);
        first = job;
    }
}

static bool jobs_grow(struct jobs *jobs)
{
    if (jobs->count < jobs->capacity)
        return true;
    size_t capacity = jobs->capacity > 0 ? jobs->capacity * 2 : 8;
    struct job **grown = realloc(jobs->jobs, capacity * sizeof(void *));
    if (grown == NULL)
        return false;
    jobs->jobs = grown;
    jobs->capacity = capacity;
    return true;
}

/* A job at the end of the list; `key` and `id` are copied. */
static int jobs_add(struct jobs *jobs, enum job_kind kind, uint32_t uid, const char *key, const char *id,
                    struct job **out_job, struct error *err)
{
    if (!jobs_grow(jobs))
        return error_set(err, -ENOMEM, "no memory for one more job");
    size_t metrics_max = kind == JOB_REAL ? jobs->config.metrics_per_job_max : jobs->config.metrics_max;
    int rc = job_new(kind, uid, key, id, metrics_max, &jobs->budget, out_job, err);
    if (rc == 0)
        jobs->jobs[jobs->count++] = *out_job;
    return rc;
}

int jobs_new(const struct jobs_config *config, struct jobs **out_jobs, struct error *err)
{
    struct jobs *jobs = calloc(1, sizeof *jobs);
    if (jobs == NULL)
        return error_set(err, -ENOMEM, "no memory for jobs");
    jobs->config = *config;
    jobs->budget.metrics_max = config->metrics_max;
    jobs->hostname = strdup(config->hostname);
    jobs->config.hostname = jobs->hostname;
    CLEANUP(buf_cleanup) struct buf node;
    buf_init(&node, JOBS_KEY_MAX_BYTES);
    buf_text(&node, jobs_node_prefix);
    buf_text(&node, config->hostname);
    const char *node_id = buf_string(&node);
    int rc = jobs->hostname != NULL ? buf_status(&node, err) : error_set(err, -ENOMEM, "no memory for jobs");
    struct job *job;
    if (rc == 0)
        rc = jobs_add(jobs, JOB_MAIN, config->uid, jobs_main_id, jobs_main_id, &job, err);
    if (rc == 0)
        rc = jobs_add(jobs, JOB_NODE, config->uid, node_id, node_id, &job, err);
    if (rc < 0) {
        jobs_free_all(jobs);
        return rc;
    }
    *out_jobs = jobs;
    return 0;
}

size_t jobs_count(const struct jobs *jobs)
{
    return jobs->count;
}

struct job *jobs_at(const struct jobs *jobs, size_t index)
{
    assert(index < jobs->count);
    return jobs->jobs[index];
}

static bool job_is_of(const struct job *job, uint32_t uid)
{
    return uid == UINT32_MAX || job_kind(job) != JOB_REAL || job_uid(job) == uid;
}

struct job *jobs_find(const struct jobs *jobs, uint32_t uid, const char *id)
{
    for (size_t i = 0; i < jobs->count; i++) {
        if (job_is_of(jobs->jobs[i], uid) && strcmp(job_shown_id(jobs->jobs[i]), id) == 0)
            return jobs->jobs[i];
    }
    for (size_t i = 0; i < jobs->count; i++) {
        if (job_is_of(jobs->jobs[i], uid) && strcmp(job_key(jobs->jobs[i]), id) == 0)
            return jobs->jobs[i];
    }
    for (size_t i = 0; i < jobs->count; i++) {
        if (job_is_of(jobs->jobs[i], uid) && strcmp(job_description(jobs->jobs[i])->id, id) == 0)
            return jobs->jobs[i];
    }
    return NULL;
}

const struct jobs_config *jobs_config(const struct jobs *jobs)
{
    return &jobs->config;
}

struct jobs_stats *jobs_stats(struct jobs *jobs)
{
    return &jobs->stats;
}

size_t jobs_metrics_used(const struct jobs *jobs)
{
    return jobs->budget.metrics_used;
}

/*
 * "42"; "42@host-123" for the pid of a launcher; "…+uid1000" for another user than the proxy's. A job that calls itself
 * like one of ours gets a '_' before its name.
 */
static void jobs_make_key(const struct jobs *jobs, uint32_t uid, const char *id, uint64_t launcher_start,
                          struct buf *out)
{
    if (strcmp(id, jobs_main_id) == 0 || strncmp(id, jobs_node_prefix, sizeof jobs_node_prefix - 1) == 0)
        buf_char(out, '_');
    buf_text(out, id);
    if (launcher_start != 0)
        buf_printf(out, "@%s-%" PRIu64, jobs->hostname, launcher_start);
    if (uid != jobs->config.uid)
        buf_printf(out, "+uid%" PRIu32, uid);
}

static struct job *jobs_find_key(const struct jobs *jobs, uint32_t uid, const char *key)
{
    for (size_t i = 2; i < jobs->count; i++) {
        if (job_uid(jobs->jobs[i]) == uid && !job_is_saving(jobs->jobs[i]) && strcmp(job_key(jobs->jobs[i]), key) == 0)
            return jobs->jobs[i];
    }
    return NULL;
}

static int jobs_start(struct jobs *jobs, uint32_t uid, const char *key, const char *id, struct job **out_job,
                      struct error *err)
{
    if (jobs->count >= jobs->config.jobs_max + 2)
        return error_set(err, -ENOSPC, "job '%s': there are %zu jobs already", id, jobs->count - 2);
    int rc = jobs_add(jobs, JOB_REAL, uid, key, id, out_job, err);
    if (rc < 0)
        return rc;
    jobs_mark_shown(jobs, id);
    jobs->stats.jobs_started++;
    return 0;
}

int jobs_join(struct jobs *jobs, uint32_t uid, const struct metric_job *description, uint64_t launcher_start,
              int64_t now_wall_ms, struct job **out_job, struct error *err)
{
    *out_job = NULL;
    if (description->id[0] == '\0')
        return 0;
    CLEANUP(buf_cleanup) struct buf key;
    buf_init(&key, JOBS_KEY_MAX_BYTES);
    jobs_make_key(jobs, uid, description->id, launcher_start, &key);
    const char *key_text = buf_string(&key);
    int rc = buf_status(&key, err);
    struct job *job = rc == 0 ? jobs_find_key(jobs, uid, key_text) : NULL;
    if (rc == 0 && job == NULL) {
        const char *id = key_text[0] == '_' && description->id[0] != '_' ? key_text : description->id;
        rc = jobs_start(jobs, uid, key_text, id, &job, err);
    }
    if (rc < 0) {
        jobs->stats.jobs_refused++;
        return rc;
    }
    job_join(job, description, now_wall_ms);
    jobs->is_dirty = true;
    *out_job = job;
    return 0;
}

void jobs_leave(struct jobs *jobs, struct job *job, int64_t now_mono_ns, int64_t now_wall_ms)
{
    job_leave(job, now_mono_ns, now_wall_ms);
    jobs->is_dirty = true;
}

int jobs_restore(struct jobs *jobs, uint32_t uid, const char *key, const struct metric_job *description,
                 int64_t now_mono_ns, struct job **out_job, struct error *err)
{
    struct job *job = jobs_find_key(jobs, uid, key);
    int rc = job == NULL ? jobs_start(jobs, uid, key, description->id, &job, err) : 0;
    if (rc < 0)
        return rc;
    job_restore(job, description, now_mono_ns);
    *out_job = job;
    return 0;
}

struct job *jobs_expired(const struct jobs *jobs, const struct job *after, int64_t now_mono_ns)
{
    bool is_after = after == NULL;
    for (size_t i = 2; i < jobs->count; i++) {
        struct job *job = jobs->jobs[i];
        int64_t since_mono_ns;
        bool has_expired = job_is_empty(job, &since_mono_ns) && !job_is_saving(job) &&
                           now_mono_ns - since_mono_ns >= jobs->config.linger_ns << job_save_failures(job);
        if (is_after && has_expired)
            return job;
        is_after = is_after || job == after;
    }
    return NULL;
}

void jobs_remove(struct jobs *jobs, struct job *job)
{
    assert(job_kind(job) == JOB_REAL);
    size_t at = 2;
    while (jobs->jobs[at] != job)
        at++;
    if (jobs->on_remove != NULL)
        jobs->on_remove(jobs->watcher, job);
    jobs->count--;
    memmove(&jobs->jobs[at], &jobs->jobs[at + 1], (jobs->count - at) * sizeof(void *));
    jobs_mark_shown(jobs, job_description(job)->id);
    job_free(job);
    jobs->stats.jobs_ended++;
    jobs->is_dirty = true;
}

struct contributor *jobs_first_contributor(const struct jobs *jobs)
{
    return jobs->first;
}

void jobs_add_contributor(struct jobs *jobs, struct contributor *contributor)
{
    struct contributor_links *links = contributor_links(contributor);
    links->previous = jobs->last;
    links->next = NULL;
    if (jobs->last != NULL)
        contributor_links(jobs->last)->next = contributor;
    else
        jobs->first = contributor;
    jobs->last = contributor;
}

void jobs_take_contributor(struct jobs *jobs, struct contributor *contributor)
{
    struct contributor_links *links = contributor_links(contributor);
    if (links->previous != NULL)
        contributor_links(links->previous)->next = links->next;
    else
        jobs->first = links->next;
    if (links->next != NULL)
        contributor_links(links->next)->previous = links->previous;
    else
        jobs->last = links->previous;
}

void jobs_set_dirty(struct jobs *jobs, bool is_dirty)
{
    jobs->is_dirty = is_dirty;
}

bool jobs_is_dirty(const struct jobs *jobs)
{
    return jobs->is_dirty;
}

void jobs_watch(struct jobs *jobs, void (*on_remove)(void *context, struct job *job), void *context)
{
    jobs->on_remove = on_remove;
    jobs->watcher = context;
}

void jobs_begin(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        job_begin(jobs->jobs[i]);
}

void jobs_end(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        job_end(jobs->jobs[i]);
}
