/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/memory.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lookup.h"
#include "support/scratch.h"

static void table_cleanup(struct sample_table *table)
{
    sample_table_fini(table);
}

static struct sample_table table_new(void)
{
    struct sample_table table;
    assert_int_equal(memory_table_init(&table, NULL), 0);
    return table;
}

static void parse(struct sample_table *table, const char *text)
{
    struct error err = {0};
    if (memory_parse(text, strlen(text), table, &err) < 0)
        fail_msg("%s", err.text);
}

static void parse_tree(struct sample_table *table, const char *tree)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s/proc/meminfo", RECORDED_DIR, tree);
    CLEANUP(buf_cleanup) struct buf text = lookup_text(path);
    assert_int_equal(memory_parse(text.data, text.length, table, NULL), 0);
}

static int64_t value_of(const struct sample_table *table, const char *key)
{
    struct sample_value value = lookup_value(table, "memory", key);
    if (!value.is_known)
        fail_msg("'%s' is unknown", key);
    return value.integer;
}

static void the_files_of_real_kernels_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *tree, *key;
        size_t columns;
        int64_t number;
        double used_percent;
    } trees[] = {
        {"linux-3.10", "Inactive(anon)", 43, 524288, 15.7253},
        {"linux-4.18", "MemAvailable", 47, 117440512, 10.8507},
        {"linux-5.14", "Percpu", 51, 212992, 10.8507},
        {"linux-6.18", "Hugepagesize", 54, 2048, -1},
        {"aarch64", "CmaFree", 21, 520192, 2.7145},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(trees); i++) {
        CLEANUP(table_cleanup) struct sample_table table = table_new();
        parse_tree(&table, trees[i].tree);
        assert_int_equal(table.rows_count, 1);
        assert_int_equal(table.columns_count, trees[i].columns);
        assert_int_equal(value_of(&table, trees[i].key), trees[i].number);
        double percent = -1;
        assert_true(memory_used_percent(&table, &percent));
        assert_true(percent > 0 && percent < 100);
        if (trees[i].used_percent >= 0 && fabs(percent - trees[i].used_percent) > 0.001)
            fail_msg("%s: %f %% used", trees[i].tree, percent);
        assert_int_equal(table.lines_bad, 0);
    }
}

static void sizes_are_in_kb_and_huge_pages_are_counted(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse(&table, "MemTotal: 1024 kB\nHugePages_Total:     7\n");
    assert_string_equal(table.columns[0].unit, "kB");
    assert_string_equal(table.columns[1].unit, "");
    assert_true(table.columns[1].kind == SAMPLE_INTEGER);
}

static void lines_may_come_go_and_change_places(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse(&table, "MemTotal: 10 kB\nMemFree: 20 kB\nCached: 30 kB\n");
    parse(&table, "MemTotal: 11 kB\nCached: 31 kB\n");
    assert_int_equal(value_of(&table, "MemTotal"), 11);
    assert_int_equal(value_of(&table, "Cached"), 31);
    assert_false(lookup_value(&table, "memory", "MemFree").is_known);
    parse(&table, "New: 42 kB\nCached: 32 kB\nMemFree: 22 kB\nMemTotal: 12 kB\n");
    assert_int_equal(value_of(&table, "MemTotal"), 12);
    assert_int_equal(value_of(&table, "MemFree"), 22);
    assert_int_equal(value_of(&table, "Cached"), 32);
    assert_int_equal(value_of(&table, "New"), 42);
    assert_int_equal(table.columns_count, 4);
}

static void a_bad_line_spoils_itself_alone(void **state)
{
    (void)state;
    static const char *const bad[] = {"Cached 5 kB",   "Cached:", "Cached: kB", "Cached: 99999999999999999999 kB",
                                      "Cached: 5 MB",  ": 5 kB",  "",           "Cached: 5 kB 6",
                                      "Cached: 0x5 kB"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        CLEANUP(table_cleanup) struct sample_table table = table_new();
        char text[256];
        (void)snprintf(text, sizeof text, "MemTotal: 10 kB\n%s\nMemFree: 5 kB\n", bad[i]);
        parse(&table, text);
        if (table.columns_count != 2 || table.lines_bad != 1)
            fail_msg("'%s': %zu columns", bad[i], table.columns_count);
        assert_int_equal(value_of(&table, "MemFree"), 5);
    }
}

