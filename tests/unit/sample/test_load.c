/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/load.h"

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
    assert_int_equal(load_table_init(&table, NULL), 0);
    return table;
}

static void parse(struct sample_table *table, const char *text)
{
    struct error err = {0};
    if (load_parse(text, strlen(text), table, &err) < 0)
        fail_msg("%s", err.text);
}

static void parse_tree(struct sample_table *table, const char *tree)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s/proc/loadavg", RECORDED_DIR, tree);
    CLEANUP(buf_cleanup) struct buf text = lookup_text(path);
    assert_int_equal(load_parse(text.data, text.length, table, NULL), 0);
}

static void the_files_of_real_kernels_are_understood(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse_tree(&table, "linux-4.18");
    assert_true(fabs(lookup_value(&table, "load", "load1").real - 130.02) < 1e-9);
    assert_true(fabs(lookup_value(&table, "load", "load5").real - 128.51) < 1e-9);
    assert_true(fabs(lookup_value(&table, "load", "load15").real - 127.93) < 1e-9);
    assert_int_equal(lookup_value(&table, "load", "running").integer, 129);
    assert_int_equal(lookup_value(&table, "load", "threads").integer, 2412);
    parse_tree(&table, "linux-3.10");
    parse_tree(&table, "linux-6.18");
    assert_int_equal(table.rows_count, 1);
    assert_false(table.rows[0]->is_first);
}

static void a_text_without_sense_leaves_the_table_as_it_was(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse(&table, "1.5 0.0 0.0 2/30 17");
    static const char *const bad[] = {
        "",         "1.5",       "1.5 1.5 1.5", "1.5 x 1.5 2/30 17", "1.5 1.5 1.5 2 30",
        "1 1 1 2/", "1 1 1 /30", "\n",          "nan 1 1 2/30 17",   "1 1 1 99999999999999999999/1"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        struct error err = {0};
        if (load_parse(bad[i], strlen(bad[i]), &table, &err) != -EBADMSG)
            fail_msg("'%s' was taken", bad[i]);
        assert_true(err.text[0] != '\0');
    }
    assert_true(lookup_value(&table, "load", "load1").real > 1.4);
    assert_int_equal(lookup_value(&table, "load", "running").integer, 2);
}

static void the_collector_reads_what_proc_path_says(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    scratch_write(&scratch, "loadavg", "0.5 0.25 0.125 3/40 99\n", 23);
    const struct sample_config config = {.proc_path = scratch.path, .sys_path = "/sys"};
    struct collector *collector = NULL;
    assert_int_equal(load_collector.open(&config, &collector, NULL), 0);
    assert_int_equal(load_collector.read(collector, 0, NULL), 0);
    assert_int_equal(lookup_value(load_collector.table(collector), "load", "threads").integer, 40);
    load_collector.close(collector);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_files_of_real_kernels_are_understood),
        cmocka_unit_test(a_text_without_sense_leaves_the_table_as_it_was),
        cmocka_unit_test(the_collector_reads_what_proc_path_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
