/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/pmcounters.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cursor.h"

enum { PMCOUNTERS_PARTS_MAX = 64, PMCOUNTERS_NAME_MAX_BYTES = 64 };

static const char *pmcounters_group(const char *name)
{
    if (strncmp(name, "accel", strlen("accel")) == 0)
        return "gpu";
    if (strncmp(name, "cpu", strlen("cpu")) == 0)
        return "cpu";
    if (strncmp(name, "memory", strlen("memory")) == 0)
        return "memory";
    return "node";
}

/* Is `file` a part's power? Then the length of the part's name in it, which is 0 for the node. */
static bool pmcounters_is_power(const char *file, size_t *out_length)
{
    static const char suffix[] = "power";
    size_t length = strlen(file);
    if (length < strlen(suffix) || strcmp(file + length - strlen(suffix), suffix) != 0)
        return false;
    size_t name_length = length - strlen(suffix);
    if (name_length > PMCOUNTERS_NAME_MAX_BYTES || (name_length > 0 && file[name_length - 1] != '_'))
        return false;
    *out_length = name_length > 0 ? name_length - 1 : 0;
    return true;
}

static void pmcounters_part_fini(struct pmcounters_part *part)
{
    procfile_close(&part->power);
    procfile_close(&part->energy);
    free(part->name);
}

/* 0, -ENOMEM, or why this part is no use. */
static int pmcounters_part_init(struct pmcounters_part *part, const char *path, const char *power_file,
                                size_t name_length)
{
    char energy_file[NAME_MAX + sizeof "energy"];
    const char *blank = name_length > 0 ? "_" : "";
    (void)snprintf(energy_file, sizeof energy_file, "%.*s%senergy", (int)name_length, power_file, blank);
    *part = (struct pmcounters_part){
        .power = PROCFILE_CLOSED,
        .energy = PROCFILE_CLOSED,
        .name = name_length > 0 ? strndup(power_file, name_length) : strdup("node"),
    };
    int rc = part->name != NULL ? procfile_open(&part->power, path, power_file, NULL) : -ENOMEM;
    if (rc == 0 && procfile_open(&part->energy, path, energy_file, NULL) == -ENOMEM)
        rc = -ENOMEM; /* a part without energy still has its power */
    if (rc < 0)
        pmcounters_part_fini(part);
    else
        part->group = pmcounters_group(part->name);
    return rc;
}

static int pmcounters_compare(const void *a, const void *b)
{
    const struct pmcounters_part *first = a;
    const struct pmcounters_part *second = b;
    return strverscmp(first->name, second->name);
}

int pmcounters_init(struct pmcounters *out_counters, const char *sys_path, struct error *err)
{
    *out_counters = (struct pmcounters){0};
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/cray/pm_counters", sys_path); /* cut, it isn't there */
    CLEANUP(dir_cleanup) DIR *directory = opendir(path);
    if (directory == NULL)
        return 0;
    struct pmcounters counters = {.parts = calloc(PMCOUNTERS_PARTS_MAX, sizeof *counters.parts)};
    int rc = counters.parts != NULL ? 0 : -ENOMEM;
    const struct dirent *entry;
    while (rc != -ENOMEM && counters.count < PMCOUNTERS_PARTS_MAX && (entry = readdir(directory)) != NULL) {
        size_t name_length;
        if (!pmcounters_is_power(entry->d_name, &name_length))
            continue;
        rc = pmcounters_part_init(&counters.parts[counters.count], path, entry->d_name, name_length);
        if (rc == 0)
            counters.count++;
    }
    if (rc == -ENOMEM) {
        pmcounters_fini(&counters);
        return error_set(err, -ENOMEM, "no memory for %s", path);
    }
    qsort(counters.parts, counters.count, sizeof *counters.parts, pmcounters_compare);
    *out_counters = counters;
    return 0;
}

void pmcounters_fini(struct pmcounters *counters)
{
    for (size_t i = 0; i < counters->count; i++)
        pmcounters_part_fini(&counters->parts[i]);
    free(counters->parts);
    *counters = (struct pmcounters){0};
}

bool pmcounters_parse(const char *text, size_t length, const char *unit, uint64_t *out_number)
{
    struct cursor cursor = cursor_of(text, length);
    struct cursor line;
    struct cursor word;
    uint64_t number;
    if (!cursor_line(&cursor, &line) || !cursor_u64(&line, &number) || !cursor_word(&line, &word) ||
        !cursor_equals(&word, unit))
        return false;
    *out_number = number;
    return true;
}

static bool pmcounters_read(struct procfile *file, const char *unit, uint64_t *out_number)
{
    if (file->fd < 0 || procfile_read(file, NULL) < 0)
        return false;
    return pmcounters_parse(file->text, file->length, unit, out_number);
}

bool pmcounters_power(struct pmcounters_part *part, uint64_t *out_watts)
{
    return pmcounters_read(&part->power, "W", out_watts);
}

bool pmcounters_energy(struct pmcounters_part *part, uint64_t *out_joules)
{
    return pmcounters_read(&part->energy, "J", out_joules);
}
