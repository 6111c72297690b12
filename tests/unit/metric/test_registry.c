/* SPDX-License-Identifier: BSD-3-Clause */
#include "metric/registry.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/random.h"

DEFINE_CLEANUP(registry, registry_free);

static struct registry_budget budget_of(size_t metrics_max)
{
    return (struct registry_budget){.metrics_max = metrics_max};
}

static struct metric *add(struct registry *reg, const char *name, enum metric_kind kind)
{
    struct metric *metric = NULL;
    assert_int_equal(registry_find_or_add(reg, name, strlen(name), NULL, kind, &metric, NULL), 0);
    return metric;
}

static void full_registry_refuses_and_keeps_the_old(void **state)
{
    (void)state;
    struct registry_budget budget = budget_of(100);
    CLEANUP(registry_cleanup) struct registry *reg = registry_new(1, &budget);
    struct metric *first = add(reg, "reads_total", METRIC_COUNTER);
    struct metric *second = NULL;
    struct error err = {0};
    assert_int_equal(registry_find_or_add(reg, "writes_total", 12, NULL, METRIC_COUNTER, &second, &err), -ENOSPC);
    assert_null(second);
    assert_non_null(strstr(err.text, "'writes_total'"));
    assert_int_equal(budget.refused, 1);
    assert_ptr_equal(add(reg, "reads_total", METRIC_COUNTER), first);
}

static void all_registries_share_one_budget(void **state)
{
    (void)state;
    struct registry_budget budget = budget_of(3);
    struct registry *one = registry_new(10, &budget);
    CLEANUP(registry_cleanup) struct registry *two = registry_new(10, &budget);
    (void)add(one, "a", METRIC_COUNTER);
    (void)add(one, "b", METRIC_COUNTER);
    (void)add(two, "a", METRIC_COUNTER);
    struct metric *metric = NULL;
    assert_int_equal(registry_find_or_add(two, "b", 1, NULL, METRIC_COUNTER, &metric, NULL), -ENOSPC);
    registry_free(one); /* a job that ended gives back what it held */
    assert_int_equal(registry_find_or_add(two, "b", 1, NULL, METRIC_COUNTER, &metric, NULL), 0);
    assert_int_equal(budget.metrics_used, 2);
}

static void a_name_has_one_kind(void **state)
{
    (void)state;
    struct registry_budget budget = budget_of(10);
    CLEANUP(registry_cleanup) struct registry *reg = registry_new(10, &budget);
    (void)add(reg, "x", METRIC_GAUGE);
    struct metric *metric = NULL;
    struct error err = {0};
    assert_int_equal(registry_find_or_add(reg, "x", 1, NULL, METRIC_COUNTER, &metric, &err), -EEXIST);
    assert_non_null(strstr(err.text, "is a gauge already"));
    assert_null(metric);
}

static void a_doc_that_comes_later_is_kept(void **state)
{
    (void)state;
    struct registry_budget budget = budget_of(10);
    CLEANUP(registry_cleanup) struct registry *reg = registry_new(10, &budget);
    struct metric *metric = add(reg, "x", METRIC_COUNTER);
    assert_string_equal(metric->doc, "");
    assert_int_equal(registry_find_or_add(reg, "x", 1, "first words", METRIC_COUNTER, &metric, NULL), 0);
    assert_int_equal(registry_find_or_add(reg, "x", 1, "other words", METRIC_COUNTER, &metric, NULL), 0);
    assert_string_equal(metric->doc, "first words");
    assert_string_equal(metric->name, "x");
}

static void a_doc_is_cut_to_its_limit_and_to_what_is_utf8(void **state)
{
    (void)state;
    struct registry_budget budget = budget_of(10);
    CLEANUP(registry_cleanup) struct registry *reg = registry_new(10, &budget);
    struct metric *metric = NULL;
    assert_int_equal(registry_find_or_add(reg, "x", 1, "a\xff\xc3\xa9\nb\xe2\x82", METRIC_COUNTER, &metric, NULL), 0);
    assert_string_equal(metric->doc, "a?\xc3\xa9\nb??");
    char large[3 * REGISTRY_DOC_MAX_BYTES];
    memset(large, 'd', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    large[REGISTRY_DOC_MAX_BYTES - 1] = '\xc3'; /* its other half is past the limit */
    large[REGISTRY_DOC_MAX_BYTES] = '\xa9';
    assert_int_equal(registry_find_or_add(reg, "y", 1, large, METRIC_COUNTER, &metric, NULL), 0);
    assert_int_equal(strlen(metric->doc), REGISTRY_DOC_MAX_BYTES);
    assert_int_equal(metric->doc[REGISTRY_DOC_MAX_BYTES - 1], '?');
}

static void many_metrics_keep_their_order_and_address(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    struct registry_budget budget = budget_of(MANY);
    CLEANUP(registry_cleanup) struct registry *reg = registry_new(MANY, &budget);
    static struct metric *metrics[MANY];
    char name[32];
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "metric_%d", i);
        metrics[i] = add(reg, name, METRIC_COUNTER);
    }
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "metric_%zu", i);
        assert_ptr_equal(registry_at(reg, i), metrics[i]);
        assert_ptr_equal(registry_find(reg, name, strlen(name)), metrics[i]);
    }
    assert_null(registry_find(reg, "metric_", 7)); /* the beginning of a name is no name */
}

/* A contributor whose counter grows, who may end and be kept. */
struct contributor {
    double counter;
    bool is_live;
};

