/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/cpu.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lookup.h"
#include "support/random.h"
#include "support/scratch.h"

static void table_cleanup(struct sample_table *table)
{
    sample_table_fini(table);
}

static struct sample_table table_new(void)
{
    struct sample_table table;
    assert_int_equal(cpu_table_init(&table, NULL), 0);
    return table;
}

static void parse(struct sample_table *table, const char *text)
{
    struct error err = {0};
    if (cpu_parse(text, strlen(text), table, &err) < 0)
        fail_msg("%s", err.text);
}

static void parse_file(struct sample_table *table, const char *path)
{
    CLEANUP(buf_cleanup) struct buf text = lookup_text(path);
    assert_int_equal(cpu_parse(text.data, text.length, table, NULL), 0);
}

static void the_files_of_real_kernels_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *tree;
        size_t rows;
        const char *row, *column;
        uint64_t raw;
    } trees[] = {
        {"linux-3.10", 5, "cpu3", "idle", 795380903}, {"linux-4.18", 5, "cpu", "user", 24684417},
        {"linux-5.14", 5, "cpu0", "softirq", 22801},  {"linux-6.18", 3, "cpu1", "guest_nice", 0},
        {"aarch64", 5, "cpu2", "iowait", 308},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(trees); i++) {
        CLEANUP(table_cleanup) struct sample_table table = table_new();
        char path[PATH_MAX];
        (void)snprintf(path, sizeof path, "%s/%s/proc/stat", RECORDED_DIR, trees[i].tree);
        parse_file(&table, path);
        assert_int_equal(table.rows_count, trees[i].rows);
        assert_string_equal(table.rows[0]->name, "cpu");
        struct sample_value value = lookup_value(&table, trees[i].row, trees[i].column);
        assert_true(value.is_known);
        assert_int_equal(value.raw, trees[i].raw);
        assert_int_equal(table.lines_bad, 0);
    }
}

/* Each line of a made tree has its own numbers: see make_trees.py. */
static void assert_made_row(const struct sample_row *row, size_t number)
{
    for (size_t column = 0; column < CPU_COLUMNS; column++)
        assert_int_equal(row->values[column].raw, number * 10 + column);
}

static void thousands_of_cpus_and_a_line_of_60000_interrupts_are_read_whole(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        size_t cpus;
    } trees[] = {{RECORDED_MADE_DIR "/cpus-1024/proc/stat", 1024}, {RECORDED_MADE_DIR "/cpus-4096/proc/stat", 4096}};
    for (size_t i = 0; i < ARRAY_LENGTH(trees); i++) {
        CLEANUP(table_cleanup) struct sample_table table = table_new();
        for (int tick = 0; tick < 2; tick++) {
            parse_file(&table, trees[i].path);
            assert_int_equal(table.rows_count, trees[i].cpus + 1);
            assert_made_row(table.rows[0], trees[i].cpus);
            for (size_t cpu = 0; cpu < trees[i].cpus; cpu++)
                assert_made_row(table.rows[cpu + 1], cpu);
            assert_int_equal(table.rows_refused + table.lines_bad, 0);
        }
    }
}

static void cpus_that_are_offline_have_no_row_and_shift_nobody(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse_file(&table, RECORDED_MADE_DIR "/cpus-offline/proc/stat");
    assert_int_equal(table.rows_count, 1 + 47);
    assert_null(lookup_row(&table, "cpu16"));
    assert_null(lookup_row(&table, "cpu40"));
    assert_made_row(lookup_row(&table, "cpu15"), 15);
    assert_made_row(lookup_row(&table, "cpu32"), 32);
    assert_made_row(lookup_row(&table, "cpu63"), 63);
}

