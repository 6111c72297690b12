/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/frequency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "starve.h"

static struct collector *open_frequency(const char *sys_path, unsigned per_tick)
{
    struct sample_config config = {
        .proc_path = "/proc", .sys_path = sys_path, .mount_prefix = "", .frequency_per_tick = per_tick};
    return drive_open(&frequency_collector, &config);
}

/* Which CPUs are known after a tick, as "cpu0=2400000 cpu1=…". */
static void expect_known(struct collector *collector, const char *expected)
{
    const struct sample_table *table = drive_read(&frequency_collector, collector, 0);
    CLEANUP(buf_cleanup) struct buf known;
    buf_init(&known, 4096);
    for (size_t i = 0; i < table->rows_count; i++) {
        if (table->rows[i]->values[0].is_known)
            buf_printf(&known, "%s=%lld ", table->rows[i]->name, (long long)table->rows[i]->values[0].integer);
    }
    assert_string_equal(buf_string(&known), expected);
}

static void cpus_are_asked_in_turn(void **state)
{
    (void)state;
    struct collector *collector = open_frequency(RECORDED_DIR "/cpufreq/sys", 3);
    for (int rounds = 0; rounds < 2; rounds++) {
        expect_known(collector, "cpu0=2400000 cpu1=2500000 cpu2=3600123 ");
        expect_known(collector, "cpu10=800000 ");
        assert_int_equal(frequency_collector.table(collector)->rows_count, 4); /* cpu3 is offline */
    }
    frequency_collector.close(collector);
}

static void many_at_once_are_all(void **state)
{
    (void)state;
    struct collector *collector = open_frequency(RECORDED_DIR "/cpufreq/sys", 0);
    expect_known(collector, "cpu0=2400000 cpu1=2500000 cpu2=3600123 cpu10=800000 ");
    expect_known(collector, "cpu0=2400000 cpu1=2500000 cpu2=3600123 cpu10=800000 ");
    frequency_collector.close(collector);
}

static void cpus_that_come_or_go_are_seen_in_the_next_turn(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    drive_write(&scratch, "devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1\n");
    drive_write(&scratch, "devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2\n");
    struct collector *collector = open_frequency(scratch.path, 1);
    expect_known(collector, "cpu0=1 ");
    assert_int_equal(unlink(scratch_path(&scratch, "devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", path)), 0);
    drive_write(&scratch, "devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "<unknown>\n");
    expect_known(collector, "");
    expect_known(collector, "cpu0=1 ");
    assert_null(lookup_row(frequency_collector.table(collector), "cpu1"));
    assert_non_null(lookup_row(frequency_collector.table(collector), "cpu2"));
    expect_known(collector, "");
    frequency_collector.close(collector);
}

static void machine_without_cpufreq_has_no_collector(void **state)
{
    (void)state;
    struct sample_config config = {.proc_path = "/proc", .sys_path = "/nowhere", .mount_prefix = ""};
    assert_non_null(strstr(drive_lacks(&frequency_collector, &config), "'/nowhere/devices/system/cpu/"));
    assert_true(frequency_collector.is_optional);
}

static void memory_that_runs_out_spoils_one_tick_at_most(void **state)
{
    (void)state;
    struct sample_config config = {.proc_path = "/proc", .sys_path = RECORDED_DIR "/cpufreq/sys", .mount_prefix = ""};
    starve_open(&frequency_collector, &config);
    starve_read(&frequency_collector, &config, "cpu10");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpus_are_asked_in_turn),
        cmocka_unit_test(many_at_once_are_all),
        cmocka_unit_test(cpus_that_come_or_go_are_seen_in_the_next_turn),
        cmocka_unit_test(machine_without_cpufreq_has_no_collector),
        cmocka_unit_test(memory_that_runs_out_spoils_one_tick_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