/* Replacing contributions at each tick gives what adding up from scratch gives, and the sum never falls. */
static void a_tick_replaces_what_contributors_said_before(void **state)
{
    (void)state;
    enum { CONTRIBUTORS = 20, TICKS = 500 };
    struct random random = random_new(__func__);
    struct registry_budget budget = budget_of(10);
    CLEANUP(registry_cleanup) struct registry *reg = registry_new(10, &budget);
    struct metric *metric = add(reg, "bytes_total", METRIC_COUNTER);
    struct contributor all[CONTRIBUTORS] = {0};
    double truth = 0;
    double before = 0;
    for (int tick = 0; tick < TICKS; tick++) {
        registry_begin(reg);
        for (size_t i = 0; i < CONTRIBUTORS; i++) {
            struct contributor *one = &all[i];
            if (!one->is_live && random_below(&random, 4) == 0)
                *one = (struct contributor){.is_live = true};
            if (!one->is_live)
                continue;
            double increase = (double)random_below(&random, 1000);
            one->counter += increase;
            truth += increase;
            struct metric_value said = metric_counter(one->counter, tick);
            assert_true(registry_add(metric, &said));
            if (random_below(&random, 8) == 0) {
                registry_keep(metric, &said); /* from the next tick on */
                one->is_live = false;
            }
        }
        assert_true(metric->value.counter == truth);
        assert_true(metric->value.counter >= before);
        before = metric->value.counter;
    }
}

static void a_gauge_leaves_with_its_contributor(void **state)
{
    (void)state;
    struct registry_budget budget = budget_of(10);
    CLEANUP(registry_cleanup) struct registry *reg = registry_new(10, &budget);
    struct metric *metric = add(reg, "heat", METRIC_GAUGE);
    struct metric_value said = metric_gauge(7, 1);
    registry_begin(reg);
    assert_true(registry_add(metric, &said));
    registry_keep(metric, &said);
    assert_true(metric_shown(&metric->value) == 7);
    registry_begin(reg);
    assert_true(metric->value.gauge.hits == 0);
}

static void no_memory_at_any_point_leaves_the_registry_whole(void **state)
{
    (void)state;
    struct registry_budget budget = budget_of(1000);
    for (size_t n = 0;; n++) {
        allocation_fail_at(n);
        CLEANUP(registry_cleanup) struct registry *reg = registry_new(1000, &budget);
        int rc = reg == NULL ? -ENOMEM : 0;
        char name[32];
        for (int i = 0; rc == 0 && i < 200; i++) {
            struct metric *metric = NULL;
            (void)snprintf(name, sizeof name, "m%d", i);
            rc = registry_find_or_add(reg, name, strlen(name), "doc", METRIC_COUNTER, &metric, NULL);
        }
        bool has_failed = allocation_stop();
        if (!has_failed)
            break;
        assert_int_equal(rc, -ENOMEM);
        for (size_t i = 0; reg != NULL && i < registry_count(reg); i++) {
            const char *known = registry_at(reg, i)->name;
            assert_ptr_equal(registry_find(reg, known, strlen(known)), registry_at(reg, i));
        }
    }
    assert_int_equal(budget.metrics_used, 0);
}

static void sorted_metrics_keep_families_together_also_when_more_come(void **state)
{
    (void)state;
    static const char *const first[] = {"a_b", "a{x=\"1\"}", "zz", "a", "b{y=\"2\"}"};
    static const char *const then[] = {"a{w=\"1\"}", "a_a", "b", "zzz", "A"};
    static const char *const expected[] = {"A",   "a", "a{w=\"1\"}", "a{x=\"1\"}", "a_a",
                                           "a_b", "b", "b{y=\"2\"}", "zz",         "zzz"};
    struct registry_budget budget = budget_of(100);
    CLEANUP(registry_cleanup) struct registry *reg = registry_new(100, &budget);
    assert_null(registry_sorted(reg));
    for (size_t i = 0; i < ARRAY_LENGTH(first); i++)
        add(reg, first[i], METRIC_COUNTER);
    assert_string_equal(registry_sorted(reg)[0]->name, "a");
    for (size_t i = 0; i < ARRAY_LENGTH(then); i++)
        add(reg, then[i], METRIC_GAUGE);
    struct metric *const *sorted = registry_sorted(reg);
    for (size_t i = 0; i < ARRAY_LENGTH(expected); i++)
        assert_string_equal(sorted[i]->name, expected[i]);
    assert_ptr_equal(registry_sorted(reg), sorted); /* nothing new: nothing done */
    assert_int_equal(registry_sorted_after(reg, ""), 0);
    assert_int_equal(registry_sorted_after(reg, "a"), 2);
    assert_int_equal(registry_sorted_after(reg, "a_"), 4);
    assert_int_equal(registry_sorted_after(reg, "zzz"), ARRAY_LENGTH(expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_registry_refuses_and_keeps_the_old),
        cmocka_unit_test(all_registries_share_one_budget),
        cmocka_unit_test(a_name_has_one_kind),
        cmocka_unit_test(a_doc_that_comes_later_is_kept),
        cmocka_unit_test(a_doc_is_cut_to_its_limit_and_to_what_is_utf8),
        cmocka_unit_test(many_metrics_keep_their_order_and_address),
        cmocka_unit_test(a_tick_replaces_what_contributors_said_before),
        cmocka_unit_test(a_gauge_leaves_with_its_contributor),
        cmocka_unit_test(sorted_metrics_keep_families_together_also_when_more_come),
        cmocka_unit_test(no_memory_at_any_point_leaves_the_registry_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
