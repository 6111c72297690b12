/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * count_client: a program that counts with libproxyclient, for tests.
 *
 *     count_client COUNT [CHILDREN [WAIT]]
 *
 * Counts `work` COUNT times, and so does each of its forked children; one of them is a rank (mpi___hits___mpi_test).
 * With LATE_CHILD in its environment a child that has not counted yet waits until it is an orphan, and counts `late`
 * once. With WAIT it prints "counted" and waits for its standard input to end before it goes on to its own end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "metric_proxy_client.h"

static void count(MetricProxyValue *work, unsigned long times)
{
    for (unsigned long i = 0; i < times; i++)
        (void)metric_proxy_counter_add_u64(work, 1);
}

/* Counts for the first time when its parent has been gone for a while. */
static void count_late(MetricProxyValue *late)
{
    pid_t parent = getpid();
    if (fork() != 0)
        return;
    (void)close(0);
    (void)close(1);
    while (getppid() == parent)
        (void)usleep(1000);
    (void)usleep(500000); /* ticks pass in which nobody who has counted lives */
    (void)metric_proxy_counter_add_u64(late, 1);
    _exit(0);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    unsigned long times = strtoul(argv[1], NULL, 10);
    unsigned long children = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    MetricProxyClient *client = metric_proxy_init();
    MetricProxyValue *work = metric_proxy_counter_new(client, "work", "what was done");
    MetricProxyValue *rank = metric_proxy_counter_new(client, "mpi___hits___mpi_test", "calls");
    MetricProxyValue *pid = metric_proxy_gauge_new(client, "level", "a gauge");
    static const double bounds[] = {1, 10};
    MetricProxyValue *sizes = metric_proxy_histogram_new(client, "sizes{of=\"calls\"}", "a histogram", bounds, 2);
    if (getenv("LATE_CHILD") != NULL)
        count_late(metric_proxy_counter_new(client, "late", "what an orphan counted"));
    for (unsigned long i = 0; i < children; i++) {
        if (fork() == 0) {
            count(work, times);
            _exit(0);
        }
    }
    count(work, times);
    (void)metric_proxy_counter_add_u64(rank, 1);
    (void)metric_proxy_gauge_set(pid, 7);
    (void)metric_proxy_histogram_observe(sizes, 5);
    for (unsigned long i = 0; i < children && wait(NULL) > 0; i++)
        continue;
    if (argc > 3) {
        (void)puts("counted");
        (void)fflush(stdout);
        while (getchar() != EOF)
            continue;
    }
    (void)metric_proxy_release(client);
    return 0;
}
