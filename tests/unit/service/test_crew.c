/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { SAMPLES = 200 };

struct counts {
    struct crew *crew;
    struct sampler *sampler;
    uv_loop_t *loop;
    atomic_uint sampled;
    unsigned done;
    unsigned wrong; /* what was not as it should be, seen where no assert may be */
};

/* All collectors have run in this sample, whoever ran them. */
static void on_sampled(void *context, int64_t now_boot_ns)
{
    struct counts *counts = context;
    unsigned sample = atomic_fetch_add(&counts->sampled, 1) + 1;
    for (size_t i = 0; i < sampler_count(counts->sampler); i++) {
        if (sampler_stats(counts->sampler, i).runs != sample || now_boot_ns != (int64_t)sample)
            counts->wrong++;
    }
}

static void on_done(void *context)
{
    struct counts *counts = context;
    counts->done++;
    if (crew_is_busy(counts->crew) || crew_straggler(counts->crew) != NULL)
        counts->wrong++;
    if (counts->done < SAMPLES && crew_start(counts->crew, (int64_t)counts->done + 1, NULL) != 0)
        counts->wrong++;
}

static void run_samples(unsigned threads, const char *collectors_wanted, const char *proc_path)
{
    const struct sample_config config = {
        .proc_path = proc_path, .sys_path = "/nope", .mount_prefix = "", .frequency_per_tick = 1};
    CLEANUP(buf_cleanup) struct buf notes;
    buf_init(&notes, 65536);
    CLEANUP(sampler_cleanup) struct sampler *sampler = NULL;
    assert_int_equal(sampler_open(&config, collectors_wanted, &notes, &sampler, NULL), 0);
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct counts counts = {.sampler = sampler, .loop = &loop};
    const struct crew_request request = {.loop = &loop,
                                         .sampler = sampler,
                                         .threads = threads,
                                         .on_sampled = on_sampled,
                                         .on_done = on_done,
                                         .context = &counts};
    assert_int_equal(crew_new(&request, &counts.crew, NULL), 0);
    assert_false(crew_is_busy(counts.crew));
    assert_int_equal(crew_start(counts.crew, 1, NULL), 0);
    assert_true(crew_is_busy(counts.crew));
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(counts.done, SAMPLES);
    assert_int_equal(atomic_load(&counts.sampled), SAMPLES);
    assert_int_equal(counts.wrong, 0);
    for (size_t i = 0; i < sampler_count(sampler); i++)
        assert_null(crew_failure(counts.crew, i));
    crew_free(counts.crew);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* libuv makes its pool once a process: the first test decides how many threads there are for all. */
static void many_threads_run_each_collector_once_a_sample(void **state)
{
    (void)state;
    run_samples(8, "cpu,memory,load,vm,disk,network", "/proc");
}

static void one_work_does_all_of_it(void **state)
{
    (void)state;
    run_samples(1, "cpu,memory,load", "/proc");
}

static void without_a_collector_samples_are_taken_all_the_same(void **state)
{
    (void)state;
    run_samples(4, "cpu", "/nope");
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
        cmocka_unit_test(one_work_does_all_of_it),
        cmocka_unit_test(without_a_collector_samples_are_taken_all_the_same),
        cmocka_unit_test(nothing_to_free_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
