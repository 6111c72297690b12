/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/stats.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"

static struct pfw_line parsed(const char *text)
{
    struct pfw_line line;
    struct error err = {0};
    if (pfw_line_parse(text, strlen(text), &line, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return line;
}

static void add(struct pfw_stats *stats, const char *event)
{
    struct pfw_line line = parsed(event);
    assert_int_equal(pfw_stats_add(stats, &line, NULL), 0);
}

static const struct pfw_sketch *find(const struct pfw_stats *stats, uint32_t host, const char *name, const char *key)
{
    for (uint32_t i = 0; i < stats->count; i++) {
        struct pfw_stats_row row = pfw_stats_row(stats, i);
        if (row.host == host && cursor_equals(&row.name, name) && cursor_equals(&row.key, key))
            return row.sketch;
    }
    fail_msg("no row %s %s", name, key);
    return NULL;
}

static void each_number_of_each_series_has_a_row(void **state)
{
    (void)state;
    CLEANUP(pfw_stats_cleanup) struct pfw_stats stats;
    pfw_stats_init(&stats);
    add(&stats,
        "{\"name\":\"cpu\",\"ph\":2,\"args\":{\"hhash\":\"1\",\"user\":1,\"idle\":9.5,\"text\":\"x\",\"none\":null}}");
    add(&stats, "{\"name\":\"cpu\",\"ph\":\"C\",\"args\":{\"hhash\":\"1\",\"idle\":8.5,\"user\":3}}");
    add(&stats, "{\"name\":\"cpu\",\"ph\":2,\"args\":{\"hhash\":\"2\",\"user\":100}}");
    add(&stats, "{\"name\":\"cpu-0\",\"ph\":2,\"args\":{\"hhash\":\"1\",\"user\":5}}");
    assert_int_equal(stats.count, 4);
    assert_int_equal(find(&stats, 0, "cpu", "user")->count, 2);
    assert_true(pfw_sketch_mean(find(&stats, 0, "cpu", "user")) == 2);
    assert_true(find(&stats, 0, "cpu", "idle")->max == 9.5);
    assert_true(find(&stats, 1, "cpu", "user")->max == 100);
    assert_true(find(&stats, 0, "cpu-0", "user")->min == 5);
}

static void the_last_of_equal_keys_counts_once(void **state)
{
    (void)state;
    CLEANUP(pfw_stats_cleanup) struct pfw_stats stats;
    pfw_stats_init(&stats);
    add(&stats, "{\"name\":\"cpu\",\"ph\":2,\"args\":{\"user\":1,\"user\":7}}");
    assert_int_equal(find(&stats, 0, "cpu", "user")->count, 1);
    assert_true(find(&stats, 0, "cpu", "user")->max == 7);
}

static void complete_events_give_their_duration(void **state)
{
    (void)state;
    CLEANUP(pfw_stats_cleanup) struct pfw_stats stats;
    pfw_stats_init(&stats);
    add(&stats, "{\"name\":\"read\",\"ph\":\"X\",\"ts\":5,\"dur\":12,\"args\":{\"ret\":4096}}");
    add(&stats, "{\"name\":\"read\",\"ph\":\"X\",\"ts\":5,\"args\":{}}");
    add(&stats, "{\"name\":\"PR\",\"ph\":4,\"ts\":5,\"dur\":3,\"args\":{\"n\":1}}");
    assert_int_equal(stats.count, 1);
    assert_true(find(&stats, 0, "read", "dur")->max == 12);
}

static void want_of_memory_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    const char *const events[] = {
        "{\"name\":\"HH\",\"ph\":4,\"args\":{\"hhash\":\"a\",\"name\":\"n\"}}",
        "{\"name\":\"c\\u0070u\",\"cat\":\"sys\",\"ph\":2,\"ts\":1,\"args\":{\"hhash\":\"a\",\"\\u0061\":1,\"b\":2}}",
        "{\"name\":\"read\",\"cat\":\"POSIX\",\"ph\":1,\"ts\":1,\"dur\":2,\"args\":{\"hhash\":\"a\"}}",
    };
    for (size_t n = 0;; n++) {
        struct pfw_stats it;
        pfw_stats_init(&it);
        allocation_fail_at(n);
        int rc = 0;
        for (size_t i = 0; i < sizeof events / sizeof events[0] && rc == 0; i++) {
            struct pfw_line line = parsed(events[i]);
            rc = pfw_stats_add(&it, &line, NULL);
        }
        bool has_failed = allocation_stop();
        pfw_stats_fini(&it);
        assert_int_equal(rc, has_failed ? -ENOMEM : 0);
        if (!has_failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_of_each_series_has_a_row),
        cmocka_unit_test(the_last_of_equal_keys_counts_once),
        cmocka_unit_test(complete_events_give_their_duration),
        cmocka_unit_test(want_of_memory_is_told_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
