/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/disk.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "lookup.h"
#include "support/allocation.h"
#include "support/scratch.h"

static void tables_cleanup(struct disk_tables *tables)
{
    disk_tables_fini(tables);
}

static struct disk_tables tables_new(void)
{
    struct disk_tables tables;
    assert_int_equal(disk_tables_init(&tables, NULL), 0);
    return tables;
}

/* For tests of texts alone: what ends in "p1" is a partition. Counts how often it is asked. */
static unsigned times_asked;

static bool ends_in_p1(const void *context, const char *name)
{
    (void)context;
    times_asked++;
    size_t length = strlen(name);
    return length >= 2 && strcmp(name + length - 2, "p1") == 0;
}

static const struct disk_partitions by_name = {.is_partition = ends_in_p1};

static void parse(struct disk_tables *tables, const char *text)
{
    struct error err = {0};
    if (disk_parse(text, strlen(text), &by_name, tables, &err) < 0)
        fail_msg("%s", err.text);
}

/* A collector on a tree, with one tick read. */
static struct collector *read_tree(const char *proc_path, const char *sys_path)
{
    const struct sample_config config = {.proc_path = proc_path, .sys_path = sys_path};
    struct collector *collector = NULL;
    struct error err = {0};
    if (disk_collector.open(&config, &collector, &err) < 0 || disk_collector.read(collector, 0, &err) < 0)
        fail_msg("%s", err.text);
    return collector;
}

static void every_number_of_a_line_is_in_its_column(void **state)
{
    (void)state;
    CLEANUP(tables_cleanup) struct disk_tables tables = tables_new();
    parse(&tables, " 259 0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n");
    static const uint64_t right[DISK_COLUMNS] = {1, 3 * 512, 4, 5, 7 * 512, 8, 9, 10, 11, 12, 14 * 512, 16};
    for (size_t i = 0; i < DISK_COLUMNS; i++) {
        const struct sample_value *value = &tables.disks.rows[0]->values[i];
        assert_true(value->is_known);
        assert_int_equal(i == DISK_IOS_IN_PROGRESS ? (uint64_t)value->integer : value->raw, right[i]);
    }
}

static void the_trees_of_real_kernels_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *tree;
        const char *disks; /* rows in their order, with their labels */
        const char *known, *unknown;
    } trees[] = {
        {"linux-3.10", "sda dm-0[rhel-root] ", "weighted_io_ms", "discards_completed"},
        {"linux-4.18", "nvme0n1 dm-0[rl-root] ", "bytes_discarded", "flushes_completed"},
        {"linux-5.14", "nvme0n1 dm-0[rl-root] ", "flushes_completed", NULL},
        {"linux-6.18", "vda zram0 ", "flushes_completed", NULL},
        {"aarch64", "mmcblk0 ", "flushes_completed", NULL},
        {"odd-names", "dm-0[vg \"0\"\\x2droot] cciss/c0d0 xvda1 ", "io_ms", NULL},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(trees); i++) {
        char proc[PATH_MAX], sys[PATH_MAX];
        (void)snprintf(proc, sizeof proc, "%s/%s/proc", RECORDED_DIR, trees[i].tree);
        (void)snprintf(sys, sizeof sys, "%s/%s/sys", RECORDED_DIR, trees[i].tree);
        struct collector *collector = read_tree(proc, sys);
        const struct sample_table *table = disk_collector.table(collector);
        char disks[256] = "";
        size_t length = 0;
        for (size_t row = 0; row < table->rows_count; row++) {
            const char *label = table->rows[row]->label;
            length += (size_t)snprintf(disks + length, sizeof disks - length, label != NULL ? "%s[%s] " : "%s ",
                                       table->rows[row]->name, label);
        }
        assert_string_equal(disks, trees[i].disks);
        const char *first = table->rows[0]->name;
        assert_true(lookup_value(table, first, trees[i].known).is_known);
        if (trees[i].unknown != NULL)
            assert_false(lookup_value(table, first, trees[i].unknown).is_known);
        assert_int_equal(table->lines_bad, 0);
        disk_collector.close(collector);
    }
}

