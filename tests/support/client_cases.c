/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client_cases: what programs do that a library inside them must survive, one case a run.
 *
 *     client_cases CASE [ARGUMENT]
 *
 * Prints how much it has counted in `work_total`, over all its processes, when it gets so far.
 */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "metric_proxy_client.h"

enum { SHORT_THREADS = 2000, PER_THREAD = 3, CHILDREN = 20, CROWD = 300, METRICS = 5000, TICKS = 20000000 };

static MetricProxyValue *work;

static void count(uint64_t times)
{
    (void)metric_proxy_counter_add_u64(work, times);
}

/* Before main(), perhaps before the library's own start. */
__attribute__((constructor)) static void count_early(void)
{
    work = metric_proxy_counter_new(metric_proxy_init(), "work_total", "work");
    count(1);
}

static uint64_t told;
static void tell(uint64_t times)
{
    told += times;
    (void)printf("%" PRIu64 "\n", told + 1); /* the constructor's */
    (void)fflush(stdout);
}

static void *short_thread(void *context)
{
    (void)context;
    count(PER_THREAD);
    return NULL;
}

static uint64_t threads_that_come_and_go(const char *rounds)
{
    unsigned long all = rounds != NULL ? strtoul(rounds, NULL, 10) : SHORT_THREADS;
    for (unsigned long i = 0; i < all; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, short_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
            abort();
    }
    return all * PER_THREAD;
}

