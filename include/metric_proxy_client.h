/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metric_proxy_client.h: counters and gauges of your program, for the metric proxy to read while it runs.
 *
 *     MetricProxyClient *client = metric_proxy_init();
 *     MetricProxyValue *steps = metric_proxy_counter_new(client, "solver_steps_total", "steps of the solver");
 *     for (…)
 *         metric_proxy_counter_inc(steps, 1);
 *     metric_proxy_release(client);
 *
 * Link with -lproxyclient (pkg-config proxyclient), or with libproxyclient.a.
 *
 * An increment is an addition in shared memory that belongs to the calling thread: no lock, no system call, no thread
 * of ours, whether a proxy runs or not. What a process has counted is there after it died, even by SIGKILL. Processes
 * made by fork() count for themselves into the same segment; those made by vfork() and posix_spawn() count for their
 * parent until they exec.
 *
 * No function here prints, exits, changes errno, or fails because there is no proxy. A NULL handle is accepted
 * everywhere and does nothing, so results need no checks. When there is no room for another metric the function returns
 * NULL and the proxy shows how many were refused.
 *
 * Threads: every function may be called from any thread at any time, before main() and during exit too.
 * Signal handlers: the …_add_u64(), …_inc() and …_set() functions may be called. metric_proxy_counter_add_u64() is
 * exact there; one metric_proxy_counter_inc() that interrupts another of the same metric in the same thread can be
 * lost, since adding to a double is more than one instruction. Creating metrics is not allowed in signal handlers.
 *
 * Names: letters, digits, '_' and ':', not beginning with a digit, at most 1,024 bytes with labels; labels may follow
 * as name{key="value",…}. What doesn't fit these rules is mapped to a legal name by the proxy, which reports it.
 */
#ifndef METRIC_PROXY_CLIENT_H
#define METRIC_PROXY_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MetricProxyClient MetricProxyClient;
typedef struct MetricProxyValue MetricProxyValue;

/*
 * Connects this program; counts `has_started`. May be called more than once; each call wants its release.
 * Returns a handle that stays valid for the process's life, or NULL when counting is impossible.
 */
MetricProxyClient *metric_proxy_init(void);

/*
 * Says how many processes the program's job has, for launchers whose environment doesn't (SLURM_NTASKS,
 * OMPI_COMM_WORLD_SIZE, PMI_SIZE; those win). To be called before the process' first metric, metric_proxy_init()
 * included. 0, or non-zero when it comes too late.
 */
int metric_proxy_job_size(uint64_t size);

/* Says that the program has come to its end: counts `has_finished`. Metrics may be used on. 0, or non-zero for NULL. */
int metric_proxy_release(MetricProxyClient *client);

/*
 * The counter `name`, with a sentence for people (`doc` may be NULL). The same name gives the same counter. Texts are
 * copied. Returns a handle for the process's life, valid in forked children too; NULL when it was refused.
 */
MetricProxyValue *metric_proxy_counter_new(MetricProxyClient *client, const char *name, const char *doc);

/* Adds `value`, which should not be negative: a counter only grows. A value that is not finite is ignored. 0, or
 * non-zero. */
int metric_proxy_counter_inc(MetricProxyValue *counter, double value);

/* Adds a whole number: exact at any size below 2^64, in signal handlers too, and the fastest. 0, or non-zero. */
int metric_proxy_counter_add_u64(MetricProxyValue *counter, uint64_t count);

/*
 * The gauge `name`. A process has one value of it, the last that any of its threads set; the proxy shows the mean,
 * least and greatest over the processes that live.
 */
MetricProxyValue *metric_proxy_gauge_new(MetricProxyClient *client, const char *name, const char *doc);
int metric_proxy_gauge_set(MetricProxyValue *gauge, double value);

/* One label of a metric; both texts are UTF-8, the value may hold any character. */
typedef struct MetricProxyLabel {
    const char *key;
    const char *value;
} MetricProxyLabel;

/* The same with `labels[labels_count]`; their order doesn't matter. */
MetricProxyValue *metric_proxy_counter_new_labels(MetricProxyClient *client, const char *name, const char *doc,
                                                  const MetricProxyLabel *labels, size_t labels_count);
MetricProxyValue *metric_proxy_gauge_new_labels(MetricProxyClient *client, const char *name, const char *doc,
                                                const MetricProxyLabel *labels, size_t labels_count);

/*
 * A histogram with `bounds[bounds_count]` upper bounds of its buckets, ascending; one more bucket takes what is above.
 * At most 64 bounds. metric_proxy_histogram_observe() costs about as much as an increment and a search in the bounds.
 */
MetricProxyValue *metric_proxy_histogram_new(MetricProxyClient *client, const char *name, const char *doc,
                                             const double *bounds, size_t bounds_count);
int metric_proxy_histogram_observe(MetricProxyValue *histogram, double value);

/*
 * A timer is a counter of seconds, kept in nanoseconds inside. start() returns an instant of the monotonic clock,
 * stop() adds the time since then. int64_t start = metric_proxy_timer_start(); work(); metric_proxy_timer_stop(timer,
 * start);
 */
MetricProxyValue *metric_proxy_timer_new(MetricProxyClient *client, const char *name, const char *doc);
int64_t metric_proxy_timer_start(void);
int metric_proxy_timer_stop(MetricProxyValue *timer, int64_t start);

#ifdef __cplusplus
} /* extern "C" */

/* Times the rest of the block: MetricProxyScope scope(timer); */
class MetricProxyScope
{
  public:
    /* Borrows `timer`, which may be NULL; adds the time to it when the scope ends. */
    explicit MetricProxyScope(MetricProxyValue *timer) : timer_(timer), start_(metric_proxy_timer_start())
    {
    }
    ~MetricProxyScope()
    {
        (void)metric_proxy_timer_stop(timer_, start_);
    }

  private:
    /* Never defined: a scope that was copied would count twice. */
    MetricProxyScope(const MetricProxyScope &);
    MetricProxyScope &operator=(const MetricProxyScope &);

    MetricProxyValue *timer_;
    int64_t start_;
};
#elif defined(__GNUC__)
/* Times the rest of the block: METRIC_PROXY_TIME(timer); */
struct metric_proxy_scope {
    MetricProxyValue *timer;
    int64_t start;
};
static inline void metric_proxy_scope_end(struct metric_proxy_scope *scope)
{
    (void)metric_proxy_timer_stop(scope->timer, scope->start);
}
#define METRIC_PROXY_TIME(timer)                                                                                       \
    struct metric_proxy_scope metric_proxy_scope_here                                                                  \
        __attribute__((cleanup(metric_proxy_scope_end), unused)) = {(timer), metric_proxy_timer_start()}
#endif

#endif
