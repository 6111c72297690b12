/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/power.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "starve.h"

static const int64_t second_ns = CLOCK_NS_PER_SECOND;

static struct collector *open_power(const char *sys_path)
{
    struct sample_config config = {.proc_path = "/proc", .sys_path = sys_path, .mount_prefix = ""};
    return drive_open(&power_collector, &config);
}

static void expect_group(const struct sample_table *table, const char *row, const char *group)
{
    assert_non_null(lookup_row(table, row));
    assert_string_equal(lookup_row(table, row)->group, group);
}

static void expect_watts(const struct sample_table *table, const char *row, double watts)
{
    struct sample_value value = lookup_value(table, row, "power_watts");
    if (!value.is_known || fabs(value.real - watts) > 1e-9)
        fail_msg("%s has %g watts (%s), expected %g", row, value.real, value.is_known ? "known" : "unknown", watts);
}

static void power_of_rapl_is_what_was_used_since_the_last_tick(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    drive_copy(&scratch, RECORDED_DIR "/power-rapl/sys", "sys");
    char sys_path[PATH_MAX];
    struct collector *collector = open_power(scratch_path(&scratch, "sys", sys_path));

    const struct sample_table *table = drive_read(&power_collector, collector, second_ns);
    assert_int_equal(table->rows_count, 9);
    assert_false(lookup_value(table, "package-0", "power_watts").is_known);
    expect_group(table, "package-0", "cpu");
    expect_group(table, "dram-1", "memory");
    expect_group(table, "psys", "node");

    drive_write(&scratch, "sys/class/powercap/intel-rapl:0/energy_uj", "111300000000\n");
    table = drive_read(&power_collector, collector, 3 * second_ns);
    assert_int_equal(lookup_value(table, "package-0", "energy_uj").increase, 300000000);
    expect_watts(table, "package-0", 150);
    expect_watts(table, "dram-0", 0);

    /* through the end of the range: 262143328850 - 262143300000 + 171150 = 200000 */
    drive_write(&scratch, "sys/class/powercap/intel-rapl:0/energy_uj", "262143300000\n");
    (void)drive_read(&power_collector, collector, 1000 * second_ns);
    drive_write(&scratch, "sys/class/powercap/intel-rapl:0/energy_uj", "171150\n");
    table = drive_read(&power_collector, collector, 1001 * second_ns);
    assert_int_equal(lookup_value(table, "package-0", "energy_uj").increase, 200000);
    expect_watts(table, "package-0", 0.2);

    table = drive_read(&power_collector, collector, 1001 * second_ns); /* no time has passed */
    assert_false(lookup_value(table, "package-0", "power_watts").is_known);
    power_collector.close(collector);
}

static void blade_tells_power_itself(void **state)
{
    (void)state;
    struct collector *collector = open_power(RECORDED_DIR "/power-cray/sys");
    const struct sample_table *table = drive_read(&power_collector, collector, second_ns);
    assert_int_equal(table->rows_count, 5);
    expect_watts(table, "node", 412);
    assert_int_equal(lookup_value(table, "accel0", "energy_uj").raw, UINT64_C(500000000000));
    expect_group(table, "accel1", "gpu");
    drive_expect_notes(&power_collector, collector, "");
    power_collector.close(collector);
}

static void hwmon_devices_with_power_are_grouped_by_their_driver(void **state)
{
    (void)state;
    struct collector *collector = open_power(RECORDED_DIR "/sensors/sys");
    (void)drive_until(&power_collector, collector, clock_boot_ns(), "ACPI000D:00/power1", true);
    (void)drive_until(&power_collector, collector, clock_boot_ns(), "0000:c1:00.0/power1", true);
    (void)drive_until(&power_collector, collector, clock_boot_ns(), "amd_energy.0/energy3", true);
    const struct sample_table *table = power_collector.table(collector);
    assert_int_equal(table->rows_count, 5);
    expect_watts(table, "ACPI000D:00/power1", 245);
    expect_group(table, "ACPI000D:00/power1", "node");
    assert_string_equal(lookup_row(table, "ACPI000D:00/power1")->label, "power_meter Module Power Socket 0");
    expect_watts(table, "0000:c1:00.0/power1", 95);
    expect_group(table, "0000:c1:00.0/power1", "gpu");
    assert_int_equal(lookup_value(table, "amd_energy.0/energy3", "energy_uj").raw, UINT64_C(9999888777));
    expect_group(table, "amd_energy.0/energy3", "cpu");
    power_collector.close(collector);
}

static void machine_without_power_has_no_collector(void **state)
{
    (void)state;
    struct sample_config config = {.proc_path = "/proc", .sys_path = "/nowhere", .mount_prefix = ""};
    assert_non_null(strstr(drive_lacks(&power_collector, &config), "'/nowhere/class/powercap/intel-rapl:*'"));
}

static void zones_that_only_root_may_read_are_said(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    drive_write(&scratch, "class/powercap/intel-rapl:0/name", "package-0\n");
    drive_write(&scratch, "class/powercap/intel-rapl:0/energy_uj", "1\n");
    char path[PATH_MAX];
    assert_int_equal(chmod(scratch_path(&scratch, "class/powercap/intel-rapl:0/energy_uj", path), 0), 0);
    for (char *end = strrchr(path, '/'); strlen(path) > strlen(scratch.path); end = strrchr(path, '/')) {
        *end = '\0'; /* the directories are for all to see */
        assert_int_equal(chmod(path, 0755), 0);
    }

    static const uid_t nobody = 65534;
    bool is_root = geteuid() == 0;
    assert_int_equal(is_root ? seteuid(nobody) : 0, 0);
    struct sample_config config = {.proc_path = "/proc", .sys_path = scratch.path, .mount_prefix = ""};
    struct collector *collector = NULL;
    struct error err = {0};
    int rc = power_collector.open(&config, &collector, &err);
    assert_int_equal(is_root ? seteuid(0) : 0, 0);
    assert_int_equal(rc, -EACCES);
    assert_non_null(strstr(err.text, "the 1 zones of '"));
    assert_non_null(strstr(err.text, "may be read by root only"));
}

static void memory_that_runs_out_spoils_one_tick_at_most(void **state)
{
    (void)state;
    static const struct {
        const char *sys_path, *row;
    } trees[] = {
        {RECORDED_DIR "/power-rapl/sys", "dram-1"},
        {RECORDED_DIR "/power-cray/sys", "accel1"},
        {RECORDED_DIR "/sensors/sys", "amd_energy.0/energy3"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(trees); i++) {
        struct sample_config config = {.proc_path = "/proc", .sys_path = trees[i].sys_path, .mount_prefix = ""};
        starve_open(&power_collector, &config);
        starve_read(&power_collector, &config, trees[i].row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_of_rapl_is_what_was_used_since_the_last_tick),
        cmocka_unit_test(blade_tells_power_itself),
        cmocka_unit_test(hwmon_devices_with_power_are_grouped_by_their_driver),
        cmocka_unit_test(machine_without_power_has_no_collector),
        cmocka_unit_test(zones_that_only_root_may_read_are_said),
        cmocka_unit_test(memory_that_runs_out_spoils_one_tick_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
