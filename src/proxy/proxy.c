/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/proxy.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "metric/name.h"
#include "proxy/contributor.h"
#include "proxy/node.h"
#include "proxy/state.h"
#include "proxy/tick.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"

enum {
    PROXY_HOSTNAME_BYTES = 256,
    PROXY_PATH_MAX_BYTES = 4096,
    PROXY_STATE_EVERY_TICKS = 10, /* at least: telemetry alone is worth no more */
    PROXY_COUNTS = 2,
    PROXY_SAVES_MAX = 10, /* of a profile: with waits that double, the last one is tried after 512 times the linger */
};

#define PROXY_FAILURES_EVERY_NS (60 * CLOCK_NS_PER_SECOND)

struct proxy {
    struct proxy_config config;
    char *hostname;
    struct jobs *jobs;
    struct segments *segments;
    struct profiles *profiles;
    struct state *state;
    struct node *node;          /* NULL: without telemetry */
    struct contributor *counts; /* ranks and processes, as metrics */
    uint32_t count_slots[PROXY_COUNTS];
    struct tick tick;
    bool is_ticking;
    bool is_closing;
    struct proxy_stats stats;
    struct log_repeat state_repeat;
    struct log_repeat saves_repeat;
    uv_prepare_t waiter; /* after the last tick: waits for work to come back */
    void (*on_closed)(void *context);
    void *closed_context;
};

/* The parts of a proxy that is half built, or whose work has come back. */
static void proxy_free(struct proxy *proxy)
{
    if (proxy == NULL)
        return;
    if (proxy->jobs != NULL) {
        int64_t now_mono_ns = clock_mono_ns();
        int64_t now_wall_ms = clock_wall_ns() / CLOCK_NS_PER_MS;
        node_free(proxy->node, now_mono_ns, now_wall_ms);
        contributor_discard(proxy->counts);
    }
    segments_free(proxy->segments);
    profiles_free(proxy->profiles);
    state_close(proxy->state);
    jobs_free(proxy->jobs);
    free(proxy->hostname);
    free(proxy);
}
DEFINE_CLEANUP(proxy, proxy_free);

static int proxy_set_defaults(struct proxy *proxy, struct error *err)
{
    struct proxy_config *config = &proxy->config;
    if (config->period_ms == 0)
        config->period_ms = PROXY_PERIOD_MS_DEFAULT;
    if (config->period_ms < PROXY_PERIOD_MS_MIN || config->period_ms > PROXY_PERIOD_MS_MAX)
        return error_set(err, -EINVAL, "a period of %u ms: from %d to %d are possible", config->period_ms,
                         PROXY_PERIOD_MS_MIN, PROXY_PERIOD_MS_MAX);
    if (config->linger_ms == 0)
        config->linger_ms = PROXY_LINGER_MS_DEFAULT;
    if (config->jobs_max == 0)
        config->jobs_max = PROXY_JOBS_MAX_DEFAULT;
    if (config->metrics_per_job_max == 0)
        config->metrics_per_job_max = PROXY_METRICS_PER_JOB_MAX_DEFAULT;
    if (config->metrics_max == 0)
        config->metrics_max = PROXY_METRICS_MAX_DEFAULT;
    char own_name[PROXY_HOSTNAME_BYTES] = "localhost";
    if (config->hostname == NULL && gethostname(own_name, sizeof own_name - 1) == 0)
        own_name[strcspn(own_name, ".")] = '\0';
    proxy->hostname = strdup(config->hostname != NULL ? config->hostname : own_name);
    config->hostname = proxy->hostname;
    return proxy->hostname != NULL ? 0 : error_set(err, -ENOMEM, "no memory for the proxy");
}

static int proxy_open_state(struct proxy *proxy, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf directory;
    buf_init(&directory, PROXY_PATH_MAX_BYTES);
    int rc = 0;
    if (proxy->config.state_path != NULL)
        buf_text(&directory, proxy->config.state_path);
    else
        rc = file_node_directory(&directory, err);
    const char *path = buf_string(&directory);
    if (rc == 0)
        rc = buf_status(&directory, err);
    return rc == 0 ? state_open(path, proxy->hostname, &proxy->state, err) : rc;
}

