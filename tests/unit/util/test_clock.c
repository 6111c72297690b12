/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "util/cleanup.h"

#define WALL_NS INT64_C(1796098782398492001)
#define BOOT_NS INT64_C(5000000000123)
#define S       CLOCK_NS_PER_SECOND

static void clocks_do_not_run_backwards(void **state)
{
    (void)state;
    static int64_t (*const clocks[])(void) = {clock_mono_ns, clock_boot_ns, clock_thread_cpu_ns, clock_process_cpu_ns};
    for (size_t i = 0; i < ARRAY_LENGTH(clocks); i++) {
        int64_t before_ns = clocks[i]();
        assert_true(before_ns > 0);
        for (int round = 0; round < 1000; round++) {
            int64_t after_ns = clocks[i]();
            assert_true(after_ns >= before_ns);
            before_ns = after_ns;
        }
    }
}

static void clocks_are_the_kernels(void **state)
{
    (void)state;
    static const struct {
        int64_t (*read_ns)(void);
        clockid_t id;
    } clocks[] = {{clock_mono_ns, CLOCK_MONOTONIC},
                  {clock_boot_ns, CLOCK_BOOTTIME},
                  {clock_wall_ns, CLOCK_REALTIME},
                  {clock_thread_cpu_ns, CLOCK_THREAD_CPUTIME_ID},
                  {clock_process_cpu_ns, CLOCK_PROCESS_CPUTIME_ID}};
    for (size_t i = 0; i < ARRAY_LENGTH(clocks); i++) {
        struct timespec before;
        struct timespec after;
        assert_int_equal(clock_gettime(clocks[i].id, &before), 0);
        int64_t now_ns = clocks[i].read_ns();
        assert_int_equal(clock_gettime(clocks[i].id, &after), 0);
        assert_true(now_ns >= (int64_t)before.tv_sec * S + before.tv_nsec);
        assert_true(now_ns <= (int64_t)after.tv_sec * S + after.tv_nsec);
    }
}

static void stamps_follow_the_boot_clock_alone(void **state)
{
    (void)state;
    struct clock_stamper stamper;
    int64_t offset_ns = 0;
    clock_stamper_init(&stamper, WALL_NS, BOOT_NS);
    assert_int_equal(clock_stamper_at(&stamper, BOOT_NS), WALL_NS);
    assert_int_equal(clock_stamper_at(&stamper, BOOT_NS + 7), WALL_NS + 7);
    assert_true(clock_stamper_step(&stamper, WALL_NS - 3600 * S, BOOT_NS + 10, &offset_ns));
    assert_int_equal(clock_stamper_at(&stamper, BOOT_NS + 10), WALL_NS + 10);
}

/* One look at both clocks: how far each has gone since the start, and what is to be reported. */
struct look {
    int64_t wall_ns, boot_ns;
    bool is_step;
    int64_t offset_ns;
};

static void steps_are_reported_once_each(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct look looks[6];
    } cases[] = {
        {"both clocks go on", {{1 * S, 1 * S, false, 0}, {100 * S, 100 * S, false, 0}}},
        {"slewed by less than a second", {{2 * S, 1 * S, false, 0}, {1 * S, 2 * S, false, 0}}},
        {"just more than a second ahead", {{2 * S + 1, 1 * S, true, 1 * S + 1}, {3 * S + 1, 2 * S, false, 0}}},
        {"just more than a second back", {{-1, 1 * S, true, -1 * S - 1}, {1 * S - 1, 2 * S, false, 0}}},
        {"an hour back", {{1 * S, 1 * S, false, 0}, {-3598 * S, 2 * S, true, -3600 * S}, {-3597 * S, 3 * S, false, 0}}},
        {"back, and forward again",
         {{-3599 * S, 1 * S, true, -3600 * S}, {2 * S, 2 * S, true, 0}, {3 * S, 3 * S, false, 0}}},
        {"two steps the same way",
         {{11 * S, 1 * S, true, 10 * S}, {22 * S, 2 * S, true, 20 * S}, {23 * S, 3 * S, false, 0}}},
        {"half a second twice is one step",
         {{1 * S + S / 2, 1 * S, false, 0}, {3 * S, 2 * S, false, 0}, {4 * S + 1, 3 * S, true, 1 * S + 1}}},
        {"a suspended machine is no step", {{7200 * S, 7200 * S, false, 0}}},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct clock_stamper stamper;
        clock_stamper_init(&stamper, WALL_NS, BOOT_NS);
        for (size_t n = 0; n < ARRAY_LENGTH(cases[i].looks); n++) {
            const struct look *look = &cases[i].looks[n];
            if (look->boot_ns == 0)
                break;
            int64_t offset_ns = 99;
            bool is_step = clock_stamper_step(&stamper, WALL_NS + look->wall_ns, BOOT_NS + look->boot_ns, &offset_ns);
            if (is_step != look->is_step || offset_ns != (is_step ? look->offset_ns : 99))
                fail_msg("%s: look %zu: %d, %lld", cases[i].name, n, is_step, (long long)offset_ns);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_do_not_run_backwards),
        cmocka_unit_test(clocks_are_the_kernels),
        cmocka_unit_test(stamps_follow_the_boot_clock_alone),
        cmocka_unit_test(steps_are_reported_once_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
