/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>

#include <cmocka.h>

#include "util/cleanup.h"

enum { SAMPLES = 200 };

struct counts {
    struct crew *crew;
    struct sampler *sampler;
    int timer_fd;
    bool stops_itself; /* on_sampled() ends the crew; else crew_end() with a last sample */
    atomic_uint sampled;
    atomic_uint ticks;
    unsigned started;
    unsigned ended;
    atomic_uint wrong; /* what was not as it should be, seen where no assert may be */
};

static void expect(struct counts *counts, bool is_right)
{
    if (!is_right)
        atomic_fetch_add(&counts->wrong, 1);
}

/* All collectors have run in this sample, whoever ran them. */
static bool on_sampled(void *context, int64_t now_boot_ns)
{
    struct counts *counts = context;
    unsigned sample = atomic_fetch_add(&counts->sampled, 1) + 1;
    expect(counts, sample > 1 || now_boot_ns == 17);
    for (size_t i = 0; i < sampler_count(counts->sampler); i++)
        expect(counts, sampler_stats(counts->sampler, i).runs == sample);
    expect(counts, crew_straggler(counts->crew) == NULL);
    return !counts->stops_itself || sample < SAMPLES;
}

/* Every second tick is taken. */
static bool on_tick(void *context, int64_t now_boot_ns, int64_t busy_until_boot_ns)
{
    struct counts *counts = context;
    unsigned tick = atomic_fetch_add(&counts->ticks, 1) + 1;
    expect(counts, now_boot_ns >= busy_until_boot_ns);
    if (!counts->stops_itself && tick == 2 * SAMPLES)
        crew_end(counts->crew, true);
    return tick % 2 == 0;
}

static void on_started(void *context)
{
    struct counts *counts = context;
    expect(counts, atomic_load(&counts->sampled) >= 1 && counts->ended == 0);
    counts->started++;
}

static void on_ended(void *context)
{
    struct counts *counts = context;
    counts->ended++;
}

/* Runs a crew to its end; returns how many samples it took. */
static unsigned run_samples(unsigned threads, const char *collectors_wanted, const char *proc_path, bool stops_itself)
{
    const struct sample_config config = {
        .proc_path = proc_path, .sys_path = "/nope", .mount_prefix = "", .frequency_per_tick = 1};
    CLEANUP(buf_cleanup) struct buf notes;
    buf_init(&notes, 65536);
    CLEANUP(sampler_cleanup) struct sampler *sampler = NULL;
    assert_int_equal(sampler_open(&config, collectors_wanted, &notes, &sampler, NULL), 0);
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    CLEANUP(fd_cleanup) int timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    const struct itimerspec when = {.it_value = {.tv_nsec = 100000}, .it_interval = {.tv_nsec = 100000}};
    assert_int_equal(timerfd_settime(timer_fd, 0, &when, NULL), 0);
    struct counts counts = {.sampler = sampler, .timer_fd = timer_fd, .stops_itself = stops_itself};
    const struct crew_request request = {.loop = &loop,
                                         .sampler = sampler,
                                         .threads = threads,
                                         .timer_fd = timer_fd,
                                         .on_tick = on_tick,
                                         .on_sampled = on_sampled,
                                         .on_started = on_started,
                                         .on_ended = on_ended,
                                         .context = &counts};
    assert_int_equal(crew_new(&request, &counts.crew, NULL), 0);
    assert_int_equal(crew_start(counts.crew, 17, NULL), 0);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(counts.started, 1);
    assert_int_equal(counts.ended, 1);
    assert_int_equal(atomic_load(&counts.wrong), 0);
    for (size_t i = 0; i < sampler_count(sampler); i++)
        assert_null(crew_failure(counts.crew, i));
    crew_free(counts.crew);
    assert_int_equal(uv_loop_close(&loop), 0);
    return atomic_load(&counts.sampled);
}

/* libuv makes its pool once a process: the first test decides how many threads there are for all. */
static void many_threads_run_each_collector_once_a_sample(void **state)
{
    (void)state;
    assert_int_equal(run_samples(8, "cpu,memory,load,vm,disk,network", "/proc", true), SAMPLES);
}

static void one_thread_does_all_of_it(void **state)
{
    (void)state;
    assert_int_equal(run_samples(1, "cpu,memory,load", "/proc", true), SAMPLES);
}

static void without_a_collector_samples_are_taken_all_the_same(void **state)
{
    (void)state;
    assert_int_equal(run_samples(4, "cpu", "/nope", true), SAMPLES);
}

/* The first one, those of the ticks, and the last. */
static void end_that_is_asked_for_comes_after_a_last_sample(void **state)
{
    (void)state;
    assert_int_equal(run_samples(3, "cpu,memory,load", "/proc", false), 1 + SAMPLES + 1);
}

static void nothing_to_free_is_fine(void **state)
{
    (void)state;
    crew_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_run_each_collector_once_a_sample),
        cmocka_unit_test(one_thread_does_all_of_it),
        cmocka_unit_test(without_a_collector_samples_are_taken_all_the_same),
        cmocka_unit_test(end_that_is_asked_for_comes_after_a_last_sample),
        cmocka_unit_test(nothing_to_free_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
