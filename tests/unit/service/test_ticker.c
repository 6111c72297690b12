/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/ticker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/random.h"

#define MS CLOCK_NS_PER_MS

/* A ticker that was begun at 0 of the boot clock. */
static struct ticker ticker_new(int64_t interval_ns)
{
    struct clock_stamper stamper;
    clock_stamper_init(&stamper, 1000 * CLOCK_NS_PER_SECOND, 0);
    struct ticker ticker;
    ticker_init(&ticker, interval_ns, "n1", &stamper, 0);
    return ticker;
}

static void first_tick_is_between_half_and_one_and_a_half_intervals_away(void **state)
{
    (void)state;
    struct clock_stamper stamper;
    for (int64_t start_ns = 0; start_ns < 300 * MS; start_ns += 7 * MS) {
        clock_stamper_init(&stamper, 5000 * CLOCK_NS_PER_SECOND + start_ns, start_ns);
        struct ticker ticker;
        ticker_init(&ticker, 100 * MS, "n1", &stamper, start_ns);
        assert_in_range(ticker.first_boot_ns - start_ns, 50 * MS, 150 * MS);
    }
}

static void grid_of_a_host_is_the_same_whenever_it_starts(void **state)
{
    (void)state;
    int64_t phase_ns = -1;
    for (int64_t start_ns = 0; start_ns < 300 * MS; start_ns += 7 * MS) {
        struct clock_stamper stamper;
        clock_stamper_init(&stamper, 5000 * CLOCK_NS_PER_SECOND + start_ns, 17 * MS);
        struct ticker ticker;
        ticker_init(&ticker, 100 * MS, "n1", &stamper, 17 * MS);
        int64_t found_ns = clock_stamper_at(&stamper, ticker.first_boot_ns) % (100 * MS);
        assert_true(phase_ns == -1 || found_ns == phase_ns);
        phase_ns = found_ns;
    }
}

static void hosts_have_phases_all_over_the_interval(void **state)
{
    (void)state;
    enum { HOSTS = 1000, PARTS = 10 };
    unsigned in_part[PARTS] = {0};
    struct clock_stamper stamper;
    clock_stamper_init(&stamper, 0, 0);
    for (int i = 0; i < HOSTS; i++) {
        char host[16];
        (void)snprintf(host, sizeof host, "n%d", i);
        struct ticker ticker;
        ticker_init(&ticker, 1000 * MS, host, &stamper, 0);
        in_part[ticker.first_boot_ns % (1000 * MS) / (100 * MS)]++;
    }
    for (size_t part = 0; part < PARTS; part++)
        assert_in_range(in_part[part], HOSTS / PARTS / 2, HOSTS / PARTS * 2);
}

static void ticks_in_time_are_taken(void **state)
{
    (void)state;
    struct ticker ticker = ticker_new(100 * MS);
    for (int64_t i = 0; i < 50; i++)
        assert_int_equal(ticker_expire(&ticker, ticker.first_boot_ns + i * 100 * MS + 3, 0), TICKER_TAKE);
    assert_int_equal(ticker.taken, 50);
    assert_int_equal(ticker.skipped, 0);
    assert_int_equal(ticker.overruns, 0);
}

static void constant_lateness_skips_nothing(void **state)
{
    (void)state;
    struct ticker ticker = ticker_new(10 * MS);
    for (int64_t i = 0; i < 50; i++)
        assert_int_equal(ticker_expire(&ticker, ticker.first_boot_ns + (i * 10 + 8) * MS, 0), TICKER_TAKE);
    assert_int_equal(ticker.skipped, 0);
}

static void very_late_tick_is_not_followed_by_the_next_at_once(void **state)
{
    (void)state;
    struct ticker ticker = ticker_new(100 * MS);
    int64_t first_ns = ticker.first_boot_ns;
    assert_int_equal(ticker_expire(&ticker, first_ns + 90 * MS, 0), TICKER_TAKE);
    assert_int_equal(ticker_expire(&ticker, first_ns + 100 * MS, 0), TICKER_SKIP);
    assert_int_equal(ticker_expire(&ticker, first_ns + 200 * MS, 0), TICKER_TAKE);
    assert_int_equal(ticker.taken, 2);
    assert_int_equal(ticker.skipped, 1);
}