static void hundreds_of_disks_with_partitions_have_a_row_each(void **state)
{
    (void)state;
    static const char root[] = RECORDED_MADE_DIR "/disks-300";
    char proc[PATH_MAX], sys[PATH_MAX];
    (void)snprintf(proc, sizeof proc, "%s/proc", root);
    (void)snprintf(sys, sizeof sys, "%s/sys", root);
    struct collector *collector = read_tree(proc, sys);
    const struct sample_table *table = disk_collector.table(collector);
    assert_int_equal(table->rows_count, 330);
    for (size_t i = 0; i < 300; i++)
        assert_int_equal(table->rows[i]->values[DISK_READS_COMPLETED].raw, i * 100);
    assert_string_equal(table->rows[299]->name, "sdkn");
    assert_string_equal(table->rows[329]->name, "dm-29");
    assert_string_equal(table->rows[329]->label, "vg-volume29");
    disk_collector.close(collector);
}

static void what_sys_does_not_know_is_no_partition(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    static const char text[] = "8 0 sda 1 0 8 1 2 0 16 1 0 2 2\n8 1 sda1 1 0 8 1 2 0 16 1 0 2 2\n";
    scratch_write(&scratch, "diskstats", text, sizeof text - 1);
    struct collector *collector = read_tree(scratch.path, "/nonexistent");
    assert_int_equal(disk_collector.table(collector)->rows_count, 2);
    disk_collector.close(collector);
}

static void loop_and_ram_devices_have_no_row_and_zram_has(void **state)
{
    (void)state;
    CLEANUP(tables_cleanup) struct disk_tables tables = tables_new();
    parse(&tables,
          "7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n7 63 loop63 0 0 0 0 0 0 0 0 0 0 0\n1 15 ram15 0 0 0 0 0 0 0 0 0 0 0\n"
          "252 0 zram0 1 0 8 1 2 0 16 1 0 2 2\n9 0 ramses 1 0 8 1 2 0 16 1 0 2 2\n");
    assert_int_equal(tables.disks.rows_count, 2);
    assert_string_equal(tables.disks.rows[0]->name, "zram0");
    assert_string_equal(tables.disks.rows[1]->name, "ramses");
}

static void a_name_is_asked_about_once(void **state)
{
    (void)state;
    CLEANUP(tables_cleanup) struct disk_tables tables = tables_new();
    times_asked = 0;
    for (int tick = 0; tick < 3; tick++) {
        parse(&tables, "8 0 a 1 0 8 1 2 0 16 1 0 2 2\n8 1 ap1 1 0 8 1 2 0 16 1 0 2 2\n");
        assert_int_equal(tables.disks.rows_count, 1);
    }
    assert_int_equal(times_asked, 2);
    parse(&tables, "8 0 a 1 0 8 1 2 0 16 1 0 2 2\n");
    assert_int_equal(tables.known.rows_count, 1); /* a partition that is gone is forgotten */
    parse(&tables, "8 0 a 1 0 8 1 2 0 16 1 0 2 2\n8 1 ap1 1 0 8 1 2 0 16 1 0 2 2\n");
    assert_int_equal(times_asked, 3);
}

static void a_device_that_is_listed_twice_has_one_row(void **state)
{
    (void)state;
    CLEANUP(tables_cleanup) struct disk_tables tables = tables_new();
    parse(&tables, "8 0 sda 5 0 8 1 2 0 16 1 0 2 2\n8 0 sda 7 0 8 1 2 0 16 1 0 2 2\n8 16 sdb 1 0 8 1 2 0 16 1 0 2 2\n");
    assert_int_equal(tables.disks.rows_count, 2);
    assert_int_equal(lookup_value(&tables.disks, "sda", "reads_completed").raw, 5);
    assert_int_equal(tables.disks.lines_bad, 0);
}

