/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporters/mpi/calls.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

enum { CALLS_NAME_MAX_BYTES = 128 };

/* The names that the metric proxy's users know. Time is counted in nanoseconds and shown in seconds. */
static const struct {
    const char *name; /* of a function's own metric; %s is its key */
    const char *total;
    const char *doc; /* %s is the function's name, or "MPI" */
    bool is_time;
} calls_kinds[CALLS_KINDS] = {
    [CALLS_HITS] = {"mpi___hits___%s", "total___mpi___hits___total", "calls of %s", false},
    [CALLS_TIME] = {"mpi___time___%s", "total___mpi___time___total", "seconds in %s", true},
    [CALLS_SIZE] = {"mpi___size___%s", "total___mpi___size_total", "bytes moved by %s", false},
    [CALLS_OUT] = {"mpi___size_out___%s", "total___mpi___size___total_out", "bytes that left by %s", false},
    [CALLS_IN] = {"mpi___size_in___%s", "total___mpi___size___total_in", "bytes that arrived by %s", false},
};

_Thread_local const struct calls_function *calls_running __attribute__((tls_model("initial-exec")));

/* One for the process, as the client is. */
static struct {
    pthread_once_t once;
    MetricProxyClient *client;
    uint64_t (*job_ranks)(void);
    struct calls_metric totals[CALLS_KINDS];
    struct calls_metric lost_requests;
    uint32_t uses;         /* atomic */
    uint32_t has_finished; /* atomic */
} calls = {.once = PTHREAD_ONCE_INIT};

void calls_set_job_ranks(uint64_t (*job_ranks)(void))
{
    calls.job_ranks = job_ranks;
}

static void calls_connect(void)
{
    uint64_t ranks = calls.job_ranks != NULL ? calls.job_ranks() : 0;
    if (ranks > 0)
        (void)metric_proxy_job_size(ranks); /* too late when the program has metrics of its own already */
    calls.client = metric_proxy_init();
}

/* Asks the client for a metric, once. Threads that do so at the same time get the same handle. */
static MetricProxyValue *calls_ask(struct calls_metric *metric, const char *name, const char *doc, bool is_time)
{
    if (__atomic_load_n(&metric->is_asked, __ATOMIC_ACQUIRE) != 0)
        return __atomic_load_n(&metric->value, __ATOMIC_RELAXED);
    int kept_errno = errno;
    (void)pthread_once(&calls.once, calls_connect);
    MetricProxyValue *value =
        is_time ? metric_proxy_timer_new(calls.client, name, doc) : metric_proxy_counter_new(calls.client, name, doc);
    __atomic_store_n(&metric->value, value, __ATOMIC_RELAXED);
    __atomic_store_n(&metric->is_asked, 1, __ATOMIC_RELEASE);
    errno = kept_errno;
    return value;
}

/* The same for one of a function, or of all when `function` is NULL. */
static MetricProxyValue *calls_ask_kind(struct calls_metric *metric, const struct calls_function *function,
                                        enum calls_kind kind)
{
    char name[CALLS_NAME_MAX_BYTES];
    char doc[CALLS_NAME_MAX_BYTES];
    const char *format = function != NULL ? calls_kinds[kind].name : "%s";
    const char *part = function != NULL ? function->key : calls_kinds[kind].total;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the formats are those of the table above */
    (void)snprintf(name, sizeof name, format, part);
    (void)snprintf(doc, sizeof doc, calls_kinds[kind].doc, function != NULL ? function->name : "MPI");
#pragma GCC diagnostic pop
    return calls_ask(metric, name, doc, calls_kinds[kind].is_time);
}

static inline void calls_add(struct calls_function *function, enum calls_kind kind, uint64_t count)
{
    struct calls_metric *own = &function->metrics[kind];
    struct calls_metric *total = &calls.totals[kind];
    MetricProxyValue *own_value = __atomic_load_n(&own->value, __ATOMIC_RELAXED);
    MetricProxyValue *total_value = __atomic_load_n(&total->value, __ATOMIC_RELAXED);
    if (__builtin_expect(own_value == NULL, 0))
        own_value = calls_ask_kind(own, function, kind);
    if (__builtin_expect(total_value == NULL, 0))
        total_value = calls_ask_kind(total, NULL, kind);
    (void)metric_proxy_counter_add_u64(own_value, count);
    (void)metric_proxy_counter_add_u64(total_value, count);
}

void calls_moved(struct calls_function *function, uint64_t in_bytes, uint64_t out_bytes)
{
    if (out_bytes > 0)
        calls_add(function, CALLS_OUT, out_bytes);
    if (in_bytes > 0)
        calls_add(function, CALLS_IN, in_bytes);
    if (in_bytes + out_bytes > 0)
        calls_add(function, CALLS_SIZE, in_bytes + out_bytes);
}

void calls_count(struct calls_function *function, uint64_t elapsed_ns, uint64_t in_bytes, uint64_t out_bytes)
{
    calls_add(function, CALLS_HITS, 1);
    calls_add(function, CALLS_TIME, elapsed_ns);
    calls_moved(function, in_bytes, out_bytes);
}

void calls_lost_request(void)
{
    (void)metric_proxy_counter_add_u64(calls_ask(&calls.lost_requests, "cicada_mpi_lost_requests_total",
                                                 "requests of MPI whose bytes could not be counted", false),
                                       1);
}

void calls_begin_use(void)
{
    (void)__atomic_add_fetch(&calls.uses, 1, __ATOMIC_RELAXED);
}

void calls_end_use(void)
{
    if (__atomic_sub_fetch(&calls.uses, 1, __ATOMIC_RELAXED) != 0)
        return;
    if (__atomic_exchange_n(&calls.has_finished, 1, __ATOMIC_RELAXED) == 0)
        (void)metric_proxy_release(calls.client);
}
