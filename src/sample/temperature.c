/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/temperature.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sample/devices.h"
#include "sample/sensors.h"

enum { TEMPERATURE_CELSIUS, TEMPERATURE_COLUMNS };

static const struct sample_column temperature_columns[TEMPERATURE_COLUMNS] = {
    [TEMPERATURE_CELSIUS] = {"celsius", "celsius", "temperature at the sensor", SAMPLE_REAL},
};

/* Both interfaces tell thousandths of a degree. */
static const double temperature_units_per_degree = 1000;

struct collector {
    struct devices *devices;
    struct sample_table table;
};

static bool temperature_describe_hwmon(struct device *device)
{
    static const struct sensors_pattern pattern = {"temp", "_input"};
    return sensors_describe(device, &pattern, 1);
}

static bool temperature_describe_zone(struct device *device)
{
    if (strncmp(device->name, "thermal_zone", strlen("thermal_zone")) != 0)
        return false; /* the class also has cooling devices */
    return sensors_describe_one(device, "temp", "type");
}

static const struct devices_class temperature_hwmon = {
    .path = "class/hwmon",
    .describe = temperature_describe_hwmon,
    .free_layout = sensors_free,
};

static const struct devices_class temperature_zones = {
    .path = "class/thermal",
    .describe = temperature_describe_zone,
    .free_layout = sensors_free,
};

static void temperature_close(struct collector *collector)
{
    if (collector == NULL)
        return;
    devices_free(collector->devices);
    sample_table_fini(&collector->table);
    free(collector);
}

DEFINE_CLEANUP(collector, temperature_close);

static int temperature_open(const struct sample_config *config, struct collector **out_collector, struct error *err)
{
    CLEANUP(collector_cleanup) struct collector *collector = calloc(1, sizeof *collector);
    if (collector == NULL)
        return error_set(err, -ENOMEM, "no memory for a collector");
    int rc = sample_table_init(&collector->table, temperature_columns, TEMPERATURE_COLUMNS, 0, err);
    if (rc < 0)
        return rc;
    rc = devices_open(&temperature_hwmon, config->sys_path, &collector->devices, NULL);
    if (rc == -ENODEV)
        rc = devices_open(&temperature_zones, config->sys_path, &collector->devices, NULL);
    if (rc == -ENODEV)
        return error_set(err, rc, "no sensor in '%s/class/hwmon' or '%s/class/thermal'", config->sys_path,
                         config->sys_path);
    if (rc < 0)
        return error_set(err, rc, "no memory for sensors");
    *out_collector = TAKE(collector);
    return 0;
}

static int temperature_read(struct collector *collector, int64_t now_boot_ns, struct error *err)
{
    int rc = devices_tick(collector->devices, now_boot_ns, err);
    if (rc < 0)
        return rc;
    sample_table_begin(&collector->table);
    for (size_t i = 0; i < devices_count(collector->devices); i++) {
        const struct device *device = devices_at(collector->devices, i);
        const struct sensors *sensors = device->layout;
        for (size_t j = 0; j < sensors->count; j++) {
            const struct sensor *sensor = &sensors->list[j];
            int64_t number;
            if (!devices_number(device, sensor->file, &number))
                continue;
            struct sample_row *row = sample_table_row(&collector->table, sensor->row, strlen(sensor->row));
            if (row == NULL)
                continue;
            sample_row_set_label(row, sensor->label, strlen(sensor->label));
            sample_row_real(row, TEMPERATURE_CELSIUS, (double)number / temperature_units_per_degree);
        }
    }
    sample_table_end(&collector->table);
    return 0;
}

static const struct sample_table *temperature_table(const struct collector *collector)
{
    return &collector->table;
}

static void temperature_take_notes(struct collector *collector, struct buf *out)
{
    devices_take_notes(collector->devices, out);
}

const struct collector_ops temperature_collector = {
    .name = "temperature",
    .help = "temperature sensors (hwmon, else thermal zones)",
    .open = temperature_open,
    .read = temperature_read,
    .table = temperature_table,
    .take_notes = temperature_take_notes,
    .close = temperature_close,
};