static void a_cpu_that_comes_or_goes_disturbs_no_other(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse(&table, "cpu 30 0 0 30\ncpu0 10 0 0 10\ncpu1 10 0 0 10\ncpu2 10 0 0 10\n");
    parse(&table, "cpu 34 0 0 30\ncpu0 12 0 0 10\ncpu2 12 0 0 10\n");
    assert_int_equal(table.rows_count, 3);
    assert_int_equal(lookup_value(&table, "cpu2", "user").increase, 2);
    parse(&table, "cpu 38 0 0 30\ncpu0 13 0 0 10\ncpu1 1 0 0 1\ncpu2 15 0 0 10\n");
    assert_string_equal(table.rows[2]->name, "cpu1");
    assert_true(table.rows[2]->is_first);
    assert_int_equal(lookup_value(&table, "cpu1", "user").increase, 0);
    assert_int_equal(lookup_value(&table, "cpu2", "user").increase, 3);
}

static void columns_of_newer_kernels_are_unknown_on_older_ones(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse(&table, "cpu 1 2 3 4\ncpu0 1 2 3 4 5 6 7 8 9 10 11 12\n");
    assert_true(lookup_value(&table, "cpu", "idle").is_known);
    assert_false(lookup_value(&table, "cpu", "iowait").is_known);
    assert_int_equal(lookup_value(&table, "cpu0", "guest_nice").raw, 10);
}

static const struct bad_line {
    const char *name;
    const char *line;
    size_t rows;      /* of the table then: a line whose name can be read keeps its row */
    uint64_t bad;     /* lines that it counts as */
    bool is_followed; /* by a good line */
} bad_lines[] = {
    {"three numbers", "cpu1 1 2 3\n", 4, 1, true},
    {"no numbers", "cpu1\n", 4, 1, true},
    {"a number too large", "cpu1 99999999999999999999 2 3 4\n", 4, 1, true},
    {"negative", "cpu1 1 -2 3 4\n", 4, 1, true},
    {"letters", "cpu1 a b c d\n", 4, 1, true},
    {"a name without number", "cpux 1 2 3 4\n", 3, 1, true},
    {"a name that goes on", "cpu1x 1 2 3 4\n", 3, 1, true},
    {"listed twice", "cpu0 1 2 3 4\n", 3, 0, true},
    {"not a CPU", "page 5741 1808\n", 3, 0, true},
    {"empty", "\n", 3, 0, true},
    {"cut", "cpu1 1 2 3 4 5 6 7 8 9", 4, 1, false},
    {"cut behind all numbers", "cpu1 1 2 3 4 5 6 7 8 9 0", 4, 0, false},
};

static void a_bad_line_spoils_itself_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(bad_lines); i++) {
        CLEANUP(table_cleanup) struct sample_table table = table_new();
        char text[256];
        (void)snprintf(text, sizeof text, "cpu 9 9 9 9\ncpu0 7 7 7 7\n%s%s", bad_lines[i].line,
                       bad_lines[i].is_followed ? "cpu2 8 8 8 8\n" : "");
        parse(&table, text);
        if (table.rows_count != bad_lines[i].rows - (bad_lines[i].is_followed ? 0 : 1) ||
            table.lines_bad != bad_lines[i].bad)
            fail_msg("%s: %zu rows, %llu bad lines", bad_lines[i].name, table.rows_count,
                     (unsigned long long)table.lines_bad);
        assert_int_equal(lookup_value(&table, "cpu0", "user").raw, 7);
        if (bad_lines[i].is_followed)
            assert_int_equal(lookup_value(&table, "cpu2", "user").raw, 8);
        if (bad_lines[i].rows == 4)
            assert_int_equal(lookup_value(&table, "cpu1", "user").is_known, bad_lines[i].bad == 0);
    }
}

static void a_row_survives_a_tick_with_a_bad_line(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse(&table, "cpu 100 0 0 100\n");
    parse(&table, "cpu 110 0 0 100\n");
    parse(&table, "cpu 1x0 0 0 100\n");
    assert_false(lookup_value(&table, "cpu", "user").is_known);
    parse(&table, "cpu 125 0 0 100\n");
    assert_int_equal(lookup_value(&table, "cpu", "user").increase, 15);
    assert_int_equal(lookup_value(&table, "cpu", "user").total, 25);
}

