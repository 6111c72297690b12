/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/network.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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
    assert_int_equal(network_table_init(&table, NULL), 0);
    return table;
}

static void parse(struct sample_table *table, const char *text)
{
    struct error err = {0};
    if (network_parse(text, strlen(text), table, &err) < 0)
        fail_msg("%s", err.text);
}

static void parse_tree(struct sample_table *table, const char *tree)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s/proc/net/dev", RECORDED_DIR, tree);
    CLEANUP(buf_cleanup) struct buf text = lookup_text(path);
    assert_int_equal(network_parse(text.data, text.length, table, NULL), 0);
}

#define HEADER                                                                                                         \
    "Inter-|   Receive                                                |  Transmit\n"                                   \
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls "         \
    "carrier compressed\n"

static void assert_raw(const struct sample_table *table, const char *interface, const char *column, uint64_t raw)
{
    struct sample_value value = lookup_value(table, interface, column);
    if (!value.is_known || value.raw != raw)
        fail_msg("%s of '%s' is %llu", column, interface, (unsigned long long)value.raw);
}

static void every_number_of_a_line_is_in_its_column(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse_tree(&table, "linux-3.10");
    assert_int_equal(table.rows_count, 2); /* no lo */
    static const struct {
        const char *column;
        uint64_t raw;
    } right[] = {
        {"bytes_recv", 982345678901},
        {"packets_recv", 812345678},
        {"rx_errors", 3},
        {"rx_dropped", 17},
        {"rx_fifo_errors", 1},
        {"rx_frame_errors", 2},
        {"multicast_recv", 4123456},
        {"bytes_sent", 512345678901},
        {"packets_sent", 612345678},
        {"tx_errors", 4},
        {"tx_dropped", 5},
        {"tx_fifo_errors", 6},
        {"collisions", 7},
        {"tx_carrier_errors", 8},
    };
    assert_int_equal(ARRAY_LENGTH(right), table.columns_count);
    for (size_t i = 0; i < ARRAY_LENGTH(right); i++)
        assert_raw(&table, "eth0", right[i].column, right[i].raw);
    assert_raw(&table, "ib0", "tx_dropped", 12);
}

static void the_files_of_real_kernels_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *tree, *interface;
        size_t rows;
    } trees[] = {{"linux-4.18", "hsn0", 2}, {"linux-6.18", "eth0", 3}, {"aarch64", "enP2p1s0f0", 1}};
    for (size_t i = 0; i < ARRAY_LENGTH(trees); i++) {
        CLEANUP(table_cleanup) struct sample_table table = table_new();
        parse_tree(&table, trees[i].tree);
        assert_int_equal(table.rows_count, trees[i].rows);
        assert_non_null(lookup_row(&table, trees[i].interface));
        assert_null(lookup_row(&table, "lo"));
        assert_int_equal(table.lines_bad, 0);
    }
}

static void columns_follow_the_header(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse(&table, "Inter-|   Receive | Transmit\n"
                  " face |packets new bytes drop errs|colls bytes errs packets\n"
                  "  eth0: 1 2 3 4 5 6 7 8 9\n");
    assert_raw(&table, "eth0", "packets_recv", 1);
    assert_raw(&table, "eth0", "bytes_recv", 3);
    assert_raw(&table, "eth0", "rx_dropped", 4);
    assert_raw(&table, "eth0", "rx_errors", 5);
    assert_raw(&table, "eth0", "collisions", 6);
    assert_raw(&table, "eth0", "bytes_sent", 7);
    assert_raw(&table, "eth0", "tx_errors", 8);
    assert_raw(&table, "eth0", "packets_sent", 9);
    assert_false(lookup_value(&table, "eth0", "tx_dropped").is_known);
    assert_false(lookup_value(&table, "eth0", "multicast_recv").is_known);
}

static void names_hold_any_bytes_up_to_the_last_colon(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse_tree(&table, "odd-names");
    static const char *const names[] = {"my net", "say \"hi\"",     "eth0:1",      "a:b: c",
                                        "d'e\\f", "m\xc3\xbcnchen", "bad\xff\x01", "x|y|bytes"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        assert_raw(&table, names[i], "bytes_recv", (i + 1) * 1000);
        assert_raw(&table, names[i], "bytes_sent", (i + 1) * 1000 + 1);
        assert_raw(&table, names[i], "packets_sent", 4);
    }
    assert_raw(&table, "1 2 3", "bytes_recv", 10000);
    assert_int_equal(table.rows_count, ARRAY_LENGTH(names) + 1);
    assert_int_equal(table.lines_bad, 1); /* a name of blanks alone can't be told from the kernel's padding */
}

static void numbers_may_stand_right_behind_the_colon(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse(&table, HEADER "eth0:4294967295 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n");
    assert_raw(&table, "eth0", "bytes_recv", 4294967295);
    assert_raw(&table, "eth0", "bytes_sent", 8);
}