static int proxy_open_segments(struct proxy *proxy, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf directory;
    buf_init(&directory, PROXY_PATH_MAX_BYTES);
    if (proxy->config.segments_path != NULL)
        buf_text(&directory, proxy->config.segments_path);
    else
        buf_printf(&directory, "/dev/shm/cicada-%u", (unsigned)geteuid());
    const char *path = buf_string(&directory);
    int rc = buf_status(&directory, err);
    return rc == 0 ? segments_new(proxy->jobs, path, (uint32_t)geteuid(), &proxy->segments, err) : rc;
}

/* What is counted of the proxy itself under the names of the existing one. */
static int proxy_declare_counts(struct proxy *proxy, struct error *err)
{
    static const struct {
        const char *name, *doc;
    } rows[PROXY_COUNTS] = {
        {"proxy_mpi_ranks", "MPI ranks that are connected"},
        {"proxy_connected_procs", "processes that are connected"},
    };
    proxy->counts = contributor_new(proxy->jobs, &(struct contributor_config){.is_nobody = true});
    if (proxy->counts == NULL)
        return error_set(err, -ENOMEM, "no memory for the proxy");
    for (size_t i = 0; i < PROXY_COUNTS; i++) {
        int rc = contributor_declare(proxy->counts, rows[i].name, strlen(rows[i].name), rows[i].doc, METRIC_GAUGE,
                                     &proxy->count_slots[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int proxy_open_jobs(struct proxy *proxy, struct error *err)
{
    const struct proxy_config *config = &proxy->config;
    int rc = jobs_new(&(struct jobs_config){.hostname = proxy->hostname,
                                            .uid = (uint32_t)geteuid(),
                                            .jobs_max = config->jobs_max,
                                            .metrics_per_job_max = config->metrics_per_job_max,
                                            .metrics_max = config->metrics_max,
                                            .linger_ns = config->linger_ms * CLOCK_NS_PER_MS},
                      &proxy->jobs, err);
    if (rc == 0)
        rc = proxy_open_segments(proxy, err);
    if (rc == 0)
        rc = state_load(proxy->state, proxy->jobs, proxy->segments, clock_mono_ns(), err);
    if (rc == 0)
        rc = proxy_declare_counts(proxy, err);
    if (rc == 0 && !config->is_without_telemetry)
        rc = node_new(&(struct node_config){.loop = config->loop,
                                            .jobs = proxy->jobs,
                                            .sample = config->sample,
                                            .has_legacy = !config->is_without_legacy,
                                            .has_cicada = !config->is_without_cicada},
                      &proxy->node, err);
    return rc;
}

int proxy_open(const struct proxy_config *config, struct proxy **out_proxy, struct error *err)
{
    if (config->prefix == NULL)
        return error_set(err, -EINVAL, "no prefix for profiles");
    CLEANUP(proxy_cleanup) struct proxy *proxy = calloc(1, sizeof *proxy);
    if (proxy == NULL)
        return error_set(err, -ENOMEM, "no memory for the proxy");
    proxy->config = *config;
    int rc = proxy_set_defaults(proxy, err);
    if (rc == 0)
        rc = proxy_open_state(proxy, err);
    if (rc == 0)
        rc = proxy_open_jobs(proxy, err);
    if (rc == 0)
        rc = profiles_new(config->loop, config->prefix, &proxy->profiles, err);
    if (rc < 0)
        return rc;
    profiles_load(proxy->profiles);
    proxy->config.prefix = NULL; /* theirs; ours are copies */
    proxy->config.segments_path = NULL;
    proxy->config.state_path = NULL;
    *out_proxy = TAKE(proxy);
    return 0;
}

/* The tick */

static void proxy_set_counts(struct proxy *proxy, int64_t now_wall_us)
{
    struct job_counts counts = proxy_counts(proxy);
    const uint64_t numbers[PROXY_COUNTS] = {counts.ranks, counts.processes};
    for (size_t i = 0; i < PROXY_COUNTS; i++) {
        struct metric_value value = metric_gauge((double)numbers[i], now_wall_us);
        contributor_set(proxy->counts, proxy->count_slots[i], &value);
    }
}

/* job_mpi_ranks of each job, which has no other contributor. */
static void proxy_set_job_ranks(struct proxy *proxy, int64_t now_wall_us)
{
    static const char name[] = "job_mpi_ranks";
    for (size_t i = 2; i < jobs_count(proxy->jobs); i++) {
        struct job *job = jobs_at(proxy->jobs, i);
        struct job_counts counts = job_counts(job);
        struct metric *metric;
        if (counts.ranks_peak > 0 &&
            registry_find_or_add(job_registry(job), name, sizeof name - 1, "MPI ranks of the job that are connected",
                                 METRIC_GAUGE, &metric, NULL) == 0)
            metric->value = metric_gauge((double)counts.ranks, now_wall_us);
    }
}

static void proxy_add(struct proxy *proxy, bool is_adoptable)
{
    struct contributor *contributor = jobs_first_contributor(proxy->jobs);
    for (; contributor != NULL; contributor = contributor_links(contributor)->next) {
        if (contributor_is_adoptable(contributor) == is_adoptable)
            contributor_add(contributor);
    }
}

static void proxy_write_state(struct proxy *proxy, int64_t now_mono_ns)
{
    struct error err = {0};
    if (state_write(proxy->state, proxy->jobs, proxy->segments, &err) == 0) {
        jobs_set_dirty(proxy->jobs, false);
        proxy->stats.state_writes++;
        return;
    }
    proxy->stats.state_failures++;
    uint64_t held_back;
    if (log_repeat_is_due(&proxy->state_repeat, now_mono_ns, PROXY_FAILURES_EVERY_NS, &held_back))
        log_error("%s: segments of ended processes stay until it can be written (%llu times before)", err.text,
                  (unsigned long long)held_back);
}

static void proxy_on_saved(void *context, const char *key, int status)
{
    struct proxy *proxy = context;
    for (size_t i = 2; i < jobs_count(proxy->jobs); i++) {
        struct job *job = jobs_at(proxy->jobs, i);
        if (!job_is_saving(job) || strcmp(job_key(job), key) != 0)
            continue;
        if (status < 0 && job_add_save_failure(job) < PROXY_SAVES_MAX)
            job_set_saving(job, false); /* why has been said; a full disk may have room again later */
        else
            jobs_remove(proxy->jobs, job);
        return;
    }
}

/* Jobs that have lingered long enough end: their profile is written, and then they are forgotten. */
static void proxy_end_jobs(struct proxy *proxy, int64_t now_mono_ns)
{
    struct job *job = NULL;
    while ((job = jobs_expired(proxy->jobs, job, now_mono_ns)) != NULL) {
        struct error err = {0};
        job_set_saving(job, true);
        if (proxy->config.is_without_profiles) {
            jobs_remove(proxy->jobs, job);
            job = NULL;
        } else if (profiles_save(proxy->profiles, job, proxy_on_saved, proxy, &err) < 0) {
            uint64_t held_back;
            if (log_repeat_is_due(&proxy->saves_repeat, now_mono_ns, PROXY_FAILURES_EVERY_NS, &held_back))
                log_error("job=%s %s: tried again in each tick (%" PRIu64 " such lines held back)", job_key(job),
                          err.text, held_back);
            job_set_saving(job, false);
        }
    }
}

void proxy_tick(struct proxy *proxy)
{
    int64_t now_mono_ns = clock_mono_ns();
    int64_t now_wall_ns = clock_wall_ns();
    int64_t cpu_ns = clock_thread_cpu_ns();
    int64_t now_wall_ms = now_wall_ns / CLOCK_NS_PER_MS;
    int64_t now_wall_us = now_wall_ns / CLOCK_NS_PER_US;
    segments_tick(proxy->segments, now_mono_ns, now_wall_ms);
    if (proxy->node != NULL)
        node_apply(proxy->node, now_wall_us);
    proxy_set_counts(proxy, now_wall_us);

    jobs_begin(proxy->jobs);
    proxy_add(proxy, false);
    if (jobs_is_dirty(proxy->jobs) || proxy->stats.ticks % PROXY_STATE_EVERY_TICKS == 0)
        proxy_write_state(proxy, now_mono_ns);
    proxy_add(proxy, true);
    proxy_set_job_ranks(proxy, now_wall_us);
    jobs_end(proxy->jobs);

    if (!jobs_is_dirty(proxy->jobs))
        segments_unlink_folded(proxy->segments);
    proxy->stats.ticks++;
    if (proxy->config.on_tick != NULL)
        proxy->config.on_tick(proxy->config.context, now_wall_ns);
    proxy_end_jobs(proxy, now_mono_ns); /* after all have seen their last values */
    proxy->stats.tick_last_ns = clock_mono_ns() - now_mono_ns;
    proxy->stats.tick_cpu_ns += clock_thread_cpu_ns() - cpu_ns;
}

static void proxy_on_timer(void *context)
{
    struct proxy *proxy = context;
    proxy_tick(proxy);
    if (proxy->node != NULL)
        node_sample(proxy->node); /* for the next tick */
    proxy->stats.ticks_missed = tick_missed(&proxy->tick);
}

int proxy_start(struct proxy *proxy, struct error *err)
{
    if (proxy->node != NULL)
        node_sample(proxy->node);
    int rc = tick_start(&proxy->tick, proxy->config.loop, proxy->config.period_ms, proxy_on_timer, proxy, err);
    proxy->is_ticking = rc == 0;
    return rc;
}

/* The end */

static void proxy_on_waiter_closed(uv_handle_t *handle)
{
    struct proxy *proxy = handle->data;
    void (*on_closed)(void *context) = proxy->on_closed;
    void *context = proxy->closed_context;
    proxy_free(proxy);
    if (on_closed != NULL)
        on_closed(context);
}

/* The last thing: what profiles said, and the telemetry that has come, is in the state. */
static void proxy_finish(struct proxy *proxy)
{
    jobs_begin(proxy->jobs);
    proxy_add(proxy, false);
    proxy_write_state(proxy, clock_mono_ns());
    proxy_add(proxy, true);
    jobs_end(proxy->jobs);
    if (!jobs_is_dirty(proxy->jobs))
        segments_unlink_folded(proxy->segments);
    uv_close((uv_handle_t *)&proxy->waiter, proxy_on_waiter_closed);
}

static void proxy_on_waiter(uv_prepare_t *waiter)
{
    struct proxy *proxy = waiter->data;
    bool is_busy = profiles_pending(proxy->profiles) > 0 || (proxy->node != NULL && node_is_busy(proxy->node));
    if (!is_busy && !uv_is_closing((uv_handle_t *)waiter))
        proxy_finish(proxy);
}

static void proxy_wait(struct proxy *proxy)
{
    (void)uv_prepare_init(proxy->config.loop, &proxy->waiter); /* neither of these can fail */
    proxy->waiter.data = proxy;
    (void)uv_prepare_start(&proxy->waiter, proxy_on_waiter);
    if (profiles_pending(proxy->profiles) == 0 && (proxy->node == NULL || !node_is_busy(proxy->node)))
        proxy_finish(proxy);
}

static void proxy_on_tick_closed(uv_handle_t *handle)
{
    proxy_wait(handle->data);
}

/* Jobs that run get a profile, too: nobody knows whether a successor comes. */
static void proxy_save_running(struct proxy *proxy)
{
    for (size_t i = 2; i < jobs_count(proxy->jobs) && !proxy->config.is_without_profiles; i++) {
        const struct job *job = jobs_at(proxy->jobs, i);
        struct error err = {0};
        if (!job_is_saving(job) && profiles_save(proxy->profiles, job, NULL, NULL, &err) < 0)
            log_error("job=%s %s", job_key(job), err.text);
    }
}

void proxy_close(struct proxy *proxy, void (*on_closed)(void *context), void *context)
{
    proxy->is_closing = true;
    proxy->on_closed = on_closed;
    proxy->closed_context = context;
    proxy_tick(proxy);
    proxy_save_running(proxy);
    if (proxy->is_ticking)
        tick_close(&proxy->tick, proxy_on_tick_closed);
    else
        proxy_wait(proxy);
}

/* The read side, and what is set by hand */

unsigned proxy_period_ms(const struct proxy *proxy)
{
    return proxy->config.period_ms;
}

struct jobs *proxy_jobs(struct proxy *proxy)
{
    return proxy->jobs;
}

struct segments *proxy_segments(struct proxy *proxy)
{
    return proxy->segments;
}

struct profiles *proxy_profiles(struct proxy *proxy)
{
    return proxy->profiles;
}

const char *proxy_hostname(const struct proxy *proxy)
{
    return proxy->hostname;
}

struct job_counts proxy_counts(struct proxy *proxy)
{
    return job_counts(jobs_at(proxy->jobs, 0));
}

struct proxy_stats *proxy_stats(struct proxy *proxy)
{
    return &proxy->stats;
}

/* The metric of main that `name`, made legal, names. `doc` not NULL: declared when it isn't there. */
static int proxy_find_by_hand(struct proxy *proxy, const char *name, const char *doc, struct metric **out_metric,
                              struct error *err)
{
    CLEANUP(buf_cleanup) struct buf legal;
    buf_init(&legal, 8 * (size_t)METRIC_NAME_MAX_BYTES);
    bool was_legal;
    int rc = metric_name_parse(name, strlen(name), &legal, &was_legal, err);
    if (rc < 0)
        return rc;
    if (contributor_is_reserved(buf_string(&legal))) {
        (void)error_set(err, -EINVAL, "'%s' is among the names under which the proxy tells of itself", name);
        return -EINVAL; /* said twice: the analyzer doesn't know that error_set() returns it */
    }
    struct registry *reg = job_registry(jobs_at(proxy->jobs, 0));
    if (doc != NULL)
        return registry_find_or_add(reg, legal.data, legal.length, doc, METRIC_COUNTER, out_metric, err);
    *out_metric = registry_find(reg, legal.data, legal.length);
    if (*out_metric == NULL)
        return error_set(err, -ENOENT, "there is no metric '%s': declare it with /push", name);
    return 0;
}

/* Adds to what is shown now and stays in the base. A counter doesn't fall below what contributors have. */
static void proxy_move(struct proxy *proxy, struct metric *metric, double change)
{
    int64_t now_wall_us = clock_wall_ns() / CLOCK_NS_PER_US;
    if (metric->value.kind == METRIC_COUNTER) {
        metric->base.counter = metric_sum(metric->base.counter, change);
        metric->value.counter = metric_sum(metric->value.counter, change);
        metric->base.wall_us = metric->value.wall_us = now_wall_us;
    } else {
        metric->base = metric_gauge(metric_sum(metric_shown(&metric->value), change), now_wall_us);
        metric->value = metric->base;
    }
    jobs_set_dirty(proxy->jobs, true);
}

int proxy_push(struct proxy *proxy, const char *name, double value, const char *doc, struct error *err)
{
    if (!isfinite(value) || value < 0)
        return error_set(err, -EINVAL, "metric '%s': a counter grows by a finite number from 0 on", name);
    struct metric *metric;
    int rc = proxy_find_by_hand(proxy, name, doc != NULL ? doc : "", &metric, err);
    if (rc == 0)
        proxy_move(proxy, metric, value);
    return rc;
}

int proxy_set(struct proxy *proxy, const char *name, double value, struct error *err)
{
    if (!isfinite(value))
        return error_set(err, -EINVAL, "metric '%s': not a finite number", name);
    struct metric *metric;
    int rc = proxy_find_by_hand(proxy, name, NULL, &metric, err);
    if (rc == 0)
        proxy_move(proxy, metric, metric_sum(value, -metric_shown(&metric->value)));
    return rc;
}

int proxy_accumulate(struct proxy *proxy, const char *name, double value, struct error *err)
{
    struct metric *metric;
    int rc = proxy_find_by_hand(proxy, name, NULL, &metric, err);
    if (rc < 0)
        return rc;
    if (!isfinite(value) || (metric->value.kind == METRIC_COUNTER && value < 0))
        return error_set(err, -EINVAL, "metric '%s': a counter grows by a finite number from 0 on", name);
    proxy_move(proxy, metric, value);
    return 0;
}