static void a_text_without_cpus_leaves_the_table_as_it_was(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse(&table, "cpu 100 0 0 100\ncpu0 100 0 0 100\n");
    parse(&table, "cpu 110 0 0 100\ncpu0 110 0 0 100\n");
    static const char nuls[4096];
    struct error err = {0};
    assert_int_equal(cpu_parse("", 0, &table, &err), -EBADMSG);
    assert_int_equal(cpu_parse(nuls, sizeof nuls, &table, &err), -EBADMSG);
    assert_int_equal(cpu_parse("intr 1 2 3\n", 11, &table, &err), -EBADMSG);
    assert_int_equal(table.rows_count, 2);
    assert_int_equal(lookup_value(&table, "cpu0", "user").increase, 10);
}

static double percent_sum(const double percent[CPU_COLUMNS])
{
    double sum = 0;
    for (size_t i = 0; i < CPU_COLUMNS; i++) {
        assert_true(percent[i] >= 0 && percent[i] <= 100);
        sum += percent[i];
    }
    return sum;
}

static void percentages_are_of_the_time_since_the_previous_tick(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    double percent[CPU_COLUMNS];
    parse(&table, "cpu 1000 0 0 9000 0 0 0 0 0 0\n");
    assert_false(cpu_percentages(table.rows[0], percent)); /* there is no previous tick */
    parse(&table, "cpu 1050 10 20 9100 5 3 2 10 0 0\n");
    assert_true(cpu_percentages(table.rows[0], percent));
    static const double right[CPU_COLUMNS] = {25, 5, 10, 50, 2.5, 1.5, 1, 5, 0, 0};
    for (size_t i = 0; i < CPU_COLUMNS; i++)
        assert_true(fabs(percent[i] - right[i]) < 1e-9);
}

static void guest_time_is_not_counted_twice(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    double percent[CPU_COLUMNS];
    parse(&table, "cpu 0 0 0 0 0 0 0 0 0 0\n");
    parse(&table, "cpu 60 30 0 10 0 0 0 0 40 30\n"); /* 40 of the 60, and all of the 30 */
    assert_true(cpu_percentages(table.rows[0], percent));
    static const double right[CPU_COLUMNS] = {20, 0, 0, 10, 0, 0, 0, 0, 40, 30};
    for (size_t i = 0; i < CPU_COLUMNS; i++)
        assert_true(fabs(percent[i] - right[i]) < 1e-9);
}

static void guest_time_that_runs_ahead_of_user_time_still_adds_up_to_100(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    double percent[CPU_COLUMNS];
    parse(&table, "cpu 100 0 0 0 0 0 0 0 0 0\n");
    parse(&table, "cpu 110 0 0 30 0 0 0 0 12 0\n");
    assert_true(cpu_percentages(table.rows[0], percent));
    assert_true(fabs(percent_sum(percent) - 100) < 0.1);
    assert_true(percent[CPU_USER] == 0);
}

static void iowait_that_goes_back_a_tick_is_0_and_never_negative(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    double percent[CPU_COLUMNS];
    parse(&table, "cpu 0 0 0 0 5482 0 0 0 0 0\n");
    for (unsigned tick = 1; tick < 20; tick++) {
        char text[128];
        (void)snprintf(text, sizeof text, "cpu %u 0 0 %u %u 0 0 0 0 0\n", tick * 10, tick * 90,
                       tick % 2 == 1 ? 5481U : 5482U);
        parse(&table, text);
        assert_true(cpu_percentages(table.rows[0], percent));
        assert_true(percent[CPU_IOWAIT] == 0);
        assert_true(fabs(percent_sum(percent) - 100) < 0.1);
        assert_true(fabs(percent[CPU_USER] - 10) < 0.1);
    }
}

static void a_tick_in_which_no_time_passed_has_no_percentages(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    double percent[CPU_COLUMNS];
    parse(&table, "cpu 10 0 0 90\n");
    parse(&table, "cpu 10 0 0 90\n");
    assert_false(cpu_percentages(table.rows[0], percent));
    parse(&table, "cpu x 0 0 90\n");
    assert_false(cpu_percentages(table.rows[0], percent));
}

