/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/sensors.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/cursor.h"

enum { SENSORS_NAME_MAX_BYTES = 64, SENSORS_LABEL_MAX_BYTES = 128 };

/* ACPI's power meters have the second; where there is neither, the file's own name does. */
static const char *const sensors_label_suffixes[] = {"_label", "_oem_info"};

/* A file that matches, before it is a sensor. */
struct sensors_match {
    char name[SENSORS_NAME_MAX_BYTES]; /* "temp2" */
    const char *directory;             /* "" or "device/" */
    size_t pattern;
};

struct sensors_matches {
    size_t count;
    struct sensors_match list[DEVICES_FILES_MAX];
};

void sensors_free(void *layout)
{
    struct sensors *sensors = layout;
    if (sensors == NULL)
        return;
    for (size_t i = 0; i < sensors->count; i++) {
        free(sensors->list[i].row);
        free(sensors->list[i].label);
    }
    free(sensors->chip);
    free(sensors);
}

/* Is `name` the type, a number and the suffix? Then its length without the suffix, else 0. */
static size_t sensors_match_length(const char *name, const struct sensors_pattern *pattern)
{
    struct cursor rest = cursor_of(name, strlen(name));
    uint64_t number;
    if (!cursor_accept_text(&rest, pattern->type) || !cursor_u64(&rest, &number))
        return 0;
    size_t length = (size_t)(rest.at - name);
    return cursor_equals(&rest, pattern->suffix) && length < SENSORS_NAME_MAX_BYTES ? length : 0;
}

/* Adds what matches in the device's `directory`. */
static void sensors_search(const struct device *device, const char *directory, const struct sensors_pattern *patterns,
                           size_t patterns_count, struct sensors_matches *matches)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", device->path, directory); /* cut, it isn't there */
    CLEANUP(dir_cleanup) DIR *files = opendir(path);
    if (files == NULL)
        return;
    const struct dirent *entry;
    while ((entry = readdir(files)) != NULL) {
        for (size_t i = 0; i < patterns_count && matches->count < DEVICES_FILES_MAX; i++) {
            size_t length = sensors_match_length(entry->d_name, &patterns[i]);
            if (length == 0)
                continue;
            struct sensors_match *match = &matches->list[matches->count++];
            *match = (struct sensors_match){.directory = directory, .pattern = i};
            memcpy(match->name, entry->d_name, length);
        }
    }
}

static int sensors_compare(const void *a, const void *b)
{
    const struct sensors_match *first = a;
    const struct sensors_match *second = b;
    int order = strverscmp(first->name, second->name);
    return order != 0 ? order : (first->pattern > second->pattern) - (first->pattern < second->pattern);
}

/* What the device is called in names of rows: the hardware behind it, if the kernel links to it. */
static void sensors_hardware(const struct device *device, struct buf *out)
{
    char link[PATH_MAX];
    char target[PATH_MAX];
    (void)snprintf(link, sizeof link, "%s/device", device->path);
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length <= 0) {
        buf_text(out, device->name);
        return;
    }
    target[length] = '\0';
    const char *slash = strrchr(target, '/');
    buf_text(out, slash != NULL ? slash + 1 : target);
}

static bool sensors_fill(struct device *device, const char *chip, const char *hardware,
                         const struct sensors_match *match, const char *suffix, struct sensor *out_sensor)
{
    char file[2 * SENSORS_NAME_MAX_BYTES];
    CLEANUP(buf_cleanup) struct buf label;
    buf_init(&label, SENSORS_LABEL_MAX_BYTES);
    for (size_t i = 0; i < ARRAY_LENGTH(sensors_label_suffixes) && label.length == 0; i++) {
        (void)snprintf(file, sizeof file, "%s%s%s", match->directory, match->name, sensors_label_suffixes[i]);
        if (!devices_read_text(device, file, &label))
            buf_reset(&label);
    }
    if (label.length == 0)
        buf_text(&label, match->name);
    (void)snprintf(file, sizeof file, "%s%s%s", match->directory, match->name, suffix);
    *out_sensor = (struct sensor){.pattern = match->pattern};
    if (asprintf(&out_sensor->row, "%s/%s", hardware, match->name) < 0)
        out_sensor->row = NULL;
    if (asprintf(&out_sensor->label, "%s%s%s", chip, chip[0] != '\0' ? " " : "", buf_string(&label)) < 0)
        out_sensor->label = NULL;
    if (out_sensor->row != NULL && out_sensor->label != NULL && devices_add_file(device, file, &out_sensor->file))
        return true;
    free(out_sensor->row);
    free(out_sensor->label);
    return false;
}

bool sensors_describe(struct device *device, const struct sensors_pattern *patterns, size_t patterns_count)
{
    CLEANUP(memory_cleanup) struct sensors_matches *matches = calloc(1, sizeof *matches);
    if (matches == NULL)
        return false;
    sensors_search(device, "", patterns, patterns_count, matches);
    if (matches->count == 0)
        sensors_search(device, "device/", patterns, patterns_count, matches);
    if (matches->count == 0)
        return false;
    qsort(matches->list, matches->count, sizeof matches->list[0], sensors_compare);

    CLEANUP(buf_cleanup) struct buf chip;
    CLEANUP(buf_cleanup) struct buf hardware;
    buf_init(&chip, SENSORS_LABEL_MAX_BYTES);
    buf_init(&hardware, PATH_MAX);
    if (!devices_read_text(device, "name", &chip) && !devices_read_text(device, "device/name", &chip))
        buf_reset(&chip);
    sensors_hardware(device, &hardware);

    struct sensors *sensors = calloc(1, sizeof *sensors + matches->count * sizeof sensors->list[0]);
    if (sensors == NULL)
        return false;
    device->layout = sensors; /* the device's from here, also when it is refused */
    sensors->chip = strdup(buf_string(&chip));
    if (sensors->chip == NULL)
        return false;
    for (size_t i = 0; i < matches->count; i++) {
        const struct sensors_match *match = &matches->list[i];
        if (sensors_fill(device, sensors->chip, buf_string(&hardware), match, patterns[match->pattern].suffix,
                         &sensors->list[sensors->count]))
            sensors->count++;
    }
    return sensors->count > 0;
}

bool sensors_describe_one(struct device *device, const char *file, const char *label_file)
{
    CLEANUP(buf_cleanup) struct buf label;
    buf_init(&label, SENSORS_LABEL_MAX_BYTES);
    if (!devices_read_text(device, label_file, &label))
        buf_reset(&label);
    struct sensors *sensors = calloc(1, sizeof *sensors + sizeof sensors->list[0]);
    if (sensors == NULL)
        return false;
    device->layout = sensors;
    sensors->count = 1;
    sensors->chip = strdup("");
    sensors->list[0] = (struct sensor){.row = strdup(device->name), .label = strdup(buf_string(&label))};
    return sensors->chip != NULL && sensors->list[0].row != NULL && sensors->list[0].label != NULL &&
           devices_add_file(device, file, &sensors->list[0].file);
}
