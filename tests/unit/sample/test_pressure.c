/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/pressure.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "lookup.h"
#include "support/allocation.h"
#include "support/scratch.h"

static void table_cleanup(struct sample_table *table)
{
    sample_table_fini(table);
}

static struct collector *open_tree(const char *proc_path)
{
    const struct sample_config config = {.proc_path = proc_path, .sys_path = "/sys"};
    struct collector *collector = NULL;
    struct error err = {0};
    if (pressure_collector.open(&config, &collector, &err) < 0)
        fail_msg("%s", err.text);
    return collector;
}

static void a_row_for_each_file_that_the_kernel_has(void **state)
{
    (void)state;
    struct collector *collector = open_tree(RECORDED_DIR "/linux-5.14/proc");
    assert_int_equal(pressure_collector.read(collector, 0, NULL), 0);
    const struct sample_table *table = pressure_collector.table(collector);
    assert_int_equal(table->rows_count, 3);
    assert_string_equal(table->rows[0]->name, "cpu");
    assert_string_equal(table->rows[1]->name, "memory");
    assert_string_equal(table->rows[2]->name, "io");
    assert_true(fabs(lookup_value(table, "cpu", "some_avg10").real - 1.2) < 1e-9);
    assert_int_equal(lookup_value(table, "cpu", "some_total_us").raw, 912345678);
    assert_false(lookup_value(table, "cpu", "full_avg10").is_known); /* before 5.13 and in this tree */
    assert_true(fabs(lookup_value(table, "io", "some_avg60").real - 6.25) < 1e-9);
    assert_true(fabs(lookup_value(table, "io", "full_avg300").real - 2.12) < 1e-9);
    assert_int_equal(lookup_value(table, "io", "full_total_us").raw, 71234567890);
    assert_int_equal(lookup_value(table, "memory", "full_total_us").raw, 3123);
    pressure_collector.close(collector);
}

static void irq_has_only_full(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table;
    assert_int_equal(pressure_table_init(&table, NULL), 0);
    static const char text[] = "full avg10=0.10 avg60=0.20 avg300=0.30 total=77\n";
    sample_table_begin(&table);
    pressure_parse(text, sizeof text - 1, "irq", &table);
    sample_table_end(&table);
    assert_false(lookup_value(&table, "irq", "some_total_us").is_known);
    assert_int_equal(lookup_value(&table, "irq", "full_total_us").raw, 77);
    assert_int_equal(table.lines_bad, 0);
}

static void a_bad_line_leaves_its_columns_unknown(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "some",
                                      "half avg10=0.00 avg60=0.00 avg300=0.00 total=1",
                                      "some avg10=x avg60=0.00 avg300=0.00 total=1",
                                      "some avg10=0.00 avg60=0.00 avg300=0.00 total=-1",
                                      "some avg10=0.00 avg60=0.00 avg300=0.00 total=18446744073709551616",
                                      "some avg10=0.00 avg60=0.00 avg300=0.00",
                                      "some avg60=0.00 avg10=0.00 avg300=0.00 total=1"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        CLEANUP(table_cleanup) struct sample_table table;
        assert_int_equal(pressure_table_init(&table, NULL), 0);
        char text[256];
        int length = snprintf(text, sizeof text, "%s\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n", bad[i]);
        sample_table_begin(&table);
        pressure_parse(text, (size_t)length, "io", &table);
        sample_table_end(&table);
        for (size_t column = PRESSURE_SOME_AVG10; column <= PRESSURE_SOME_TOTAL_US; column++)
            assert_false(table.rows[0]->values[column].is_known);
        assert_int_equal(lookup_value(&table, "io", "full_total_us").raw, 5);
        assert_int_equal(table.lines_bad, 1);
    }
}

static void totals_increase_from_tick_to_tick(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    assert_int_equal(mkdir(scratch_path(&scratch, "pressure", path), 0700), 0);
    scratch_write(&scratch, "pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=100\n", 49);
    struct collector *collector = open_tree(scratch.path);
    assert_int_equal(pressure_collector.read(collector, 0, NULL), 0);
    scratch_write(&scratch, "pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=150\n", 49);
    assert_int_equal(pressure_collector.read(collector, 0, NULL), 0);
    const struct sample_table *table = pressure_collector.table(collector);
    assert_int_equal(table->rows_count, 1);
    assert_int_equal(lookup_value(table, "io", "some_total_us").increase, 50);
    pressure_collector.close(collector);
}

static void a_kernel_without_it_is_told_once_at_open(void **state)
{
    (void)state;
    const struct sample_config config = {.proc_path = RECORDED_DIR "/linux-3.10/proc", .sys_path = "/sys"};
    struct collector *collector = NULL;
    struct error err = {0};
    assert_int_equal(pressure_collector.open(&config, &collector, &err), -ENODEV);
    assert_null(collector);
    assert_non_null(strstr(err.text, "/pressure/cpu'"));
}

static void without_memory_nothing_is_opened_and_nothing_leaks(void **state)
{
    (void)state;
    const struct sample_config config = {.proc_path = RECORDED_DIR "/linux-5.14/proc", .sys_path = "/sys"};
    for (size_t n = 0;; n++) {
        struct collector *collector = NULL;
        allocation_fail_at(n);
        int rc = pressure_collector.open(&config, &collector, NULL);
        bool has_failed = allocation_stop();
        assert_int_equal(rc, has_failed ? -ENOMEM : 0);
        pressure_collector.close(collector);
        if (!has_failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_for_each_file_that_the_kernel_has),
        cmocka_unit_test(irq_has_only_full),
        cmocka_unit_test(a_bad_line_leaves_its_columns_unknown),
        cmocka_unit_test(totals_increase_from_tick_to_tick),
        cmocka_unit_test(a_kernel_without_it_is_told_once_at_open),
        cmocka_unit_test(without_memory_nothing_is_opened_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
