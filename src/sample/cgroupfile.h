/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cgroupfile: what the files of a cgroup say, as the same numbers in the same units whether they come from version 1
 * or 2.
 *
 * A table has a row for each file that we read and in it the keys that we want; adding a number is adding a key. The
 * meaning of the files is in the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/. Pure; any thread.
 */
#ifndef SAMPLE_CGROUPFILE_H
#define SAMPLE_CGROUPFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/table.h"

enum cgroupfile_column {
    CGROUP_CPU_USAGE,
    CGROUP_CPU_USER,
    CGROUP_CPU_SYSTEM,
    CGROUP_CPU_THROTTLED,
    CGROUP_CPU_THROTTLED_PERIODS,
    CGROUP_MEMORY,
    CGROUP_MEMORY_PEAK,
    CGROUP_MEMORY_LIMIT,
    CGROUP_MEMORY_ANON,
    CGROUP_MEMORY_FILE,
    CGROUP_MEMORY_SHMEM,
    CGROUP_MEMORY_DIRTY,
    CGROUP_PAGE_FAULTS,
    CGROUP_MAJOR_PAGE_FAULTS,
    CGROUP_MEMORY_LIMIT_HITS,
    CGROUP_OOM_KILLS,
    CGROUP_IO_READ,
    CGROUP_IO_WRITTEN,
    CGROUP_IO_READS,
    CGROUP_IO_WRITES,
    CGROUP_TASKS,
    CGROUP_CPU_PRESSURE_SOME,
    CGROUP_MEMORY_PRESSURE_SOME,
    CGROUP_MEMORY_PRESSURE_FULL,
    CGROUP_IO_PRESSURE_SOME,
    CGROUP_IO_PRESSURE_FULL,
    CGROUP_COLUMNS
};

extern const struct sample_column cgroupfile_columns[CGROUP_COLUMNS];

struct cgroupfile_values {
    bool is_known[CGROUP_COLUMNS];
    uint64_t numbers[CGROUP_COLUMNS];
};

/* A hierarchy of version 1 has controllers with files of their own; version 2 has one for all, here NULL. */
struct cgroupfile {
    const char *controller;
    const char *name;
    const struct cgroupfile_format *format; /* how it is read; this module's own */
};

/* All files, the better of two that say the same first. */
extern const struct cgroupfile cgroupfiles[];
extern const size_t cgroupfiles_count;

/* Takes what the text of a file says of columns that are not known yet. What makes no sense is left out. */
void cgroupfile_parse(const struct cgroupfile *file, const char *text, size_t length, struct cgroupfile_values *values);

#endif
