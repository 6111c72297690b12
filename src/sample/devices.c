/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/devices.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample/probe.h"
#include "util/file.h"

enum { DEVICES_PATHS_MAX_BYTES = 1 << 20 };

/* What is asked about one device: the paths of its files, one after the other, each with its NUL. */
struct devices_question {
    size_t count;
    char paths[];
};

/* One file's answer; an array of them is the device's. */
struct devices_answer {
    bool is_known;
    unsigned char length;
    char bytes[DEVICES_TEXT_MAX_BYTES];
};

struct devices_entry {
    struct device device; /* first: a device's address is its entry's */
    struct buf paths;     /* of its files, while it is described */
    struct probe_key *key;
    struct devices_answer *answers; /* [device.files_count] */
    bool is_answered;               /* `answers` is the latest of a device that isn't stuck */
    bool is_found;                  /* while the class is scanned: it is still there */
};

struct devices {
    const struct devices_class *class;
    char *path; /* of the class directory */
    struct probe *probe;
    int64_t scanned_boot_ns;
    bool is_scanned;
    size_t count;
    struct devices_entry *entries[DEVICES_MAX];
};

static struct devices_entry *devices_entry_of(struct device *device)
{
    return (struct devices_entry *)device;
}

/* On a probing thread. */
static int devices_ask(const void *subject, void *answer)
{
    const struct devices_question *question = subject;
    struct devices_answer *answers = answer;
    const char *path = question->paths;
    for (size_t i = 0; i < question->count; i++, path += strlen(path) + 1) {
        ssize_t got = probe_read_file(path, answers[i].bytes, sizeof answers[i].bytes);
        answers[i].is_known = got >= 0;
        answers[i].length = got > 0 ? (unsigned char)got : 0;
    }
    return 0;
}

static const struct probe_kind devices_probe = {.ask = devices_ask, .free_subject = free};

static void devices_entry_free(const struct devices *devices, struct devices_entry *entry)
{
    if (entry->key != NULL)
        probe_remove(entry->key);
    devices->class->free_layout(entry->device.layout);
    free((char *)(uintptr_t)entry->device.name); /* ours, and const for those who look at it */
    free((char *)(uintptr_t)entry->device.path);
    buf_fini(&entry->paths);
    free(entry->answers);
    free(entry);
}

/* Makes the probe's key of what describe() has named. */
static int devices_entry_start(const struct devices *devices, struct devices_entry *entry)
{
    size_t count = entry->device.files_count;
    struct devices_question *question = malloc(sizeof *question + entry->paths.length);
    entry->answers = calloc(count, sizeof *entry->answers);
    if (question == NULL || entry->answers == NULL) {
        free(question);
        return -ENOMEM;
    }
    question->count = count;
    memcpy(question->paths, entry->paths.data, entry->paths.length);
    buf_fini(&entry->paths);
    return probe_add(devices->probe, question, count * sizeof *entry->answers, &entry->key, NULL);
}

/* Describes the device `name` and adds it. Without memory it is left for the next scan. */
static void devices_add(struct devices *devices, const char *name)
{
    if (devices->count == DEVICES_MAX)
        return;
    struct devices_entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", devices->path, name) < 0)
        path = NULL;
    entry->device.name = strdup(name);
    entry->device.path = path;
    entry->is_found = true;
    buf_init(&entry->paths, DEVICES_PATHS_MAX_BYTES);
    if (entry->device.name == NULL || path == NULL || !devices->class->describe(&entry->device) ||
        entry->device.files_count == 0 || devices_entry_start(devices, entry) < 0) {
        devices_entry_free(devices, entry);
        return;
    }
    devices->entries[devices->count++] = entry;
}

static struct devices_entry *devices_find(const struct devices *devices, const char *name)
{
    for (size_t i = 0; i < devices->count; i++) {
        if (strcmp(devices->entries[i]->device.name, name) == 0)
            return devices->entries[i];
    }
    return NULL;
}

/* Has the device answered, and not one file could be read? Then another device may have taken its name. */
static bool devices_is_mute(const struct devices_entry *entry)
{
    if (!entry->is_answered)
        return false;
    for (size_t i = 0; i < entry->device.files_count; i++) {
        if (entry->answers[i].is_known)
            return false;
    }
    return true;
}

static int devices_compare(const void *a, const void *b)
{
    const struct devices_entry *const *first = a;
    const struct devices_entry *const *second = b;
    return strverscmp((*first)->device.name, (*second)->device.name);
}

/* Brings the list up to what the class directory says. The order in which /sys lists is arbitrary, ours isn't. */
static int devices_scan(struct devices *devices)
{
    CLEANUP(dir_cleanup) DIR *directory = opendir(devices->path);
    if (directory == NULL)
        return -errno;
    for (size_t i = 0; i < devices->count; i++)
        devices->entries[i]->is_found = false;
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        struct devices_entry *known = devices_find(devices, entry->d_name);
        if (known == NULL)
            devices_add(devices, entry->d_name);
        else
            known->is_found = !devices_is_mute(known); /* a mute one is described anew at the next scan */
    }
    size_t kept = 0;
    for (size_t i = 0; i < devices->count; i++) {
        if (devices->entries[i]->is_found)
            devices->entries[kept++] = devices->entries[i];
        else
            devices_entry_free(devices, devices->entries[i]);
    }
    devices->count = kept;
    qsort(devices->entries, devices->count, sizeof(struct devices_entry *), devices_compare);
    return 0;
}

