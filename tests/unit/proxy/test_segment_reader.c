/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client library counts in processes of its own, and the reader reads what they left: the two ends of a segment
 * are tested against each other. Each test has a /dev/shm of its own.
 */
#include "proxy/segment_reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "metric_proxy_client.h"
#include "support/child.h"

enum { PATH_BYTES = 512, SECONDS_MAX = 60 };

static bool is_place_ready(const char *shm_size)
{
    return child_enter_mounts() && child_mount_tmpfs("/dev/shm", shm_size);
}

/* The path of the only segment; false when there isn't exactly one. */
static bool find_segment(char path[PATH_BYTES])
{
    char directory[64];
    (void)snprintf(directory, sizeof directory, "/dev/shm/cicada-%u", (unsigned)geteuid());
    CLEANUP(dir_cleanup) DIR *dir = opendir(directory);
    int found = 0;
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (strstr(entry->d_name, ".segment") == NULL)
            continue;
        (void)snprintf(path, PATH_BYTES, "%s/%s", directory, entry->d_name);
        found++;
    }
    return found == 1;
}

static struct segment_reader *read_segment(void)
{
    char path[PATH_BYTES];
    struct segment_reader *reader = NULL;
    struct error err = {0};
    if (!find_segment(path))
        return NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (segment_reader_open(fd, (uint32_t)geteuid(), &reader, &err) != 0 || segment_reader_read(reader, &err) != 0)
        (void)fprintf(stderr, "reading the segment: %s\n", err.text);
    return reader;
}

static const struct segment_reader_metric *metric_of(const struct segment_reader *reader, const char *name)
{
    for (size_t i = 0; i < segment_reader_metrics_count(reader); i++) {
        const struct segment_reader_metric *metric = segment_reader_metric_at(reader, i);
        if (metric->name_bytes == strlen(name) && memcmp(metric->name, name, metric->name_bytes) == 0)
            return metric;
    }
    return NULL;
}

static double total_of(const struct segment_reader *reader, const char *name)
{
    const struct segment_reader_metric *metric = metric_of(reader, name);
    return metric != NULL ? metric->total : -1;
}

/* Runs `work` in a process that ends as it likes; returns its wait status. */
static int run(void (*work)(void))
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)alarm(SECONDS_MAX);
        work();
        _exit(0);
    }
    int status = -1;
    (void)waitpid(pid, &status, 0);
    return status;
}

static void work_all_kinds(void)
{
    static const double bounds[] = {1, 10};
    MetricProxyClient *client = metric_proxy_init();
    MetricProxyValue *counter = metric_proxy_counter_new(client, "steps_total", "steps");
    MetricProxyValue *gauge = metric_proxy_gauge_new(client, "heat", "degrees");
    MetricProxyValue *histogram = metric_proxy_histogram_new(client, "size", "sizes", bounds, 2);
    const MetricProxyLabel labels[] = {{"b", "x\"y\n"}, {"a", "1"}};
    MetricProxyValue *labelled = metric_proxy_counter_new_labels(client, "io", "", labels, 2);
    (void)metric_proxy_counter_inc(counter, 0.5);
    (void)metric_proxy_counter_add_u64(counter, 7);
    (void)metric_proxy_counter_inc(counter, -3); /* none of these three counts */
    (void)metric_proxy_counter_inc(counter, 0.0 / 0.0);
    (void)metric_proxy_counter_inc(counter, 1e308 * 10);
    (void)metric_proxy_gauge_set(gauge, -4);
    (void)metric_proxy_gauge_set(gauge, 21.5);
    (void)metric_proxy_histogram_observe(histogram, 1);
    (void)metric_proxy_histogram_observe(histogram, 2);
    (void)metric_proxy_histogram_observe(histogram, 1000);
    (void)metric_proxy_counter_add_u64(labelled, 1);
    (void)metric_proxy_release(client);
}