static void machine_that_slept_has_one_gap(void **state)
{
    (void)state;
    struct ticker ticker = ticker_new(100 * MS);
    int64_t first_ns = ticker.first_boot_ns;
    assert_int_equal(ticker_expire(&ticker, first_ns, 0), TICKER_TAKE);
    assert_int_equal(ticker_expire(&ticker, first_ns + 3600 * CLOCK_NS_PER_SECOND, 0), TICKER_TAKE);
    assert_int_equal(ticker_expire(&ticker, first_ns + 3600 * CLOCK_NS_PER_SECOND + 100 * MS, 0), TICKER_TAKE);
    assert_int_equal(ticker.skipped, 35999);
}

static void busy_ticks_are_overruns_and_are_not_made_up_for(void **state)
{
    (void)state;
    struct ticker ticker = ticker_new(100 * MS);
    int64_t first_ns = ticker.first_boot_ns;
    assert_int_equal(ticker_expire(&ticker, first_ns, 0), TICKER_TAKE);
    assert_int_equal(ticker_expire(&ticker, first_ns + 201 * MS, first_ns + 200 * MS), TICKER_SKIP);
    assert_int_equal(ticker_expire(&ticker, first_ns + 300 * MS, 0), TICKER_TAKE);
    assert_int_equal(ticker.taken, 2);
    assert_int_equal(ticker.overruns, 2);
    assert_int_equal(ticker.skipped, 0);
}

static void same_instant_counts_once(void **state)
{
    (void)state;
    struct ticker ticker = ticker_new(100 * MS);
    assert_int_equal(ticker_expire(&ticker, ticker.first_boot_ns - 1, 0), TICKER_SKIP);
    assert_int_equal(ticker_expire(&ticker, ticker.first_boot_ns, 0), TICKER_TAKE);
    assert_int_equal(ticker_expire(&ticker, ticker.first_boot_ns + 1, 0), TICKER_SKIP);
    assert_int_equal(ticker.taken + ticker.skipped + ticker.overruns, 1);
}

/* Whatever comes when: each instant of the grid is taken, skipped or an overrun, and never two samples are close. */
static void every_tick_is_accounted_for(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (int run = 0; run < 200; run++) {
        struct ticker ticker = ticker_new(100 * MS);
        int64_t now_ns = ticker.first_boot_ns;
        int64_t taken_ns = 0;
        for (int i = 0; i < 200; i++) {
            if (ticker_expire(&ticker, now_ns, random_below(&random, 4) == 0) == TICKER_TAKE) {
                assert_true(now_ns - taken_ns >= 50 * MS);
                taken_ns = now_ns;
            }
            assert_int_equal(ticker.taken + ticker.skipped + ticker.overruns,
                             (now_ns - ticker.first_boot_ns) / (100 * MS) + 1);
            now_ns += (int64_t)random_below(&random, 300 * MS);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_tick_is_between_half_and_one_and_a_half_intervals_away),
        cmocka_unit_test(grid_of_a_host_is_the_same_whenever_it_starts),
        cmocka_unit_test(hosts_have_phases_all_over_the_interval),
        cmocka_unit_test(ticks_in_time_are_taken),
        cmocka_unit_test(constant_lateness_skips_nothing),
        cmocka_unit_test(very_late_tick_is_not_followed_by_the_next_at_once),
        cmocka_unit_test(machine_that_slept_has_one_gap),
        cmocka_unit_test(busy_ticks_are_overruns_and_are_not_made_up_for),
        cmocka_unit_test(same_instant_counts_once),
        cmocka_unit_test(every_tick_is_accounted_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
