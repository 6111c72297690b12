/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/temperature.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "starve.h"

struct expectation {
    const char *row;
    const char *label;
    double celsius;
};

static void expect_rows(const char *sys_path, const struct expectation *expected, size_t count)
{
    struct sample_config config = {.proc_path = "/proc", .sys_path = sys_path, .mount_prefix = ""};
    struct collector *collector = drive_open(&temperature_collector, &config);
    for (size_t i = 0; i < count; i++)
        (void)drive_until(&temperature_collector, collector, clock_boot_ns(), expected[i].row, true);
    const struct sample_table *table = temperature_collector.table(collector);
    assert_int_equal(table->rows_count, count);
    for (size_t i = 0; i < count; i++) {
        const struct sample_row *row = table->rows[i];
        double celsius = row->values[0].real;
        if (strcmp(row->name, expected[i].row) != 0 || strcmp(row->label, expected[i].label) != 0 ||
            fabs(celsius - expected[i].celsius) > 1e-9)
            fail_msg("row %zu is '%s', '%s', %g; expected '%s', '%s', %g", i, row->name, row->label, celsius,
                     expected[i].row, expected[i].label, expected[i].celsius);
    }
    temperature_collector.close(collector);
}

static void sensors_are_named_after_their_hardware(void **state)
{
    (void)state;
    static const struct expectation expected[] = {
        {"coretemp.0/temp1", "coretemp Package id 0", 45}, {"coretemp.0/temp2", "coretemp Core 0", 43},
        {"coretemp.0/temp3", "coretemp Core 1", 42},       {"coretemp.0/temp10", "coretemp Core 8", 35},
        {"coretemp.1/temp1", "coretemp Package id 1", 52}, {"coretemp.1/temp2", "coretemp Core 0", 50},
        {"coretemp.1/temp3", "coretemp Core 1", 49},       {"coretemp.1/temp10", "coretemp Core 8", 42},
        {"nvme0/temp1", "nvme Composite", 38.85},          {"nvme0/temp2", "nvme temp2", -5},
        {"0000:00:18.3/temp1", "k10temp temp1", 61.25}, /* its files are where Linux 3.10 has them */
        {"hwmon5/temp4", "strange \"chip\" temp4", 22}, /* its other files hold no numbers */
        {"0000:c1:00.0/temp1", "amdgpu edge", 47},
    };
    expect_rows(RECORDED_DIR "/sensors/sys", expected, ARRAY_LENGTH(expected));
}

static void thermal_zones_stand_in_for_hwmon(void **state)
{
    (void)state;
    static const struct expectation expected[] = {
        {"thermal_zone0", "cpu-thermal", 48.312},
        {"thermal_zone1", "gpu-thermal", 47.1},
    };
    expect_rows(RECORDED_DIR "/aarch64/sys", expected, ARRAY_LENGTH(expected));
}

static void machine_without_sensors_has_no_collector(void **state)
{
    (void)state;
    struct sample_config config = {.proc_path = "/proc", .sys_path = "/nowhere", .mount_prefix = ""};
    assert_string_equal(drive_lacks(&temperature_collector, &config),
                        "no sensor in '/nowhere/class/hwmon' or '/nowhere/class/thermal'");
}

static void memory_that_runs_out_spoils_one_tick_at_most(void **state)
{
    (void)state;
    struct sample_config config = {.proc_path = "/proc", .sys_path = RECORDED_DIR "/sensors/sys", .mount_prefix = ""};
    starve_open(&temperature_collector, &config);
    starve_read(&temperature_collector, &config, "nvme0/temp1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sensors_are_named_after_their_hardware),
        cmocka_unit_test(thermal_zones_stand_in_for_hwmon),
        cmocka_unit_test(machine_without_sensors_has_no_collector),
        cmocka_unit_test(memory_that_runs_out_spoils_one_tick_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
