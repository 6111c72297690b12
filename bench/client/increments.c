/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * increments: what one increment costs, ours and a peer's, in turns in the same process.
 *
 *     increments THREADS BATCHES    prints "name|ns" a line: the fastest of the batches, wall time an increment
 *
 * The peer is what a library without shards does: a mutex and an addition, one for all threads.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "metric_proxy_client.h"

enum { THREADS_MAX = 64, INCREMENTS = 1000000, NS_PER_S = 1000000000 };

/* Shared by the threads of a batch. */
static struct {
    pthread_mutex_t lock;
    double sum;             /* guarded by lock */
    MetricProxyValue *real; /* counts doubles */
    MetricProxyValue *whole;
    MetricProxyValue *gauge;
    MetricProxyValue *histogram;
    pthread_barrier_t start;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void do_mutex(void)
{
    for (int i = 0; i < INCREMENTS; i++) {
        (void)pthread_mutex_lock(&shared.lock);
        shared.sum += 1;
        (void)pthread_mutex_unlock(&shared.lock);
    }
}

static void do_real(void)
{
    for (int i = 0; i < INCREMENTS; i++)
        (void)metric_proxy_counter_inc(shared.real, 1);
}

static void do_whole(void)
{
    for (int i = 0; i < INCREMENTS; i++)
        (void)metric_proxy_counter_add_u64(shared.whole, 1);
}

static void do_gauge(void)
{
    for (int i = 0; i < INCREMENTS; i++)
        (void)metric_proxy_gauge_set(shared.gauge, i);
}

static void do_histogram(void)
{
    for (int i = 0; i < INCREMENTS; i++)
        (void)metric_proxy_histogram_observe(shared.histogram, i & 15);
}

static const struct {
    const char *name;
    void (*run)(void);
} kinds[] = {
    {"mutex and add", do_mutex},         {"counter_inc", do_real},
    {"counter_add_u64", do_whole},       {"gauge_set", do_gauge},
    {"histogram_observe", do_histogram},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

struct worker {
    pthread_t thread;
    size_t kind;
    int64_t took_ns;
};

static void *work(void *context)
{
    struct worker *worker = context;
    (void)pthread_barrier_wait(&shared.start);
    int64_t start_ns = now_ns();
    kinds[worker->kind].run();
    worker->took_ns = now_ns() - start_ns;
    return NULL;
}

/* Wall time an increment, of the slowest thread. */
static double run_batch(size_t kind, unsigned threads)
{
    struct worker workers[THREADS_MAX];
    int64_t slowest_ns = 0;
    (void)pthread_barrier_init(&shared.start, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (struct worker){.kind = kind};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            abort();
    }
    for (unsigned i = 0; i < threads; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        slowest_ns = workers[i].took_ns > slowest_ns ? workers[i].took_ns : slowest_ns;
    }
    (void)pthread_barrier_destroy(&shared.start);
    return (double)slowest_ns / INCREMENTS;
}

int main(int argc, char **argv)
{
    unsigned threads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    unsigned batches = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 20;
    static const double bounds[] = {1, 2, 4, 8};
    MetricProxyClient *client = metric_proxy_init();
    shared.real = metric_proxy_counter_new(client, "bench_real_total", "doubles");
    shared.whole = metric_proxy_counter_new(client, "bench_whole_total", "whole numbers");
    shared.gauge = metric_proxy_gauge_new(client, "bench_gauge", "a gauge");
    shared.histogram = metric_proxy_histogram_new(client, "bench_histogram", "a histogram", bounds, 4);
    if (threads == 0 || threads > THREADS_MAX || shared.real == NULL || shared.histogram == NULL)
        return EXIT_FAILURE;
    double best[KINDS] = {0};
    for (unsigned batch = 0; batch < batches; batch++) {
        for (size_t kind = 0; kind < KINDS; kind++) {
            double ns = run_batch(kind, threads);
            best[kind] = batch == 0 || ns < best[kind] ? ns : best[kind];
        }
    }
    for (size_t kind = 0; kind < KINDS; kind++)
        (void)printf("%s|%.3f\n", kinds[kind].name, best[kind]);
    return metric_proxy_release(client) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
