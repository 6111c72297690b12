/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/power.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sample/devices.h"
#include "sample/pmcounters.h"
#include "sample/rapl.h"
#include "sample/sensors.h"
#include "util/clock.h"

static const struct sample_column power_columns[POWER_COLUMNS] = {
    [POWER_ENERGY] = {"energy_uj", "microjoules", "energy used", SAMPLE_COUNTER},
    [POWER_WATTS] = {"power_watts", "watts", "power now, or on average since the previous tick", SAMPLE_REAL},
};

/* The sensors of hwmon, in millionths of watts and joules; where a chip has both kinds of power, the first is taken. */
enum power_sensor { POWER_SENSOR_AVERAGE, POWER_SENSOR_INPUT, POWER_SENSOR_ENERGY };
static const struct sensors_pattern power_sensors[] = {
    [POWER_SENSOR_AVERAGE] = {"power", "_average"},
    [POWER_SENSOR_INPUT] = {"power", "_input"},
    [POWER_SENSOR_ENERGY] = {"energy", "_input"},
};
static const double power_units_per_watt = 1e6;
static const uint64_t power_microjoules_per_joule = 1000000;

/* What hwmon's drivers measure; the label decides where one driver has several (NVIDIA Grace, through ACPI). */
static const struct {
    const char *chip;  /* start of the driver's name */
    const char *label; /* start of the label after the chip's name, or "" */
    const char *group;
} power_groups[] = {
    {"amdgpu", "", "gpu"},       {"i915", "", "gpu"},           {"xe", "", "gpu"},
    {"nouveau", "", "gpu"},      {"amd_energy", "", "cpu"},     {"fam15h_power", "", "cpu"},
    {"zenpower", "", "cpu"},     {"power_meter", "CPU", "cpu"}, {"power_meter", "Grace", "cpu"},
    {"power_meter", "", "node"},
};

struct collector {
    struct rapl rapl;
    struct pmcounters pmcounters;
    struct devices *hwmon; /* or NULL */
    bool is_denial_said;
    int64_t read_boot_ns; /* of the previous tick; 0 before the first */
    struct sample_table table;
};

static bool power_describe(struct device *device)
{
    return sensors_describe(device, power_sensors, ARRAY_LENGTH(power_sensors));
}

static const struct devices_class power_hwmon = {
    .path = "class/hwmon",
    .describe = power_describe,
    .free_layout = sensors_free,
};

static void power_close(struct collector *collector)
{
    if (collector == NULL)
        return;
    rapl_fini(&collector->rapl);
    pmcounters_fini(&collector->pmcounters);
    devices_free(collector->hwmon);
    sample_table_fini(&collector->table);
    free(collector);
}

DEFINE_CLEANUP(collector, power_close);

static int power_open(const struct sample_config *config, struct collector **out_collector, struct error *err)
{
    CLEANUP(collector_cleanup) struct collector *collector = calloc(1, sizeof *collector);
    if (collector == NULL)
        return error_set(err, -ENOMEM, "no memory for a collector");
    int rc = sample_table_init(&collector->table, power_columns, POWER_COLUMNS, 0, err);
    if (rc == 0)
        rc = rapl_init(&collector->rapl, config->sys_path, err);
    if (rc == 0)
        rc = pmcounters_init(&collector->pmcounters, config->sys_path, err);
    if (rc < 0)
        return rc;
    rc = devices_open(&power_hwmon, config->sys_path, &collector->hwmon, err);
    if (rc < 0 && rc != -ENODEV)
        return rc;
    if (collector->rapl.count == 0 && collector->pmcounters.count == 0 && collector->hwmon == NULL) {
        if (collector->rapl.denied > 0)
            return error_set(err, -EACCES, "the %zu zones of '%s/class/powercap' may be read by root only",
                             collector->rapl.denied, config->sys_path);
        return error_set(err, -ENODEV, "no '%s/class/powercap/intel-rapl:*', cray/pm_counters, or hwmon with power",
                         config->sys_path);
    }
    *out_collector = TAKE(collector);
    return 0;
}

/* A row with its energy, and the power that follows from it. NULL when there is no row. */
static struct sample_row *power_fill_energy(struct collector *collector, const char *name, uint64_t energy_uj,
                                            int64_t now_boot_ns)
{
    struct sample_row *row = sample_table_row(&collector->table, name, strlen(name));
    if (row == NULL)
        return NULL;
    sample_row_count(row, POWER_ENERGY, energy_uj);
    int64_t duration_us = (now_boot_ns - collector->read_boot_ns) / CLOCK_NS_PER_US;
    if (!row->is_first && duration_us > 0)
        sample_row_real(row, POWER_WATTS, (double)row->values[POWER_ENERGY].increase / (double)duration_us);
    return row;
}