static void keys_without_end_fill_the_table_and_no_more(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, 100000);
    for (unsigned i = 0; i < SAMPLE_COLUMNS_MAX + 100; i++)
        buf_printf(&text, "Key%u: %u kB\n", i, i);
    for (int tick = 0; tick < 2; tick++) {
        assert_int_equal(memory_parse(text.data, text.length, &table, NULL), 0);
        assert_int_equal(table.columns_count, SAMPLE_COLUMNS_MAX);
        assert_int_equal(value_of(&table, "Key255"), 255);
    }
    assert_int_equal(table.lines_bad, 200);
}

static void a_text_without_sense_leaves_the_table_as_it_was(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse(&table, "MemTotal: 10 kB\n");
    static const char nuls[4096];
    assert_int_equal(memory_parse("", 0, &table, NULL), -EBADMSG);
    assert_int_equal(memory_parse(nuls, sizeof nuls, &table, NULL), -EBADMSG);
    assert_int_equal(value_of(&table, "MemTotal"), 10);
}

static void used_memory_is_what_is_not_available(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double percent; /* -1: can't be told */
    } cases[] = {
        {"MemTotal: 100 kB\nMemFree: 5 kB\nMemAvailable: 40 kB\n", 60},
        {"MemTotal: 100 kB\nMemFree: 20 kB\nBuffers: 3 kB\nCached: 7 kB\n", 70},
        {"MemTotal: 100 kB\nMemAvailable: 110 kB\n", 0},
        {"MemTotal: 100 kB\nMemAvailable: -10 kB\n", 100},
        {"MemTotal: 100 kB\nMemFree: 20 kB\n", -1},
        {"MemTotal: 0 kB\nMemAvailable: 0 kB\n", -1},
        {"MemAvailable: 50 kB\n", -1},
        {"MemTotal: 9223372036854775807 kB\nMemFree: 9223372036854775807 kB\nBuffers: 9223372036854775807 kB\n"
         "Cached: 9223372036854775807 kB\n",
         0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(table_cleanup) struct sample_table table = table_new();
        double percent = -1;
        assert_false(memory_used_percent(&table, &percent)); /* nothing has been read */
        parse(&table, cases[i].text);
        assert_int_equal(memory_used_percent(&table, &percent), cases[i].percent >= 0);
        assert_true(fabs(percent - cases[i].percent) < 1e-9);
    }
}

static void the_collector_reads_what_proc_path_says(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    scratch_write(&scratch, "meminfo", "MemTotal: 2097152 kB\n", 21);
    const struct sample_config config = {.proc_path = scratch.path, .sys_path = "/sys"};
    struct collector *collector = NULL;
    assert_int_equal(memory_collector.open(&config, &collector, NULL), 0);
    assert_int_equal(memory_collector.read(collector, 0, NULL), 0);
    assert_int_equal(value_of(memory_collector.table(collector), "MemTotal"), 2097152);
    memory_collector.close(collector);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_files_of_real_kernels_are_understood),
        cmocka_unit_test(sizes_are_in_kb_and_huge_pages_are_counted),
        cmocka_unit_test(lines_may_come_go_and_change_places),
        cmocka_unit_test(a_bad_line_spoils_itself_alone),
        cmocka_unit_test(keys_without_end_fill_the_table_and_no_more),
        cmocka_unit_test(a_text_without_sense_leaves_the_table_as_it_was),
        cmocka_unit_test(used_memory_is_what_is_not_available),
        cmocka_unit_test(the_collector_reads_what_proc_path_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