int devices_open(const struct devices_class *class, const char *sys_path, struct devices **out_devices,
                 struct error *err)
{
    CLEANUP(devices_cleanup) struct devices *devices = calloc(1, sizeof *devices);
    if (devices == NULL)
        return error_set(err, -ENOMEM, "no memory for the devices of %s", class->path);
    devices->class = class;
    if (asprintf(&devices->path, "%s/%s", sys_path, class->path) < 0) {
        devices->path = NULL; /* asprintf() leaves it undefined */
        return error_set(err, -ENOMEM, "no memory for the devices of %s", class->path);
    }
    int rc = probe_new(&devices_probe, PROBE_STUCK_AFTER_NS, &devices->probe, err);
    if (rc < 0)
        return rc;
    rc = devices_scan(devices);
    if (rc < 0)
        return error_set(err, -ENODEV, "no %s", devices->path);
    if (devices->count == 0)
        return error_set(err, -ENODEV, "nothing to read in %s", devices->path);
    *out_devices = TAKE(devices);
    return 0;
}

void devices_free(struct devices *devices)
{
    if (devices == NULL)
        return;
    for (size_t i = 0; i < devices->count; i++)
        devices_entry_free(devices, devices->entries[i]);
    probe_free(devices->probe);
    free(devices->path);
    free(devices);
}

bool devices_add_file(struct device *device, const char *path, size_t *out_index)
{
    struct buf *paths = &devices_entry_of(device)->paths;
    if (device->files_count == DEVICES_FILES_MAX)
        return false;
    size_t before = paths->length;
    buf_text(paths, device->path);
    buf_char(paths, '/');
    buf_bytes(paths, path, strlen(path) + 1);
    if (buf_status(paths, NULL) < 0) {
        buf_truncate(paths, before);
        return false;
    }
    *out_index = device->files_count++;
    return true;
}

bool devices_read_text(const struct device *device, const char *path, struct buf *out)
{
    char full[PATH_MAX];
    int length = snprintf(full, sizeof full, "%s/%s", device->path, path);
    if (length < 0 || (size_t)length >= sizeof full || file_read(AT_FDCWD, full, out, NULL) < 0)
        return false;
    while (out->length > 0 && out->data[out->length - 1] == '\n')
        buf_truncate(out, out->length - 1);
    return true;
}

int devices_tick(struct devices *devices, int64_t now_boot_ns, struct error *err)
{
    if (!devices->is_scanned) { /* opening did it */
        devices->scanned_boot_ns = now_boot_ns;
        devices->is_scanned = true;
    } else if (now_boot_ns - devices->scanned_boot_ns >= DEVICES_RESCAN_NS) {
        devices->scanned_boot_ns = now_boot_ns;
        (void)devices_scan(devices); /* a class directory that vanished leaves its devices, which then don't answer */
    }
    int rc = probe_tick(devices->probe, now_boot_ns, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < devices->count; i++) {
        struct devices_entry *entry = devices->entries[i];
        struct probe_result result = probe_latest(entry->key, entry->answers);
        entry->is_answered = result.state == PROBE_ANSWERED;
    }
    return 0;
}

size_t devices_count(const struct devices *devices)
{
    return devices->count;
}

const struct device *devices_at(const struct devices *devices, size_t index)
{
    return &devices->entries[index]->device;
}

bool devices_text(const struct device *device, size_t file, struct cursor *out_text)
{
    const struct devices_entry *entry = (const struct devices_entry *)device;
    const struct devices_answer *answer = &entry->answers[file];
    if (!entry->is_answered || !answer->is_known)
        return false;
    size_t length = answer->length;
    while (length > 0 && answer->bytes[length - 1] == '\n')
        length--;
    *out_text = cursor_of(answer->bytes, length);
    return true;
}

bool devices_number(const struct device *device, size_t file, int64_t *out_number)
{
    struct cursor text;
    int64_t number;
    if (!devices_text(device, file, &text) || !cursor_i64(&text, &number))
        return false;
    cursor_skip_blanks(&text);
    if (!cursor_is_empty(&text))
        return false;
    *out_number = number;
    return true;
}

void devices_take_notes(struct devices *devices, struct buf *out)
{
    for (size_t i = 0; i < devices->count; i++) {
        struct devices_entry *entry = devices->entries[i];
        bool is_stuck;
        if (probe_has_turned(entry->key, &is_stuck))
            buf_printf(out, "%s %s\n", entry->device.path,
                       is_stuck ? "doesn't answer: left out until it does" : "answers again");
    }
}
