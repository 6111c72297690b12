/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/cgroup.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sample/cgroupfile.h"
#include "sample/cgrouppath.h"
#include "sample/procfile.h"

enum { CGROUP_FILES_MAX = 32 };

struct cgroup_file {
    const struct cgroupfile *what;
    struct procfile file;
};

struct collector {
    const struct sample_config *config;
    struct cgrouppath path;
    size_t files_count; /* 0: the cgroup is gone */
    struct cgroup_file files[CGROUP_FILES_MAX];
    int64_t searched_boot_ns;
    bool is_missing_said;
    struct sample_table table;
};

/* What a person asks for, by the column that is there when its controller is in use. */
static const struct {
    const char *name;
    enum cgroupfile_column column;
} cgroup_parts[] = {
    {"cpu", CGROUP_CPU_USAGE}, {"memory", CGROUP_MEMORY}, {"io", CGROUP_IO_READ}, {"pids", CGROUP_TASKS}};

static void cgroup_forget(struct collector *collector)
{
    for (size_t i = 0; i < collector->files_count; i++)
        procfile_close(&collector->files[i].file);
    collector->files_count = 0;
    cgrouppath_fini(&collector->path);
}

static void cgroup_close(struct collector *collector)
{
    if (collector == NULL)
        return;
    cgroup_forget(collector);
    sample_table_fini(&collector->table);
    free(collector);
}

DEFINE_CLEANUP(collector, cgroup_close);

static bool cgroup_is_of(const struct cgroupfile *file, const struct cgrouppath_place *place)
{
    if (file->controller == NULL || place->controller == NULL)
        return file->controller == place->controller;
    return strcmp(file->controller, place->controller) == 0;
}

/* Finds the cgroup and opens what it has of the files. */
static int cgroup_search(struct collector *collector, struct error *err)
{
    const struct sample_config *config = collector->config;
    int rc = cgrouppath_find(config->proc_path, config->sys_path, config->cgroup, &collector->path, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < cgroupfiles_count; i++) {
        for (size_t j = 0; j < collector->path.count; j++) {
            const struct cgrouppath_place *place = &collector->path.places[j];
            assert(collector->files_count < CGROUP_FILES_MAX); /* a controller is in one place */
            struct cgroup_file *file = &collector->files[collector->files_count];
            if (!cgroup_is_of(&cgroupfiles[i], place) ||
                procfile_open(&file->file, place->directory, cgroupfiles[i].name, NULL) < 0)
                continue;
            file->what = &cgroupfiles[i];
            collector->files_count++;
        }
    }
    if (collector->files_count > 0)
        return 0;
    rc = error_set(err, -ENODEV, "cgroup '%s' has no file that we know", collector->path.path);
    cgroup_forget(collector);
    return rc;
}

static int cgroup_open(const struct sample_config *config, struct collector **out_collector, struct error *err)
{
    if (config->cgroup == NULL || config->cgroup[0] == '\0')
        return error_set(err, -ENODEV, "no cgroup to watch is configured");
    CLEANUP(collector_cleanup) struct collector *collector = calloc(1, sizeof *collector);
    if (collector == NULL)
        return error_set(err, -ENOMEM, "no memory for a collector");
    collector->config = config;
    int rc = sample_table_init(&collector->table, cgroupfile_columns, CGROUP_COLUMNS, 1, err);
    if (rc == 0)
        rc = cgroup_search(collector, err);
    if (rc < 0)
        return rc;
    *out_collector = TAKE(collector);
    return 0;
}

/* Reads all files; false when none can be read any more, and so the cgroup is gone. */
static bool cgroup_read_files(struct collector *collector, struct cgroupfile_values *values)
{
    bool is_there = false;
    for (size_t i = 0; i < collector->files_count; i++) {
        struct cgroup_file *file = &collector->files[i];
        if (procfile_read(&file->file, NULL) < 0)
            continue;
        is_there = true;
        cgroupfile_parse(file->what, file->file.text, file->file.length, values);
    }
    return is_there;
}

static void cgroup_fill_row(struct collector *collector, const struct cgroupfile_values *values)
{
    const char *name = collector->path.name;
    struct sample_row *row = sample_table_row(&collector->table, name, strlen(name));
    if (row == NULL)
        return;
    sample_row_set_label(row, collector->path.path, strlen(collector->path.path));
    for (size_t i = 0; i < CGROUP_COLUMNS; i++) {
        if (!values->is_known[i])
            continue;
        if (cgroupfile_columns[i].kind == SAMPLE_COUNTER)
            sample_row_count(row, i, values->numbers[i]);
        else
            sample_row_integer(row, i, (int64_t)values->numbers[i]); /* cgroupfile bounds it */
    }
}

static int cgroup_read(struct collector *collector, int64_t now_boot_ns, struct error *err)
{
    (void)err; /* a cgroup that ends is what cgroups do */
    if (collector->files_count == 0 && now_boot_ns - collector->searched_boot_ns >= CGROUP_RETRY_NS) {
        collector->searched_boot_ns = now_boot_ns;
        (void)cgroup_search(collector, NULL);
    }
    struct cgroupfile_values values = {0};
    sample_table_begin(&collector->table);
    if (cgroup_read_files(collector, &values)) {
        cgroup_fill_row(collector, &values);
    } else if (collector->files_count > 0) {
        cgroup_forget(collector);
        collector->searched_boot_ns = now_boot_ns;
    }
    sample_table_end(&collector->table);
    return 0;
}

static const struct sample_table *cgroup_table(const struct collector *collector)
{
    return &collector->table;
}

static void cgroup_take_notes(struct collector *collector, struct buf *out)
{
    if (collector->is_missing_said || collector->table.rows_count == 0)
        return;
    collector->is_missing_said = true;
    const struct sample_row *row = collector->table.rows[0];
    const char *separator = "";
    for (size_t i = 0; i < ARRAY_LENGTH(cgroup_parts); i++) {
        if (row->values[cgroup_parts[i].column].is_known)
            continue;
        buf_printf(out, "%s%s", separator[0] == '\0' ? "no numbers of " : separator, cgroup_parts[i].name);
        separator = ", ";
    }
    if (separator[0] != '\0')
        buf_printf(out, " for cgroup '%s': the controllers are not in use for it\n", row->label);
}

const struct collector_ops cgroup_collector = {
    .name = "cgroup",
    .help = "CPU, memory, I/O, tasks and pressure of one job's cgroup (version 1 and 2)",
    .open = cgroup_open,
    .read = cgroup_read,
    .table = cgroup_table,
    .take_notes = cgroup_take_notes,
    .close = cgroup_close,
};