static int check_all_kinds(void *context)
{
    (void)context;
    if (!is_place_ready("64m"))
        return CHILD_SKIP;
    (void)setenv("PROXY_JOB_ID", "4\"2.7", 1);
    CHILD_CHECK(run(work_all_kinds) == 0);
    CLEANUP(segment_reader_cleanup) struct segment_reader *reader = read_segment();
    CHILD_CHECK(reader != NULL);
    CHILD_CHECK(total_of(reader, "has_started") == 1 && total_of(reader, "has_finished") == 1);
    CHILD_CHECK(total_of(reader, "steps_total") == 7.5);
    CHILD_CHECK(total_of(reader, "io{a=\"1\",b=\"x\\\"y\\n\"}") == 1);
    const struct segment_reader_metric *gauge = metric_of(reader, "heat");
    CHILD_CHECK(gauge != NULL && gauge->gauge_hits == 1 && gauge->gauge_total == 21.5);
    CHILD_CHECK(gauge->doc_bytes == 7 && memcmp(gauge->doc, "degrees", 7) == 0);
    const struct segment_reader_metric *histogram = metric_of(reader, "size");
    CHILD_CHECK(histogram != NULL && histogram->bounds_count == 2 && histogram->bounds[1] == 10);
    CHILD_CHECK(histogram->buckets[0] == 1 && histogram->buckets[1] == 1 && histogram->buckets[2] == 1);
    CHILD_CHECK(histogram->total == 1003);
    size_t job_bytes = 0;
    const char *job = segment_reader_job(reader, &job_bytes);
    CHILD_CHECK(job != NULL && strstr(job, "{\"jobid\":\"4\\\"2\",") == job);
    CHILD_CHECK(segment_reader_processes_count(reader) == 1 && segment_reader_bad_records(reader) == 0);

    segment_reader_process_at(reader, 0)->is_ended = true; /* its gauge leaves with it, its counters stay */
    CHILD_CHECK(segment_reader_read(reader, NULL) == 0);
    CHILD_CHECK(gauge->gauge_hits == 0 && total_of(reader, "steps_total") == 7.5);
    return 0;
}

static void every_kind_of_metric_arrives(void **state)
{
    (void)state;
    child_run(check_all_kinds, NULL);
}

enum { THREADS = 8, ADDS = 100000, SHORT_THREADS = 20000 };

static void *count_in_thread(void *counter)
{
    for (int i = 0; i < ADDS; i++)
        (void)metric_proxy_counter_inc(counter, 1);
    return NULL;
}

static void *count_once(void *counter)
{
    (void)metric_proxy_counter_add_u64(counter, 1);
    return NULL;
}

static void work_threads(void)
{
    MetricProxyValue *counter = metric_proxy_counter_new(metric_proxy_init(), "adds", NULL);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        (void)pthread_create(&threads[i], NULL, count_in_thread, counter);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    MetricProxyValue *rounds = metric_proxy_counter_new(metric_proxy_init(), "rounds", NULL);
    for (int i = 0; i < SHORT_THREADS; i++) {
        pthread_t thread;
        (void)pthread_create(&thread, NULL, count_once, rounds);
        (void)pthread_join(thread, NULL);
    }
}

static int check_threads(void *context)
{
    (void)context;
    if (!is_place_ready("64m"))
        return CHILD_SKIP;
    CHILD_CHECK(run(work_threads) == 0);
    CLEANUP(segment_reader_cleanup) struct segment_reader *reader = read_segment();
    CHILD_CHECK(reader != NULL);
    CHILD_CHECK(total_of(reader, "adds") == (double)THREADS * ADDS);
    CHILD_CHECK(total_of(reader, "rounds") == SHORT_THREADS);
    char path[PATH_BYTES];
    struct stat info;
    CHILD_CHECK(find_segment(path) && stat(path, &info) == 0);
    CHILD_CHECK(info.st_size <= 2 * SEGMENT_REGION_FIRST_BYTES); /* threads that ended left their shards to others */
    return 0;
}

static void threads_that_come_and_go_count_exactly_and_leak_nothing(void **state)
{
    (void)state;
    child_run(check_threads, NULL);
}

static MetricProxyValue *forked_counter;

static void *fork_in_thread(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20; i++) {
        (void)metric_proxy_counter_inc(forked_counter, 1);
        pid_t pid = fork();
        if (pid == 0) {
            (void)metric_proxy_counter_inc(forked_counter, 1);
            pid_t grandchild = fork();
            (void)metric_proxy_counter_add_u64(forked_counter, 1);
            if (grandchild > 0)
                (void)waitpid(grandchild, NULL, 0);
            _exit(0);
        }
        (void)waitpid(pid, NULL, 0);
    }
    return NULL;
}

static void work_forks(void)
{
    MetricProxyClient *client = metric_proxy_init();
    forked_counter = metric_proxy_counter_new(client, "forked", NULL);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        (void)pthread_create(&threads[i], NULL, fork_in_thread, NULL);
    for (int i = 0; i < 4; i++)
        (void)pthread_join(threads[i], NULL);
    MetricProxyValue *gauge = metric_proxy_gauge_new(client, "of_each", NULL);
    (void)metric_proxy_gauge_set(gauge, 1);
    if (fork() == 0) {
        (void)metric_proxy_gauge_set(gauge, 5);
        _exit(0);
    }
    (void)wait(NULL);
}