static uint64_t forks(const char *unused)
{
    (void)unused;
    for (int i = 0; i < CHILDREN; i++) {
        if (fork() == 0) {
            count(5);
            if (fork() == 0) {
                count(2);
                _exit(0);
            }
            (void)wait(NULL);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    return CHILDREN * 7;
}

/* A server that forks for each request, until its first segment is full. */
static uint64_t children_one_by_one(const char *number)
{
    unsigned long all = number != NULL ? strtoul(number, NULL, 10) : 1;
    MetricProxyValue *times = metric_proxy_timer_new(metric_proxy_init(), "served_seconds_total", "time of requests");
    for (unsigned long i = 0; i < all; i++) {
        if (fork() == 0) {
            count(1);
            (void)metric_proxy_counter_add_u64(times, 1000000000);
            (void)metric_proxy_counter_add_u64(metric_proxy_counter_new(metric_proxy_init(), "late_total", ""), 1);
            _exit(0);
        }
        (void)wait(NULL);
    }
    return all;
}

static uint64_t crowd_lost;
static pthread_barrier_t crowd_gate;

static void *one_of_a_crowd(void *context)
{
    (void)context;
    if (metric_proxy_counter_add_u64(work, 1) != 0)
        (void)__atomic_fetch_add(&crowd_lost, 1, __ATOMIC_RELAXED);
    (void)pthread_barrier_wait(&crowd_gate); /* so that nobody takes over the shard of one that has ended */
    return NULL;
}

/* Threads that live at the same time; says how many found no room. */
static uint64_t crowd_of_threads(const char *unused)
{
    (void)unused;
    pthread_t threads[CROWD];
    if (pthread_barrier_init(&crowd_gate, NULL, CROWD) != 0)
        abort();
    for (size_t i = 0; i < CROWD; i++) {
        if (pthread_create(&threads[i], NULL, one_of_a_crowd, NULL) != 0)
            abort();
    }
    for (size_t i = 0; i < CROWD; i++)
        (void)pthread_join(threads[i], NULL);
    (void)fprintf(stderr, "lost %" PRIu64 "\n", crowd_lost);
    return CROWD - crowd_lost;
}

static uint64_t vfork_and_exec(const char *program)
{
    count(3);
    if (program == NULL)
        abort();
    if (vfork() == 0) { // NOLINT(clang-analyzer-security.insecureAPI.vfork): programs do it
        (void)execl(program, program, "nothing", (char *)NULL);
        _exit(127);
    }
    int status;
    if (wait(&status) < 0 || status != 0)
        abort();
    return 3 + 1; /* the program's constructor, in its own segment */
}

static uint64_t daemon_of_its_own(const char *unused)
{
    (void)unused;
    int ends[2];
    if (pipe(ends) < 0)
        abort();
    if (fork() == 0) {
        count(1);
        if (daemon(1, 1) == 0)
            count(10);
        (void)write(ends[1], "x", 1);
        _exit(0);
    }
    char byte;
    (void)read(ends[0], &byte, 1);
    (void)wait(NULL);
    return 11;
}

static uint64_t all_descriptors_closed(const char *unused)
{
    (void)unused;
    count(1);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    count(1);
    MetricProxyValue *late = metric_proxy_counter_new(metric_proxy_init(), "late_total", "declared afterwards");
    (void)metric_proxy_counter_add_u64(late, 4);
    return 2;
}

static volatile sig_atomic_t handled;
static void on_alarm(int number)
{
    (void)number;
    int kept_errno = errno;
    errno = 77;
    count(1);
    if (errno != 77)
        abort();
    errno = kept_errno;
    handled++;
}

/* A handler counts in the middle of the same thread's counting. */
static uint64_t signal_handler(const char *unused)
{
    (void)unused;
    const struct sigaction action = {.sa_handler = on_alarm};
    const struct itimerval often = {.it_interval = {.tv_usec = 100}, .it_value = {.tv_usec = 100}};
    if (sigaction(SIGALRM, &action, NULL) < 0 || setitimer(ITIMER_REAL, &often, NULL) < 0)
        abort();
    for (int i = 0; i < TICKS; i++)
        count(1);
    const struct itimerval never = {0};
    (void)setitimer(ITIMER_REAL, &never, NULL);
    return TICKS + (uint64_t)handled;
}

static void *exit_from_here(void *context)
{
    (void)context;
    count(6);
    tell(6);
    exit(0);
}

static uint64_t exit_from_a_thread(const char *unused)
{
    (void)unused;
    pthread_t thread;
    if (pthread_create(&thread, NULL, exit_from_here, NULL) != 0)
        abort();
    for (;;)
        pause();
}

static uint64_t killed(const char *unused)
{
    (void)unused;
    count(8);
    tell(8);
    (void)raise(SIGKILL);
    return 0;
}

static uint64_t many_metrics(const char *unused)
{
    (void)unused;
    MetricProxyClient *client = metric_proxy_init();
    uint64_t refused = 0;
    for (int i = 0; i < METRICS; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "many_total{i=\"%d\"}", i);
        MetricProxyValue *one = metric_proxy_counter_new(client, name, "one of many");
        refused += one == NULL;
        (void)metric_proxy_counter_add_u64(one, 1); /* NULL is fine */
    }
    count(2);
    (void)fprintf(stderr, "refused %" PRIu64 "\n", refused);
    return 2;
}

/* The library is closed while it is in use elsewhere; it stays, and counts. */
static uint64_t open_and_close(const char *library)
{
    for (int i = 0; i < 100; i++) {
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (handle == NULL)
            abort();
        count(1);
        (void)dlclose(handle);
    }
    return 100;
}

static uint64_t nothing(const char *unused)
{
    (void)unused;
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        uint64_t (*run)(const char *argument);
    } cases[] = {
        {"threads", threads_that_come_and_go},
        {"forks", forks},
        {"children", children_one_by_one},
        {"crowd", crowd_of_threads},
        {"vfork", vfork_and_exec},
        {"daemon", daemon_of_its_own},
        {"closed", all_descriptors_closed},
        {"signal", signal_handler},
        {"exit", exit_from_a_thread},
        {"killed", killed},
        {"metrics", many_metrics},
        {"dlopen", open_and_close},
        {"nothing", nothing},
    };
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            tell(cases[i].run(argc > 2 ? argv[2] : NULL));
            return 0;
        }
    }
    return 2;
}
