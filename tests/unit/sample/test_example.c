/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/example.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "drive.h"

static void open_files_are_those_in_use(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        int64_t open;
        bool has_max;
        int64_t max;
    } cases[] = {
        {"old kernel", "1216\t16\t98164\n", 1200, true, 98164},
        {"no limit", "1216\t0\t9223372036854775807\n", 1216, false, 0},
        {"newer kernel with more numbers", "7 0 8 9 10\n", 7, true, 8},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct sample_table table;
        assert_int_equal(example_table_init(&table, NULL), 0);
        assert_int_equal(example_parse(cases[i].text, strlen(cases[i].text), &table, NULL), 0);
        struct sample_value open = lookup_value(&table, "files", "open");
        struct sample_value max = lookup_value(&table, "files", "max");
        if (open.integer != cases[i].open || max.is_known != cases[i].has_max ||
            (max.is_known && max.integer != cases[i].max))
            fail_msg("%s: %lld open", cases[i].name, (long long)open.integer);
        sample_table_fini(&table);
    }
}

static void text_without_sense_leaves_the_table_as_it_was(void **state)
{
    (void)state;
    static const char good[] = "5\t0\t6\n";
    static const char *const bad[] = {"", "\n", "5", "5\t0", "x 0 6", "5 0 99999999999999999999"};
    struct sample_table table;
    assert_int_equal(example_table_init(&table, NULL), 0);
    assert_int_equal(example_parse(good, strlen(good), &table, NULL), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        struct error err = {0};
        assert_int_equal(example_parse(bad[i], strlen(bad[i]), &table, &err), -EBADMSG);
        assert_int_equal(lookup_value(&table, "files", "open").integer, 5);
    }
    sample_table_fini(&table);
}

static void this_machine_has_open_files(void **state)
{
    (void)state;
    struct sample_config config = {.proc_path = "/proc", .sys_path = "/sys", .mount_prefix = ""};
    struct collector *collector = drive_open(&example_collector, &config);
    const struct sample_table *table = drive_read(&example_collector, collector, clock_boot_ns());
    assert_true(lookup_value(table, "files", "open").integer > 0);
    example_collector.close(collector);
}

static void machine_without_the_file_has_no_collector(void **state)
{
    (void)state;
    struct sample_config config = {.proc_path = "/nowhere", .sys_path = "/sys", .mount_prefix = ""};
    assert_string_equal(drive_lacks(&example_collector, &config), "no '/nowhere/sys/fs/file-nr'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_files_are_those_in_use),
        cmocka_unit_test(text_without_sense_leaves_the_table_as_it_was),
        cmocka_unit_test(this_machine_has_open_files),
        cmocka_unit_test(machine_without_the_file_has_no_collector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