static void zeros_after_the_first_line_leave_the_first_line(void **state)
{
    (void)state;
    CLEANUP(tables_cleanup) struct disk_tables tables = tables_new();
    static const char first[] = "8 0 sda 5 0 8 1 2 0 16 1 0 2 2\n";
    char text[sizeof first - 1 + 4096] = {0};
    memcpy(text, first, sizeof first - 1);
    for (int tick = 0; tick < 2; tick++)
        assert_int_equal(disk_parse(text, sizeof text, &by_name, &tables, NULL), 0);
    assert_int_equal(tables.disks.rows_count, 1);
    assert_int_equal(lookup_value(&tables.disks, "sda", "reads_completed").raw, 5);
    assert_int_equal(tables.disks.lines_bad, 2); /* one a tick */
}

static void a_bad_line_spoils_itself_alone(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        size_t rows;
        bool is_last; /* nothing follows */
        bool is_known;
    } bad[] = {
        {"8 16 sdb 1 2 3\n", 3, false, false},
        {"8 16 sdb\n", 3, false, false},
        {"8 16\n", 2, false, false},
        {"sdb 1 2 3 4 5 6 7 8 9 10 11\n", 2, false, false},
        {"8 16 sdb 1 2 x 4 5 6 7 8 9 10 11\n", 3, false, false},
        {"8 16 sdb 1 2 3 4 5 6 7 8 -1 10 11\n", 3, false, false},
        {"8 16 sdb 1 2 18446744073709551616 4 5 6 7 8 9 10 11\n", 3, false, false},
        {"8 16 sdb 1 2 3 4 5 6 7 8 9 10 11 12", 2, true, false},
        {"8 16 sdb 1 2 3 4 5 6 7 8 9 10 11", 2, true, true},
        {"\n", 2, false, false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        CLEANUP(tables_cleanup) struct disk_tables tables = tables_new();
        char text[512];
        (void)snprintf(text, sizeof text, "8 0 sda 5 0 8 1 2 0 16 1 0 2 2\n%s%s", bad[i].line,
                       bad[i].is_last ? "" : "8 32 sdc 6 0 8 1 2 0 16 1 0 2 2\n");
        parse(&tables, text);
        if (tables.disks.rows_count != bad[i].rows || (tables.disks.lines_bad == 1) == bad[i].is_known)
            fail_msg("%s: %zu rows, %llu bad", bad[i].line, tables.disks.rows_count,
                     (unsigned long long)tables.disks.lines_bad);
        if (lookup_row(&tables.disks, "sdb") != NULL)
            assert_int_equal(lookup_value(&tables.disks, "sdb", "reads_completed").is_known, bad[i].is_known);
        assert_int_equal(lookup_value(&tables.disks, "sda", "reads_completed").raw, 5);
        if (!bad[i].is_last)
            assert_int_equal(lookup_value(&tables.disks, "sdc", "reads_completed").raw, 6);
    }
}

static void numbers_that_no_disk_has_are_unknown(void **state)
{
    (void)state;
    CLEANUP(tables_cleanup) struct disk_tables tables = tables_new();
    /* More sectors than bytes can be counted, and a queue that a kernel counted below 0. */
    parse(&tables, "8 0 sda 5 0 18446744073709551615 1 2 0 16 1 4294967295 2 2\n");
    assert_false(lookup_value(&tables.disks, "sda", "bytes_read").is_known);
    assert_false(lookup_value(&tables.disks, "sda", "ios_in_progress").is_known);
    assert_int_equal(lookup_value(&tables.disks, "sda", "bytes_written").raw, 16 * 512);
}

static void a_machine_without_disks_has_no_rows_but_a_vanished_text_is_a_failure(void **state)
{
    (void)state;
    CLEANUP(tables_cleanup) struct disk_tables tables = tables_new();
    parse(&tables, "");
    assert_int_equal(tables.disks.rows_count, 0);
    parse(&tables, "8 0 sda 5 0 8 1 2 0 16 1 0 2 2\n");
    assert_int_equal(disk_parse("", 0, &by_name, &tables, NULL), -EBADMSG);
    assert_int_equal(disk_parse("rubbish\n", 8, &by_name, &tables, NULL), -EBADMSG);
    assert_int_equal(tables.disks.rows_count, 1);
}