static void power_read_rapl(struct collector *collector, int64_t now_boot_ns)
{
    for (size_t i = 0; i < collector->rapl.count; i++) {
        struct rapl_zone *zone = &collector->rapl.zones[i];
        uint64_t energy_uj;
        if (!rapl_zone_read(zone, now_boot_ns, &energy_uj))
            continue;
        struct sample_row *row = power_fill_energy(collector, zone->name, energy_uj, now_boot_ns);
        if (row != NULL)
            row->group = zone->group;
    }
}

static void power_read_pmcounters(struct collector *collector)
{
    for (size_t i = 0; i < collector->pmcounters.count; i++) {
        struct pmcounters_part *part = &collector->pmcounters.parts[i];
        uint64_t watts;
        uint64_t joules;
        if (!pmcounters_power(part, &watts))
            continue;
        struct sample_row *row = sample_table_row(&collector->table, part->name, strlen(part->name));
        if (row == NULL)
            continue;
        row->group = part->group;
        sample_row_real(row, POWER_WATTS, (double)watts);
        if (pmcounters_energy(part, &joules) && joules <= UINT64_MAX / power_microjoules_per_joule)
            sample_row_count(row, POWER_ENERGY, joules * power_microjoules_per_joule);
    }
}

static const char *power_group(const struct sensors *sensors, const struct sensor *sensor)
{
    const char *label = sensor->label + strlen(sensors->chip);
    while (*label == ' ')
        label++;
    for (size_t i = 0; i < ARRAY_LENGTH(power_groups); i++) {
        if (strncmp(sensors->chip, power_groups[i].chip, strlen(power_groups[i].chip)) == 0 &&
            strncmp(label, power_groups[i].label, strlen(power_groups[i].label)) == 0)
            return power_groups[i].group;
    }
    return "node";
}

static void power_read_sensor(struct collector *collector, const struct device *device, const struct sensor *sensor,
                              int64_t now_boot_ns)
{
    int64_t number;
    if (!devices_number(device, sensor->file, &number) || number < 0)
        return;
    struct sample_row *row;
    if (sensor->pattern == POWER_SENSOR_ENERGY) {
        row = power_fill_energy(collector, sensor->row, (uint64_t)number, now_boot_ns);
    } else {
        row = sample_table_row(&collector->table, sensor->row, strlen(sensor->row));
        if (row != NULL)
            sample_row_real(row, POWER_WATTS, (double)number / power_units_per_watt);
    }
    if (row == NULL)
        return;
    row->group = power_group(device->layout, sensor);
    sample_row_set_label(row, sensor->label, strlen(sensor->label));
}

static void power_read_hwmon(struct collector *collector, int64_t now_boot_ns)
{
    for (size_t i = 0; i < devices_count(collector->hwmon); i++) {
        const struct device *device = devices_at(collector->hwmon, i);
        const struct sensors *sensors = device->layout;
        for (size_t j = 0; j < sensors->count; j++)
            power_read_sensor(collector, device, &sensors->list[j], now_boot_ns);
    }
}

static int power_read(struct collector *collector, int64_t now_boot_ns, struct error *err)
{
    int rc = collector->hwmon != NULL ? devices_tick(collector->hwmon, now_boot_ns, err) : 0;
    if (rc < 0)
        return rc;
    sample_table_begin(&collector->table);
    power_read_rapl(collector, now_boot_ns);
    power_read_pmcounters(collector);
    if (collector->hwmon != NULL)
        power_read_hwmon(collector, now_boot_ns);
    sample_table_end(&collector->table);
    collector->read_boot_ns = now_boot_ns;
    return 0;
}

static const struct sample_table *power_table(const struct collector *collector)
{
    return &collector->table;
}

static void power_take_notes(struct collector *collector, struct buf *out)
{
    if (collector->rapl.denied > 0 && !collector->is_denial_said) {
        collector->is_denial_said = true;
        buf_printf(out, "%zu zones of RAPL are left out: their energy_uj may be read by root only\n",
                   collector->rapl.denied);
    }
    if (collector->hwmon != NULL)
        devices_take_notes(collector->hwmon, out);
}

const struct collector_ops power_collector = {
    .name = "power",
    .help = "energy and power of CPUs, memory, GPUs and the node (RAPL, Cray pm_counters, hwmon)",
    .open = power_open,
    .read = power_read,
    .table = power_table,
    .take_notes = power_take_notes,
    .close = power_close,
};