static void whatever_the_numbers_percentages_add_up_to_100(void **state)
{
    (void)state;
    struct random random = random_new("cpu");
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    for (size_t round = 0; round < 5000; round++) {
        char text[300];
        size_t length = 0;
        for (size_t i = 0; i < CPU_COLUMNS; i++)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%llu", i == 0 ? "cpu " : " ",
                                       (unsigned long long)(random_u64(&random) >> random_below(&random, 64)));
        (void)snprintf(text + length, sizeof text - length, "\n");
        parse(&table, text);
        double percent[CPU_COLUMNS];
        if (cpu_percentages(table.rows[0], percent))
            assert_true(fabs(percent_sum(percent) - 100) < 0.1);
    }
}

static void the_collector_reads_this_machine(void **state)
{
    (void)state;
    const struct sample_config config = {.proc_path = "/proc", .sys_path = "/sys"};
    struct collector *collector = NULL;
    struct error err = {0};
    assert_int_equal(cpu_collector.open(&config, &collector, &err), 0);
    for (int tick = 0; tick < 2; tick++)
        assert_int_equal(cpu_collector.read(collector, 0, &err), 0);
    const struct sample_table *table = cpu_collector.table(collector);
    assert_true(table->rows_count >= 2);
    assert_string_equal(table->rows[0]->name, "cpu");
    assert_true(lookup_value(table, "cpu", "idle").raw > 0);
    cpu_collector.close(collector);
}

static void a_file_that_is_empty_for_a_moment_costs_one_tick(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    const struct sample_config config = {.proc_path = scratch.path, .sys_path = scratch.path};
    struct collector *collector = NULL;
    struct error err = {0};
    assert_int_equal(cpu_collector.open(&config, &collector, &err), -ENODEV);
    assert_non_null(strstr(err.text, "/stat'"));

    scratch_write(&scratch, "stat", "cpu 1 1 1 1\n", 12);
    assert_int_equal(cpu_collector.open(&config, &collector, &err), 0);
    assert_int_equal(cpu_collector.read(collector, 0, &err), 0);
    scratch_write(&scratch, "stat", "", 0);
    assert_int_equal(cpu_collector.read(collector, 0, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "/stat'"));
    assert_int_equal(cpu_collector.table(collector)->rows_count, 1);
    scratch_write(&scratch, "stat", "cpu 5 1 1 1\n", 12);
    assert_int_equal(cpu_collector.read(collector, 0, &err), 0);
    assert_int_equal(lookup_value(cpu_collector.table(collector), "cpu", "user").increase, 4);
    cpu_collector.close(collector);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_files_of_real_kernels_are_understood),
        cmocka_unit_test(thousands_of_cpus_and_a_line_of_60000_interrupts_are_read_whole),
        cmocka_unit_test(cpus_that_are_offline_have_no_row_and_shift_nobody),
        cmocka_unit_test(a_cpu_that_comes_or_goes_disturbs_no_other),
        cmocka_unit_test(columns_of_newer_kernels_are_unknown_on_older_ones),
        cmocka_unit_test(a_bad_line_spoils_itself_alone),
        cmocka_unit_test(a_row_survives_a_tick_with_a_bad_line),
        cmocka_unit_test(a_text_without_cpus_leaves_the_table_as_it_was),
        cmocka_unit_test(percentages_are_of_the_time_since_the_previous_tick),
        cmocka_unit_test(guest_time_is_not_counted_twice),
        cmocka_unit_test(guest_time_that_runs_ahead_of_user_time_still_adds_up_to_100),
        cmocka_unit_test(iowait_that_goes_back_a_tick_is_0_and_never_negative),
        cmocka_unit_test(a_tick_in_which_no_time_passed_has_no_percentages),
        cmocka_unit_test(whatever_the_numbers_percentages_add_up_to_100),
        cmocka_unit_test(the_collector_reads_this_machine),
        cmocka_unit_test(a_file_that_is_empty_for_a_moment_costs_one_tick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