static int check_forks(void *context)
{
    (void)context;
    if (!is_place_ready("64m"))
        return CHILD_SKIP;
    CHILD_CHECK(run(work_forks) == 0);
    CLEANUP(segment_reader_cleanup) struct segment_reader *reader = read_segment();
    CHILD_CHECK(reader != NULL);
    CHILD_CHECK(total_of(reader, "forked") == 4 * 20 * 4); /* parent, child, child and grandchild once more */
    CHILD_CHECK(segment_reader_processes_count(reader) == 1 + 4 * 20 * 2 + 1);
    const struct segment_reader_metric *gauge = metric_of(reader, "of_each");
    CHILD_CHECK(gauge->gauge_hits == 2 && gauge->gauge_min == 1 && gauge->gauge_max == 5);
    return 0;
}

static void forked_processes_count_for_themselves_and_nothing_twice(void **state)
{
    (void)state;
    child_run(check_forks, NULL);
}

static MetricProxyValue *handler_counter;
static volatile sig_atomic_t handler_calls;

static void count_in_handler(int number)
{
    (void)number;
    handler_calls++;
    (void)metric_proxy_counter_add_u64(handler_counter, 1); /* NOLINT(bugprone-signal-handler): what is tested */
}

/* A timer interrupts a tight loop over the same counter. */
static void work_signals(void)
{
    MetricProxyClient *client = metric_proxy_init();
    handler_counter = metric_proxy_counter_new(client, "interrupted", NULL);
    MetricProxyValue *calls = metric_proxy_counter_new(client, "calls", NULL);
    (void)signal(SIGALRM, count_in_handler);
    const struct itimerval often = {.it_interval = {.tv_usec = 50}, .it_value = {.tv_usec = 50}};
    const struct itimerval never = {0};
    (void)setitimer(ITIMER_REAL, &often, NULL);
    while (handler_calls < 5000) {
        for (int i = 0; i < 1000; i++)
            (void)metric_proxy_counter_add_u64(handler_counter, 1);
        (void)metric_proxy_counter_add_u64(calls, 1000);
    }
    (void)setitimer(ITIMER_REAL, &never, NULL);
    (void)metric_proxy_counter_add_u64(calls, (uint64_t)handler_calls);
}

static int check_signals(void *context)
{
    (void)context;
    if (!is_place_ready("64m"))
        return CHILD_SKIP;
    CHILD_CHECK(run(work_signals) == 0);
    CLEANUP(segment_reader_cleanup) struct segment_reader *reader = read_segment();
    CHILD_CHECK(reader != NULL);
    CHILD_CHECK(total_of(reader, "interrupted") == total_of(reader, "calls"));
    return 0;
}

static void a_handler_that_interrupts_an_addition_loses_nothing(void **state)
{
    (void)state;
    child_run(check_signals, NULL);
}

static void work_and_die(void)
{
    MetricProxyValue *counter = metric_proxy_counter_new(metric_proxy_init(), "before_death", NULL);
    (void)metric_proxy_counter_add_u64(counter, 123456);
    (void)raise(SIGKILL);
}

static int check_death(void *context)
{
    (void)context;
    if (!is_place_ready("64m"))
        return CHILD_SKIP;
    CHILD_CHECK(WIFSIGNALED(run(work_and_die)));
    CLEANUP(segment_reader_cleanup) struct segment_reader *reader = read_segment();
    CHILD_CHECK(reader != NULL && total_of(reader, "before_death") == 123456);
    CHILD_CHECK(total_of(reader, "has_finished") == 0);
    return 0;
}

static void what_was_counted_outlives_sigkill(void **state)
{
    (void)state;
    child_run(check_death, NULL);
}

enum { MANY = 20000 };

static void work_many(void)
{
    MetricProxyClient *client = metric_proxy_init();
    for (int i = 0; i < MANY; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "metric_%d", i);
        (void)metric_proxy_counter_add_u64(metric_proxy_counter_new(client, name, "one of many"), (uint64_t)i);
    }
}

static int check_many(void *context)
{
    (void)context;
    if (!is_place_ready("64m"))
        return CHILD_SKIP;
    CHILD_CHECK(run(work_many) == 0);
    CLEANUP(segment_reader_cleanup) struct segment_reader *reader = read_segment();
    CHILD_CHECK(reader != NULL);
    CHILD_CHECK(segment_reader_metrics_count(reader) == MANY + 2);
    CHILD_CHECK(segment_reader_refused(reader) == 0 && segment_reader_bad_records(reader) == 0);
    for (size_t i = 0; i < MANY; i++) /* in the order of their declaration, after the client's own two */
        CHILD_CHECK(segment_reader_metric_at(reader, i + 2)->total == (double)i);
    return 0;
}

static void a_segment_grows_with_its_metrics(void **state)
{
    (void)state;
    child_run(check_many, NULL);
}

