/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/frequency.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample/probe.h"
#include "util/cursor.h"

enum { FREQUENCY_KHZ, FREQUENCY_COLUMNS };
enum { FREQUENCY_TEXT_MAX_BYTES = 32, FREQUENCY_NAME_MAX_BYTES = 16 };

static const struct sample_column frequency_columns[FREQUENCY_COLUMNS] = {
    [FREQUENCY_KHZ] = {"frequency_khz", "kHz", "frequency of the CPU", SAMPLE_INTEGER},
};

struct frequency_cpu {
    unsigned number;
    int name_length;
    char name[FREQUENCY_NAME_MAX_BYTES]; /* of its row: thousands of them are needed at each tick */
};

struct collector {
    const char *sys_path;
    size_t per_tick;
    size_t next;  /* whose turn it is */
    size_t count; /* of CPUs that have a frequency */
    struct frequency_cpu cpus[SAMPLE_ROWS_MAX];
    struct sample_table table;
};

static int frequency_compare(const void *a, const void *b)
{
    const struct frequency_cpu *first = a;
    const struct frequency_cpu *second = b;
    return (first->number > second->number) - (first->number < second->number);
}

/* Is it "cpu" and a number? The directory also has "cpufreq", "cpuidle", "online". */
static bool frequency_number(const char *name, unsigned *out_number)
{
    struct cursor rest = cursor_of(name, strlen(name));
    uint64_t number;
    if (!cursor_accept_text(&rest, "cpu") || !cursor_u64(&rest, &number) || !cursor_is_empty(&rest) ||
        number > UINT_MAX)
        return false;
    *out_number = (unsigned)number;
    return true;
}

static void frequency_path(const struct collector *collector, unsigned cpu, char out_path[PATH_MAX])
{
    (void)snprintf(out_path, PATH_MAX, "%s/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq", collector->sys_path,
                   cpu);
}

/* Finds the CPUs that have a frequency. Keeps what it knew when it can't look. */
static void frequency_scan(struct collector *collector)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/devices/system/cpu", collector->sys_path);
    CLEANUP(dir_cleanup) DIR *directory = opendir(path);
    if (directory == NULL)
        return;
    collector->count = 0;
    const struct dirent *entry;
    while (collector->count < SAMPLE_ROWS_MAX && (entry = readdir(directory)) != NULL) {
        struct frequency_cpu *cpu = &collector->cpus[collector->count];
        if (!frequency_number(entry->d_name, &cpu->number))
            continue;
        frequency_path(collector, cpu->number, path);
        if (access(path, F_OK) != 0)
            continue;
        cpu->name_length = snprintf(cpu->name, sizeof cpu->name, "cpu%u", cpu->number);
        collector->count++;
    }
    qsort(collector->cpus, collector->count, sizeof collector->cpus[0], frequency_compare);
}

static void frequency_close(struct collector *collector)
{
    if (collector == NULL)
        return;
    sample_table_fini(&collector->table);
    free(collector);
}

DEFINE_CLEANUP(collector, frequency_close);

static int frequency_open(const struct sample_config *config, struct collector **out_collector, struct error *err)
{
    CLEANUP(collector_cleanup) struct collector *collector = calloc(1, sizeof *collector);
    if (collector == NULL)
        return error_set(err, -ENOMEM, "no memory for a collector");
    collector->sys_path = config->sys_path;
    collector->per_tick = config->frequency_per_tick > 0 ? config->frequency_per_tick : FREQUENCY_PER_TICK;
    int rc = sample_table_init(&collector->table, frequency_columns, FREQUENCY_COLUMNS, 0, err);
    if (rc < 0)
        return rc;
    frequency_scan(collector);
    if (collector->count == 0)
        return error_set(err, -ENODEV, "no '%s/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq'", config->sys_path);
    *out_collector = TAKE(collector);
    return 0;
}

/*
 * Opens, reads and closes: thousands of CPUs are no reason for thousands of open files. The kernel asks the CPU itself,
 * which answers; nothing here can hang.
 */
static bool frequency_ask(const struct collector *collector, unsigned cpu, int64_t *out_khz)
{
    char path[PATH_MAX];
    char text[FREQUENCY_TEXT_MAX_BYTES];
    frequency_path(collector, cpu, path);
    ssize_t length = probe_read_file(path, text, sizeof text);
    if (length <= 0)
        return false; /* the CPU has gone offline */
    struct cursor cursor = cursor_of(text, (size_t)length);
    return cursor_i64(&cursor, out_khz) && *out_khz > 0;
}

static int frequency_read(struct collector *collector, int64_t now_boot_ns, struct error *err)
{
    (void)now_boot_ns;
    (void)err; /* a CPU that doesn't tell is unknown, which is no failure */
    if (collector->next >= collector->count) {
        collector->next = 0;
        frequency_scan(collector);
    }
    size_t end = collector->next + collector->per_tick;
    sample_table_begin(&collector->table);
    for (size_t i = 0; i < collector->count; i++) {
        const struct frequency_cpu *cpu = &collector->cpus[i];
        struct sample_row *row = sample_table_row(&collector->table, cpu->name, (size_t)cpu->name_length);
        int64_t khz;
        if (row != NULL && i >= collector->next && i < end && frequency_ask(collector, cpu->number, &khz))
            sample_row_integer(row, FREQUENCY_KHZ, khz);
    }
    sample_table_end(&collector->table);
    collector->next = end;
    return 0;
}

static const struct sample_table *frequency_table(const struct collector *collector)
{
    return &collector->table;
}

const struct collector_ops frequency_collector = {
    .name = "frequency",
    .help = "frequency of each CPU, a few of them at each tick (cpufreq)",
    .is_optional = true,
    .open = frequency_open,
    .read = frequency_read,
    .table = frequency_table,
    .close = frequency_close,
};