static void a_counter_that_wraps_is_reset_or_reads_0_makes_no_traffic(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    static const uint64_t bytes[] = {4294967000, 200, 0, 500, 700, 0, 800};
    static const uint64_t increases[] = {0, 0, 0, 500, 200, 0, 100};
    uint64_t total = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(bytes); i++) {
        char text[512];
        (void)snprintf(text, sizeof text, HEADER "eth0: %llu 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
                       (unsigned long long)bytes[i]);
        parse(&table, text);
        struct sample_value value = lookup_value(&table, "eth0", "bytes_recv");
        assert_int_equal(value.increase, increases[i]);
        assert_true(value.total >= total);
        total = value.total;
    }
}

static void interfaces_of_containers_come_and_go_without_leaving_anything(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    for (unsigned i = 0; i < 2000; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       HEADER "veth%x: 5 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0\neth0: %u 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", i,
                       i);
        parse(&table, text);
        assert_int_equal(table.rows_count, 2);
        assert_int_equal(lookup_value(&table, "eth0", "bytes_recv").total, i);
    }
    assert_true(table.rows_capacity <= 8);
}

static void a_bad_line_spoils_itself_alone(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        size_t rows;
        uint64_t bad;
    } bad[] = {
        {"no colon 1 2 3\n", 2, 1},
        {": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", 2, 1},
        {"e1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n", 3, 1},
        {"e1: 1 2 x 4 5 6 7 8 9 10 11 12 13 14 15 16\n", 3, 1},
        {"e1: -1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", 3, 1},
        {"e1: 18446744073709551616 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", 3, 1},
        {"e1: 18446744073709551615 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", 3, 0},
        {"eth0: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n", 2, 0},
        {"\n", 2, 1},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        CLEANUP(table_cleanup) struct sample_table table = table_new();
        char text[1024];
        (void)snprintf(text, sizeof text,
                       HEADER "eth0: 7 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n%seth2: 8 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
                       bad[i].line);
        parse(&table, text);
        if (table.rows_count != bad[i].rows || table.lines_bad != bad[i].bad)
            fail_msg("%s: %zu rows, %llu bad", bad[i].line, table.rows_count, (unsigned long long)table.lines_bad);
        assert_raw(&table, "eth0", "bytes_recv", 7);
        assert_raw(&table, "eth2", "bytes_recv", 8);
    }
}

static void a_text_without_header_leaves_the_table_as_it_was(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new();
    parse(&table, HEADER "eth0: 7 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
    static const char nuls[4096];
    static const char *const bad[] = {"", "Inter-|   Receive | Transmit\n", " face |bytes packets\n",
                                      "eth0: 7 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        assert_int_equal(network_parse(bad[i], strlen(bad[i]), &table, NULL), -EBADMSG);
    assert_int_equal(network_parse(nuls, sizeof nuls, &table, NULL), -EBADMSG);
    assert_raw(&table, "eth0", "bytes_recv", 7);
    parse(&table, HEADER); /* no interfaces are no fault */
    assert_int_equal(table.rows_count, 0);
}

static void the_collector_finds_the_file_in_either_place(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    const struct sample_config config = {.proc_path = scratch.path, .sys_path = "/sys"};
    struct collector *collector = NULL;
    struct error err = {0};
    char path[PATH_MAX];
    assert_int_equal(mkdir(scratch_path(&scratch, "self", path), 0700), 0);
    assert_int_equal(mkdir(scratch_path(&scratch, "self/net", path), 0700), 0);
    assert_int_equal(network_collector.open(&config, &collector, &err), -ENODEV);
    assert_non_null(strstr(err.text, "/net/dev'"));

    static const char *const names[] = {"self/net/dev", "net/dev"}; /* the one found first comes last */
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        char text[512];
        int length = snprintf(text, sizeof text, HEADER "eth%zu: 7 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", i);
        scratch_write(&scratch, names[i], text, (size_t)length);
        assert_int_equal(network_collector.open(&config, &collector, &err), 0);
        assert_int_equal(network_collector.read(collector, 0, &err), 0);
        assert_string_equal(network_collector.table(collector)->rows[0]->name, i == 0 ? "eth0" : "eth1");
        network_collector.close(collector);
        if (i == 0)
            assert_int_equal(mkdir(scratch_path(&scratch, "net", path), 0700), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_a_line_is_in_its_column),
        cmocka_unit_test(the_files_of_real_kernels_are_understood),
        cmocka_unit_test(columns_follow_the_header),
        cmocka_unit_test(names_hold_any_bytes_up_to_the_last_colon),
        cmocka_unit_test(numbers_may_stand_right_behind_the_colon),
        cmocka_unit_test(a_counter_that_wraps_is_reset_or_reads_0_makes_no_traffic),
        cmocka_unit_test(interfaces_of_containers_come_and_go_without_leaving_anything),
        cmocka_unit_test(a_bad_line_spoils_itself_alone),
        cmocka_unit_test(a_text_without_header_leaves_the_table_as_it_was),
        cmocka_unit_test(the_collector_finds_the_file_in_either_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