static void a_disk_that_is_plugged_in_later_gets_its_label(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    static const char *const directories[] = {"block", "block/dm-1", "block/dm-1/dm"};
    for (size_t i = 0; i < ARRAY_LENGTH(directories); i++)
        assert_int_equal(mkdir(scratch_path(&scratch, directories[i], path), 0700), 0);
    scratch_write(&scratch, "block/dm-1/dm/name", "m\xc3\xbcnchen\n", 9);
    scratch_write(&scratch, "diskstats", "8 0 sda 5 0 8 1 2 0 16 1 0 2 2\n", 31);
    struct collector *collector = read_tree(scratch.path, scratch.path);
    const struct sample_table *table = disk_collector.table(collector);
    assert_int_equal(table->rows_count, 1);
    assert_null(table->rows[0]->label);
    static const char both[] = "8 0 sda 5 0 8 1 2 0 16 1 0 2 2\n253 1 dm-1 5 0 8 1 2 0 16 1 0 2 2\n";
    scratch_write(&scratch, "diskstats", both, sizeof both - 1);
    assert_int_equal(disk_collector.read(collector, 0, NULL), 0);
    assert_int_equal(table->rows_count, 2);
    assert_string_equal(table->rows[1]->label, "m\xc3\xbcnchen");
    disk_collector.close(collector);
}

static void a_tree_without_diskstats_is_told_once_at_open(void **state)
{
    (void)state;
    const struct sample_config config = {.proc_path = RECORDED_MADE_DIR "/empty/proc", .sys_path = "/sys"};
    struct collector *collector = NULL;
    struct error err = {0};
    assert_int_equal(disk_collector.open(&config, &collector, &err), -ENODEV);
    assert_non_null(strstr(err.text, "/diskstats'"));
}

static void without_memory_a_tick_is_lost_and_the_next_is_whole(void **state)
{
    (void)state;
    const struct sample_config config = {.proc_path = RECORDED_DIR "/linux-3.10/proc",
                                         .sys_path = RECORDED_DIR "/linux-3.10/sys"};
    for (size_t n = 0;; n++) {
        struct collector *collector = NULL;
        allocation_fail_at(n);
        int rc = disk_collector.open(&config, &collector, NULL);
        if (rc == 0)
            rc = disk_collector.read(collector, 0, NULL);
        bool has_failed = allocation_stop();
        assert_true(rc == 0 || (has_failed && rc == -ENOMEM));
        if (collector != NULL) {
            assert_int_equal(disk_collector.read(collector, 0, NULL), 0);
            assert_int_equal(disk_collector.table(collector)->rows_count, 2);
        }
        disk_collector.close(collector);
        if (!has_failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_a_line_is_in_its_column),
        cmocka_unit_test(the_trees_of_real_kernels_are_understood),
        cmocka_unit_test(hundreds_of_disks_with_partitions_have_a_row_each),
        cmocka_unit_test(what_sys_does_not_know_is_no_partition),
        cmocka_unit_test(loop_and_ram_devices_have_no_row_and_zram_has),
        cmocka_unit_test(a_name_is_asked_about_once),
        cmocka_unit_test(a_device_that_is_listed_twice_has_one_row),
        cmocka_unit_test(zeros_after_the_first_line_leave_the_first_line),
        cmocka_unit_test(a_bad_line_spoils_itself_alone),
        cmocka_unit_test(numbers_that_no_disk_has_are_unknown),
        cmocka_unit_test(a_machine_without_disks_has_no_rows_but_a_vanished_text_is_a_failure),
        cmocka_unit_test(a_disk_that_is_plugged_in_later_gets_its_label),
        cmocka_unit_test(a_tree_without_diskstats_is_told_once_at_open),
        cmocka_unit_test(without_memory_a_tick_is_lost_and_the_next_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
