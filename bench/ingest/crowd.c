/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crowd: many processes that count with libproxyclient, for bench/ingest.
 *
 *     bench_crowd PROCESSES METRICS
 *
 * Each process has counters bench_<i>_total of its own, adds 1 to each of them once a second, and belongs to one of
 * CROWD_JOBS jobs. Prints "ready" when all have counted once; when its standard input ends, so do they, and it prints
 * how many increments were made.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "metric_proxy_client.h"

enum {
    CROWD_JOBS = 10,
    CROWD_METRICS_MAX = 100000,
    CROWD_PROCESSES_MAX = 100000,
    CROWD_PERIOD_MS = 1000,
    CROWD_LOOK_MS = 20,
    CROWD_NAME_BYTES = 64,
};

/* Shared by all processes. */
struct crowd {
    _Atomic uint64_t ready;
    _Atomic uint64_t increments;
};

static int crowd_count(struct crowd *crowd, MetricProxyValue **counters, long metrics)
{
    for (long i = 0; i < metrics; i++) {
        if (metric_proxy_counter_inc(counters[i], 1) != 0)
            return 1;
    }
    crowd->increments += (uint64_t)metrics;
    return 0;
}

/* One process: counts each second, at its own moment of it, until the pipe ends. */
static int crowd_live(struct crowd *crowd, long number, long processes, long metrics, int end_fd)
{
    char text[CROWD_NAME_BYTES];
    (void)snprintf(text, sizeof text, "bench-%ld", number % CROWD_JOBS);
    MetricProxyValue **counters = calloc((size_t)metrics, sizeof(MetricProxyValue *));
    if (counters == NULL || setenv("PROXY_JOB_ID", text, 1) != 0)
        return 1;
    MetricProxyClient *client = metric_proxy_init();
    for (long i = 0; i < metrics; i++) {
        (void)snprintf(text, sizeof text, "bench_%03ld_total", i);
        counters[i] = metric_proxy_counter_new(client, text, "a counter of the benchmark");
        if (counters[i] == NULL)
            return 1;
    }
    if (crowd_count(crowd, counters, metrics) != 0)
        return 1;
    crowd->ready++;
    struct pollfd end = {.fd = end_fd, .events = POLLIN};
    int wait_ms = (int)(number * CROWD_PERIOD_MS / processes);
    while (poll(&end, 1, wait_ms) == 0) {
        if (crowd_count(crowd, counters, metrics) != 0)
            return 1;
        wait_ms = CROWD_PERIOD_MS;
    }
    return metric_proxy_release(client);
}

static int crowd_wait(long processes)
{
    int failed = 0;
    for (long i = 0; i < processes; i++) {
        int status = 0;
        if (wait(&status) < 0 || status != 0)
            failed = 1;
    }
    return failed;
}

int main(int argc, char **argv)
{
    long processes = argc == 3 ? strtol(argv[1], NULL, 10) : 0;
    long metrics = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    int ends[2];
    if (processes < 1 || processes > CROWD_PROCESSES_MAX || metrics < 1 || metrics > CROWD_METRICS_MAX ||
        pipe(ends) != 0)
        return 2;
    struct crowd *crowd = mmap(NULL, sizeof *crowd, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (crowd == MAP_FAILED)
        return 1;
    for (long i = 0; i < processes; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return 1; /* the others end with the pipe */
        if (pid == 0) {
            (void)close(ends[1]);
            exit(crowd_live(crowd, i, processes, metrics, ends[0]));
        }
    }
    const struct timespec look = {.tv_nsec = CROWD_LOOK_MS * 1000000L};
    while (crowd->ready < (uint64_t)processes && waitpid(-1, NULL, WNOHANG) == 0)
        (void)nanosleep(&look, NULL);
    if (crowd->ready < (uint64_t)processes)
        return 1;
    (void)puts("ready");
    (void)fflush(stdout);
    while (getchar() != EOF)
        ;
    (void)close(ends[1]);
    int failed = crowd_wait(processes);
    (void)printf("%llu\n", (unsigned long long)crowd->increments);
    return failed;
}
