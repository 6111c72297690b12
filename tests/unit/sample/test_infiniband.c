/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/infiniband.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "starve.h"

static struct collector *open_infiniband(const char *sys_path)
{
    struct sample_config config = {.proc_path = "/proc", .sys_path = sys_path, .mount_prefix = ""};
    return drive_open(&infiniband_collector, &config);
}

static void expect_raw(const struct sample_table *table, const char *row, const char *column, uint64_t raw)
{
    struct sample_value value = lookup_value(table, row, column);
    if (!value.is_known || value.raw != raw)
        fail_msg("%s of %s is %llu (%s), expected %llu", column, row, (unsigned long long)value.raw,
                 value.is_known ? "known" : "unknown", (unsigned long long)raw);
}

static void ports_have_their_counters_in_bytes(void **state)
{
    (void)state;
    struct collector *collector = open_infiniband(RECORDED_DIR "/infiniband/sys");
    static const char *const rows[] = {"mlx4_0/1", "mlx5_0/1", "mlx5_10/1", "mlx5_10/2"};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        (void)drive_until(&infiniband_collector, collector, clock_boot_ns(), rows[i], true);
    const struct sample_table *table = infiniband_collector.table(collector);
    assert_int_equal(table->rows_count, ARRAY_LENGTH(rows)); /* rxe0 has no counters */
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        assert_string_equal(table->rows[i]->name, rows[i]);

    static const struct {
        const char *column;
        uint64_t raw;
    } expected[] = {
        {"bytes_recv", 4000},    {"bytes_sent", 8000},          {"packets_recv", 300},   {"packets_sent", 400},
        {"recv_errors", 5},      {"recv_remote_errors", 6},     {"send_discards", 7},    {"send_wait", 8000},
        {"symbol_errors", 9},    {"link_integrity_errors", 10}, {"link_recoveries", 11}, {"link_downed", 12},
        {"buffer_overruns", 13}, {"out_of_buffer", 14},         {"out_of_sequence", 15}, {"sequence_errors", 16},
        {"ack_timeouts", 17},    {"rnr_retries", 18},           {"congestion_sent", 19}, {"congestion_handled", 20},
        {"ecn_marked", 21},
    };
    assert_int_equal(table->columns_count, ARRAY_LENGTH(expected));
    for (size_t i = 0; i < ARRAY_LENGTH(expected); i++)
        expect_raw(table, "mlx5_0/1", expected[i].column, expected[i].raw);
    expect_raw(table, "mlx5_10/2", "bytes_recv", 4008);
    assert_false(lookup_value(table, "mlx5_10/2", "out_of_buffer").is_known);
    assert_string_equal(lookup_row(table, "mlx5_0/1")->label, "ACTIVE, 200 Gb/sec (4X HDR)");
    assert_string_equal(lookup_row(table, "mlx5_10/1")->label, "DOWN, 10 Gb/sec (4X SDR)");

    /* an old driver's 32-bit counters are at their end, its 64-bit ones go on */
    expect_raw(table, "mlx4_0/1", "bytes_recv", UINT64_C(20000000000));
    expect_raw(table, "mlx4_0/1", "bytes_sent", UINT64_C(24000000000));
    expect_raw(table, "mlx4_0/1", "packets_recv", UINT64_C(7000000000));
    infiniband_collector.close(collector);
}

static void omnipath_has_the_same_counters(void **state)
{
    (void)state;
    struct collector *collector = open_infiniband(RECORDED_DIR "/omnipath/sys");
    (void)drive_until(&infiniband_collector, collector, clock_boot_ns(), "hfi1_0/1", true);
    const struct sample_table *table = infiniband_collector.table(collector);
    expect_raw(table, "hfi1_0/1", "bytes_recv", 4016);
    assert_false(lookup_value(table, "hfi1_0/1", "send_wait").is_known);
    infiniband_collector.close(collector);
}

static void counters_that_make_no_sense_are_unknown(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    drive_write(&scratch, "class/infiniband/x/ports/1/state", "rubbish");
    drive_write(&scratch, "class/infiniband/x/ports/1/rate", "");
    drive_write(&scratch, "class/infiniband/x/ports/1/counters/port_rcv_data", "9223372036854775807\n");
    drive_write(&scratch, "class/infiniband/x/ports/1/counters/port_xmit_data", "-1\n");
    drive_write(&scratch, "class/infiniband/x/ports/1/counters/link_downed", "3\n");
    drive_write(&scratch, "class/infiniband/x/ports/1/counters/symbol_error", "N/A (no PMA)\n");
    struct collector *collector = open_infiniband(scratch.path);
    (void)drive_until(&infiniband_collector, collector, clock_boot_ns(), "x/1", true);
    const struct sample_table *table = infiniband_collector.table(collector);
    expect_raw(table, "x/1", "link_downed", 3);
    assert_false(lookup_value(table, "x/1", "bytes_recv").is_known); /* four times that is too much */
    assert_false(lookup_value(table, "x/1", "bytes_sent").is_known);
    assert_false(lookup_value(table, "x/1", "symbol_errors").is_known);
    assert_string_equal(lookup_row(table, "x/1")->label, "rubbish, ");
    infiniband_collector.close(collector);
}

static void machine_without_infiniband_has_no_collector(void **state)
{
    (void)state;
    struct sample_config config = {.proc_path = "/proc", .sys_path = "/nowhere", .mount_prefix = ""};
    assert_string_equal(drive_lacks(&infiniband_collector, &config), "no /nowhere/class/infiniband");
}

static void memory_that_runs_out_spoils_one_tick_at_most(void **state)
{
    (void)state;
    struct sample_config config = {
        .proc_path = "/proc", .sys_path = RECORDED_DIR "/infiniband/sys", .mount_prefix = ""};
    starve_open(&infiniband_collector, &config);
    starve_read(&infiniband_collector, &config, "mlx5_0/1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_have_their_counters_in_bytes),
        cmocka_unit_test(omnipath_has_the_same_counters),
        cmocka_unit_test(counters_that_make_no_sense_are_unknown),
        cmocka_unit_test(machine_without_infiniband_has_no_collector),
        cmocka_unit_test(memory_that_runs_out_spoils_one_tick_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