/* /dev/shm has room for the first regions alone: the rest is refused, what there is still counts. */
static int check_full(void *context)
{
    (void)context;
    if (!is_place_ready("160k"))
        return CHILD_SKIP;
    CHILD_CHECK(run(work_many) == 0);
    CLEANUP(segment_reader_cleanup) struct segment_reader *reader = read_segment();
    CHILD_CHECK(reader != NULL);
    size_t count = segment_reader_metrics_count(reader);
    CHILD_CHECK(count > 100 && count < MANY);
    CHILD_CHECK(segment_reader_metric_at(reader, 50)->total == 48);
    CHILD_CHECK(segment_reader_refused(reader) >= MANY + 2 - count);
    return 0;
}

static void a_full_shm_refuses_metrics_and_kills_nobody(void **state)
{
    (void)state;
    child_run(check_full, NULL);
}

/* Read again and again while the program declares and counts: nothing falls, and in the end all is there. */
static int check_live(void *context)
{
    (void)context;
    if (!is_place_ready("64m"))
        return CHILD_SKIP;
    pid_t pid = fork();
    if (pid == 0) {
        work_many();
        _exit(0);
    }
    CLEANUP(segment_reader_cleanup) struct segment_reader *reader = NULL;
    bool is_running = true;
    double before = 0;
    while (is_running) {
        is_running = waitpid(pid, NULL, WNOHANG) == 0;
        char path[PATH_BYTES];
        if (reader == NULL && find_segment(path) &&
            segment_reader_open(open(path, O_RDONLY | O_CLOEXEC), (uint32_t)geteuid(), &reader, NULL) == -EBADMSG)
            return 1;
        if (reader == NULL)
            continue;
        CHILD_CHECK(segment_reader_read(reader, NULL) == 0);
        double sum = 0;
        for (size_t i = 0; i < segment_reader_metrics_count(reader); i++)
            sum += segment_reader_metric_at(reader, i)->total;
        CHILD_CHECK(sum >= before);
        before = sum;
    }
    CHILD_CHECK(before == (double)MANY * (MANY - 1) / 2 + 1);
    return 0;
}

static void a_program_can_be_read_while_it_declares(void **state)
{
    (void)state;
    child_run(check_live, NULL);
}

static void work_in_private(void)
{
    MetricProxyClient *client = metric_proxy_init();
    MetricProxyValue *counter = metric_proxy_counter_new(client, "hidden", NULL);
    if (client == NULL || counter == NULL || metric_proxy_counter_inc(counter, 1) != 0)
        _exit(1);
}

/* A directory in our place that is somebody else's to write is not used. */
static int check_unsafe_directory(void *context)
{
    (void)context;
    if (!is_place_ready("64m"))
        return CHILD_SKIP;
    char directory[64];
    char path[PATH_BYTES];
    (void)snprintf(directory, sizeof directory, "/dev/shm/cicada-%u", (unsigned)geteuid());
    CHILD_CHECK(mkdir(directory, 0700) == 0 && chmod(directory, 0777) == 0);
    CHILD_CHECK(run(work_in_private) == 0);
    CHILD_CHECK(!find_segment(path));
    return 0;
}

static void a_directory_that_others_may_write_is_not_used(void **state)
{
    (void)state;
    child_run(check_unsafe_directory, NULL);
}

static void what_is_no_segment_is_refused(void **state)
{
    (void)state;
    struct segment_reader *reader = NULL;
    struct error err = {0};
    FILE *file = tmpfile();
    assert_non_null(file);
    char bytes[SEGMENT_HEADER_BYTES] = {0};
    assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
    assert_int_equal(fflush(file), 0);
    assert_int_equal(segment_reader_open(dup(fileno(file)), (uint32_t)geteuid(), &reader, &err), -EAGAIN);
    rewind(file);
    memset(bytes, 'x', sizeof bytes);
    assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
    assert_int_equal(fflush(file), 0);
    assert_int_equal(segment_reader_open(dup(fileno(file)), (uint32_t)geteuid(), &reader, &err), -EBADMSG);
    assert_int_equal(segment_reader_open(dup(fileno(file)), (uint32_t)geteuid() + 1, &reader, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "of user"));
    assert_int_equal(segment_reader_open(open("/dev/null", O_RDONLY), 0, &reader, &err), -EBADMSG);
    assert_null(reader);
    assert_int_equal(fclose(file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_metric_arrives),
        cmocka_unit_test(threads_that_come_and_go_count_exactly_and_leak_nothing),
        cmocka_unit_test(forked_processes_count_for_themselves_and_nothing_twice),
        cmocka_unit_test(a_handler_that_interrupts_an_addition_loses_nothing),
        cmocka_unit_test(what_was_counted_outlives_sigkill),
        cmocka_unit_test(a_segment_grows_with_its_metrics),
        cmocka_unit_test(a_full_shm_refuses_metrics_and_kills_nobody),
        cmocka_unit_test(a_program_can_be_read_while_it_declares),
        cmocka_unit_test(a_directory_that_others_may_write_is_not_used),
        cmocka_unit_test(what_is_no_segment_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
