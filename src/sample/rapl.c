/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/rapl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/buf.h"
#include "util/clock.h"
#include "util/cursor.h"
#include "util/file.h"

enum { RAPL_ZONES_MAX = 512, RAPL_TEXT_MAX_BYTES = 64 };

/*
 * "intel-rapl:0" is a package and "intel-rapl:0:1" a part of it. "intel-rapl-mmio:0" tells the package's energy once
 * more, by another way.
 */
static const char rapl_prefix[] = "intel-rapl:";

static const struct {
    const char *name; /* what a zone's name starts with */
    const char *group;
} rapl_groups[] = {
    {"package", "cpu"}, {"core", "cpu"}, {"dram", "memory"}, {"uncore", "gpu"}, {"psys", "node"},
};

/* Could the energy have been used in the time? Microjoules per microsecond are watts. */
static bool rapl_is_possible(uint64_t energy_uj, int64_t duration_ns)
{
    return duration_ns > 0 && energy_uj / RAPL_POWER_MAX_WATTS <= (uint64_t)(duration_ns / CLOCK_NS_PER_US);
}

uint64_t rapl_counter_step(struct rapl_counter *counter, uint64_t raw_uj, int64_t now_boot_ns)
{
    if (counter->is_started && raw_uj < counter->last_uj) {
        int64_t duration_ns = now_boot_ns - counter->last_boot_ns;
        bool is_in_range = counter->last_uj <= counter->range_uj;
        if (is_in_range && rapl_is_possible(counter->range_uj - counter->last_uj + raw_uj, duration_ns))
            counter->base_uj += counter->range_uj;
        else if (rapl_is_possible(raw_uj, duration_ns))
            counter->base_uj += counter->last_uj; /* reset to 0, and counting since */
        else
            counter->base_uj += counter->last_uj - raw_uj; /* reset to anything: this period is lost */
    }
    counter->is_started = true;
    counter->last_uj = raw_uj;
    counter->last_boot_ns = now_boot_ns;
    return counter->base_uj + raw_uj;
}

/* The text of a zone's small file without its newline; "" when it can't be read. */
static const char *rapl_text(const char *class_path, const char *zone, const char *file, struct buf *out)
{
    char path[PATH_MAX];
    buf_reset(out);
    int length = snprintf(path, sizeof path, "%s/%s/%s", class_path, zone, file);
    if (length < 0 || (size_t)length >= sizeof path || file_read(AT_FDCWD, path, out, NULL) < 0)
        buf_reset(out);
    while (out->length > 0 && out->data[out->length - 1] == '\n')
        buf_truncate(out, out->length - 1);
    return buf_string(out);
}

static bool rapl_number(const char *text, uint64_t *out_number)
{
    struct cursor cursor = cursor_of(text, strlen(text));
    return cursor_u64(&cursor, out_number);
}

/*
 * A name that is unique on the node: "package-0", "psys", and for a part of a package with the package's number, which
 * may also tell a die: "dram-0", "core-1-die-0".
 */
static char *rapl_zone_name(const char *class_path, const char *zone)
{
    CLEANUP(buf_cleanup) struct buf own;
    CLEANUP(buf_cleanup) struct buf parent;
    buf_init(&own, RAPL_TEXT_MAX_BYTES);
    buf_init(&parent, RAPL_TEXT_MAX_BYTES);
    const char *name = rapl_text(class_path, zone, "name", &own);
    const char *part = strchr(zone + strlen(rapl_prefix), ':');
    char *unique = NULL;
    if (name[0] == '\0') {
        unique = strdup(zone);
    } else if (part == NULL) {
        unique = strdup(name);
    } else {
        char parent_zone[NAME_MAX + 1];
        (void)snprintf(parent_zone, sizeof parent_zone, "%.*s", (int)(part - zone), zone);
        const char *package = rapl_text(class_path, parent_zone, "name", &parent);
        const char *number = strchr(package, '-');
        if (asprintf(&unique, "%s%s", name, number != NULL ? number : part) < 0)
            unique = NULL;
    }
    return unique;
}

static const char *rapl_group(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rapl_groups); i++) {
        if (strncmp(name, rapl_groups[i].name, strlen(rapl_groups[i].name)) == 0)
            return rapl_groups[i].group;
    }
    return "node";
}

static void rapl_zone_fini(struct rapl_zone *zone)
{
    procfile_close(&zone->energy);
    free(zone->name);
}

/* 0, -ENOMEM, or why this zone is no use. */
static int rapl_zone_init(struct rapl_zone *zone, const char *class_path, const char *id)
{
    char path[PATH_MAX];
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, RAPL_TEXT_MAX_BYTES);
    *zone = (struct rapl_zone){.energy = PROCFILE_CLOSED};
    (void)snprintf(path, sizeof path, "%s/energy_uj", id);
    int rc = procfile_open(&zone->energy, class_path, path, NULL);
    if (rc < 0)
        return rc;
    zone->name = rapl_zone_name(class_path, id);
    if (zone->name == NULL) {
        rapl_zone_fini(zone);
        return -ENOMEM;
    }
    zone->group = rapl_group(zone->name);
    if (!rapl_number(rapl_text(class_path, id, "max_energy_range_uj", &text), &zone->counter.range_uj))
        zone->counter.range_uj = 0;
    return 0;
}

static int rapl_compare(const void *a, const void *b)
{
    const struct rapl_zone *first = a;
    const struct rapl_zone *second = b;
    return strverscmp(first->name, second->name);
}

int rapl_init(struct rapl *out_rapl, const char *sys_path, struct error *err)
{
    *out_rapl = (struct rapl){0};
    char class_path[PATH_MAX];
    (void)snprintf(class_path, sizeof class_path, "%s/class/powercap", sys_path); /* cut, it isn't there */
    CLEANUP(dir_cleanup) DIR *class = opendir(class_path);
    if (class == NULL)
        return 0;
    struct rapl rapl = {.zones = calloc(RAPL_ZONES_MAX, sizeof *rapl.zones)};
    int rc = rapl.zones != NULL ? 0 : -ENOMEM;
    const struct dirent *entry;
    while (rc != -ENOMEM && rapl.count < RAPL_ZONES_MAX && (entry = readdir(class)) != NULL) {
        if (strncmp(entry->d_name, rapl_prefix, strlen(rapl_prefix)) != 0)
            continue;
        rc = rapl_zone_init(&rapl.zones[rapl.count], class_path, entry->d_name);
        if (rc == 0)
            rapl.count++;
        else if (rc == -EACCES || rc == -EPERM)
            rapl.denied++;
    }
    if (rc == -ENOMEM) {
        rapl_fini(&rapl);
        return error_set(err, -ENOMEM, "no memory for the zones of RAPL");
    }
    qsort(rapl.zones, rapl.count, sizeof *rapl.zones, rapl_compare);
    *out_rapl = rapl;
    return 0;
}

void rapl_fini(struct rapl *rapl)
{
    for (size_t i = 0; i < rapl->count; i++)
        rapl_zone_fini(&rapl->zones[i]);
    free(rapl->zones);
    *rapl = (struct rapl){0};
}

bool rapl_zone_read(struct rapl_zone *zone, int64_t now_boot_ns, uint64_t *out_energy_uj)
{
    if (procfile_read(&zone->energy, NULL) < 0)
        return false;
    struct cursor text = cursor_of(zone->energy.text, zone->energy.length);
    uint64_t raw_uj;
    if (!cursor_u64(&text, &raw_uj))
        return false;
    *out_energy_uj = rapl_counter_step(&zone->counter, raw_uj, now_boot_ns);
    return true;
}
