/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/vm.h"

#include <errno.h>
#include <limits.h>
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
    assert_int_equal(vm_table_init(&table, NULL), 0);
    return table;
}

static void parse(struct sample_table *table, const char *text)
{
    struct error err = {0};
    if (vm_parse(text, strlen(text), table, &err) < 0)
        fail_msg("%s", err.text);
}

static void parse_tree(struct sample_table *table, const char *tree)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s/proc/vmstat", RECORDED_DIR, tree);
    CLEANUP(buf_cleanup) struct buf text = lookup_text(path);
    assert_int_equal(vm_parse(text.data, text.length, table, NULL), 0);
}

static void the_files_of_real_kernels_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *tree, *known, *unknown;
        uint64_t raw;
    } trees[] = {
        {"linux-3.10", "pgmajfault", "oom_kill", 412345},   {"linux-4.18", "oom_kill", "workingset_refault_anon", 7},
        {"linux-5.14", "workingset_refault_anon", NULL, 5}, {"linux-6.18", "pswpout", NULL, 0},
        {"aarch64", "pgfault", "compact_stall", 81234567},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(trees); i++) {
        CLEANUP(table_cleanup) struct sample_table table = table_new();
        parse_tree(&table, trees[i].tree);
        assert_int_equal(table.rows_count, 1);
        assert_true(lookup_value(&table, "vm", trees[i].known).is_known);
        assert_int_equal(lookup_value(&table, "vm", trees[i].known).raw, trees[i].raw);
        if (trees[i].unknown != NULL)
            assert_false(lookup_value(&table, "vm", trees[i].unknown).is_known);
        assert_int_equal(table.lines_bad, 0);
    }
}

static void all_of_its_counters_are_in_a_kernel_of_today(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse_tree(&table, "linux-6.18");
    for (size_t i = 0; i < table.columns_count; i++) {
        if (!table.rows[0]->values[i].is_known)
            fail_msg("no '%s'", table.columns[i].name);
    }
}

static void counters_are_found_by_name_in_any_order(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse(&table, "oom_kill 1\npgfault 20\nnr_dirty 5\npgfault2 7\npgfaul 8\npswpin 3\n");
    parse(&table, "pswpin 4\noom_kill 3\nnr_dirty -5\npgfault 27\n");
    assert_int_equal(lookup_value(&table, "vm", "oom_kill").increase, 2);
    assert_int_equal(lookup_value(&table, "vm", "pgfault").increase, 7);
    assert_int_equal(lookup_value(&table, "vm", "pswpin").increase, 1);
    assert_int_equal(table.lines_bad, 0);
}

static void a_bad_line_spoils_itself_alone(void **state)
{
    (void)state;
    static const char *const bad[] = {"pgfault", "pgfault x", "pgfault -1", "pgfault 99999999999999999999",
                                      "",        "pgfault 5x"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        CLEANUP(table_cleanup) struct sample_table table = table_new();
        char text[256];
        (void)snprintf(text, sizeof text, "pswpin 4\n%s\noom_kill 3\n", bad[i]);
        parse(&table, text);
        assert_false(lookup_value(&table, "vm", "pgfault").is_known);
        assert_int_equal(lookup_value(&table, "vm", "pswpin").raw, 4);
        assert_int_equal(lookup_value(&table, "vm", "oom_kill").raw, 3);
        assert_int_equal(table.lines_bad, 1);
    }
}

static void a_text_without_sense_leaves_the_table_as_it_was(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse(&table, "pgfault 10\n");
    static const char nuls[4096];
    assert_int_equal(vm_parse("", 0, &table, NULL), -EBADMSG);
    assert_int_equal(vm_parse(nuls, sizeof nuls, &table, NULL), -EBADMSG);
    assert_int_equal(vm_parse("nr_dirty 5\n", 11, &table, NULL), -EBADMSG);
    assert_true(lookup_value(&table, "vm", "pgfault").is_known);
}

static void the_collector_reads_what_proc_path_says(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    scratch_write(&scratch, "vmstat", "pgfault 17\n", 11);
    const struct sample_config config = {.proc_path = scratch.path, .sys_path = "/sys"};
    struct collector *collector = NULL;
    assert_int_equal(vm_collector.open(&config, &collector, NULL), 0);
    assert_int_equal(vm_collector.read(collector, 0, NULL), 0);
    assert_int_equal(lookup_value(vm_collector.table(collector), "vm", "pgfault").raw, 17);
    vm_collector.close(collector);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_files_of_real_kernels_are_understood),
        cmocka_unit_test(all_of_its_counters_are_in_a_kernel_of_today),
        cmocka_unit_test(counters_are_found_by_name_in_any_order),
        cmocka_unit_test(a_bad_line_spoils_itself_alone),
        cmocka_unit_test(a_text_without_sense_leaves_the_table_as_it_was),
        cmocka_unit_test(the_collector_reads_what_proc_path_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
