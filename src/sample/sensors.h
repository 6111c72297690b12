/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sensors: which files of a hwmon device are sensors, and what to call them. For collectors on sample/devices.h.
 *
 * A hwmon device (Documentation/hwmon/sysfs-interface.rst of the kernel) has files like temp2_input, with a name for a
 * person in temp2_label; older drivers have them in the directory device/ beside it. The number of a hwmon device
 * changes with the order in which drivers load; a row is therefore called after the hardware behind it when that is
 * known: "coretemp.0/temp2", else "hwmon3/temp2". Its label is "coretemp Core 0".
 */
#ifndef SAMPLE_SENSORS_H
#define SAMPLE_SENSORS_H

#include <stdbool.h>
#include <stddef.h>

#include "sample/devices.h"

struct sensors_pattern {
    const char *type;   /* "temp" */
    const char *suffix; /* "_input" */
};

struct sensor {
    char *row;
    char *label;
    size_t file;    /* for devices_text() */
    size_t pattern; /* which one it matches */
};

/* What describing makes of a device: its `layout`. */
struct sensors {
    char *chip; /* the driver's name for it: "coretemp"; "" when it has none */
    size_t count;
    struct sensor list[]; /* [count], by number */
};

/* Describes a hwmon device by the files that match one of the patterns; false when there is none, or no memory. */
bool sensors_describe(struct device *device, const struct sensors_pattern *patterns, size_t patterns_count);

/* Describes a device that is one sensor, whose file is `file` and whose label is in `label_file`. */
bool sensors_describe_one(struct device *device, const char *file, const char *label_file);

void sensors_free(void *layout);

#endif
