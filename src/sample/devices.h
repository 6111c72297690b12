/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devices: the devices of one class of /sys (hwmon, infiniband, …) and the small files of each, read at every tick.
 *
 * Reading such a file may make the device do something, and a device can be slow or never answer. So all files of one
 * device are one key of a probe (sample/probe.h); what a tick shows is what the tick before asked for. Devices that
 * come and go are seen within DEVICES_RESCAN_NS. What the files mean is left to the collector: it describes a device
 * once by naming its files, and finds each file's text by its index.
 *
 * One thread at a time.
 */
#ifndef SAMPLE_DEVICES_H
#define SAMPLE_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/cleanup.h"
#include "util/cursor.h"
#include "util/error.h"

#define DEVICES_RESCAN_NS      INT64_C(30000000000)
#define DEVICES_MAX            512
#define DEVICES_FILES_MAX      2048 /* of one device */
#define DEVICES_TEXT_MAX_BYTES 62   /* of one file; the rest is not looked at */

struct devices;

struct device {
    const char *name;   /* its entry in the class directory: "hwmon3" */
    const char *path;   /* that entry's path */
    void *layout;       /* what describe() made of it; the collector's */
    size_t files_count; /* how many devices_add_file() were accepted */
};

struct devices_class {
    const char *path; /* below the root of /sys: "class/hwmon" */
    /*
     * Names the files of a new device by devices_add_file(), and may set `layout`. It runs on the collector's thread:
     * it lists directories and reads texts that drivers keep in memory (names, labels), and nothing that a device has
     * to be asked for. False: the device is of no interest.
     */
    bool (*describe)(struct device *device);
    void (*free_layout)(void *layout); /* accepts NULL */
};

/*
 * Opens the class and describes its devices. `class` is borrowed for ever (static), `sys_path` for the life of the
 * devices. Returns owned through `*out_devices`, freed by devices_free(). -ENODEV: no such class, or no device of
 * interest in it; -ENOMEM.
 */
MUST_CHECK int devices_open(const struct devices_class *class, const char *sys_path, struct devices **out_devices,
                            struct error *err);
void devices_free(struct devices *devices);
DEFINE_CLEANUP(devices, devices_free);

/*
 * Adds a file, as a path below the device's own, which is to be read at every tick; for describe(). `*out_index` is its
 * number. False when there is no memory or the device has too many; then it isn't there, and `*out_index` untouched.
 */
MUST_CHECK bool devices_add_file(struct device *device, const char *path, size_t *out_index);

/* For describe(): reads the start of a file below the device's path, without the newline at its end. False: unreadable.
 */
MUST_CHECK bool devices_read_text(const struct device *device, const char *path, struct buf *out);

/* Asks all devices anew and takes their latest answers. Fails like probe_tick(). */
MUST_CHECK int devices_tick(struct devices *devices, int64_t now_boot_ns, struct error *err);

/* The devices of interest, in the order of their numbers. Borrowed until the next devices_tick(). */
size_t devices_count(const struct devices *devices);
const struct device *devices_at(const struct devices *devices, size_t index);

/*
 * The latest text of a file, without the newline at its end; false when the device is stuck or has not answered yet, or
 * the file can't be read. Borrowed until the next devices_tick().
 */
bool devices_text(const struct device *device, size_t file, struct cursor *out_text);

/* The same as a whole number. False also when the text is none. */
bool devices_number(const struct device *device, size_t file, int64_t *out_number);

/* Appends a line for each device that has become stuck or has come back since the last call. */
void devices_take_notes(struct devices *devices, struct buf *out);

#endif
