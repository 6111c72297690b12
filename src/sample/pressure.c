/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/pressure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample/procfile.h"
#include "util/cursor.h"

static const struct sample_column pressure_columns[PRESSURE_COLUMNS] = {
    [PRESSURE_SOME_AVG10] = {"some_avg10", "%", "time in which some task stood still, mean of 10 s", SAMPLE_REAL},
    [PRESSURE_SOME_AVG60] = {"some_avg60", "%", "the same of 60 s", SAMPLE_REAL},
    [PRESSURE_SOME_AVG300] = {"some_avg300", "%", "the same of 300 s", SAMPLE_REAL},
    [PRESSURE_SOME_TOTAL_US] = {"some_total_us", "us", "time in which some task stood still", SAMPLE_COUNTER},
    [PRESSURE_FULL_AVG10] = {"full_avg10", "%", "time in which all tasks stood still, mean of 10 s", SAMPLE_REAL},
    [PRESSURE_FULL_AVG60] = {"full_avg60", "%", "the same of 60 s", SAMPLE_REAL},
    [PRESSURE_FULL_AVG300] = {"full_avg300", "%", "the same of 300 s", SAMPLE_REAL},
    [PRESSURE_FULL_TOTAL_US] = {"full_total_us", "us", "time in which all tasks stood still", SAMPLE_COUNTER},
};

/* Files of /proc/pressure, and so the names of the rows. */
static const char *const pressure_names[] = {"cpu", "memory", "io", "irq"};

struct collector {
    struct procfile files[ARRAY_LENGTH(pressure_names)]; /* closed: the kernel has no such file */
    struct sample_table table;
};

int pressure_table_init(struct sample_table *table, struct error *err)
{
    return sample_table_init(table, pressure_columns, PRESSURE_COLUMNS, 0, err);
}

/* One line, "some avg10=0.26 avg60=0.15 avg300=0.06 total=2366279". */
static bool pressure_parse_line(struct cursor line, struct sample_row *row)
{
    static const char *const mean_keys[] = {"avg10=", "avg60=", "avg300="};
    struct cursor word;
    if (!cursor_word(&line, &word))
        return false;
    bool is_some = cursor_equals(&word, "some");
    if (!is_some && !cursor_equals(&word, "full"))
        return false;
    size_t first = is_some ? PRESSURE_SOME_AVG10 : PRESSURE_FULL_AVG10;

    double means[ARRAY_LENGTH(mean_keys)];
    for (size_t i = 0; i < ARRAY_LENGTH(mean_keys); i++) {
        cursor_skip_blanks(&line);
        if (!cursor_accept_text(&line, mean_keys[i]) || !cursor_double(&line, &means[i]))
            return false;
    }
    uint64_t total_us;
    cursor_skip_blanks(&line);
    if (!cursor_accept_text(&line, "total=") || !cursor_u64(&line, &total_us))
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(means); i++)
        sample_row_real(row, first + i, means[i]);
    sample_row_count(row, first + ARRAY_LENGTH(means), total_us);
    return true;
}

void pressure_parse(const char *text, size_t length, const char *name, struct sample_table *table)
{
    struct sample_row *row = sample_table_row(table, name, strlen(name));
    if (row == NULL)
        return;
    struct cursor all = cursor_of(text, length);
    struct cursor line;
    while (cursor_line(&all, &line)) {
        if (!pressure_parse_line(line, row))
            table->lines_bad++;
    }
}

static void pressure_close(struct collector *collector)
{
    if (collector == NULL)
        return;
    for (size_t i = 0; i < ARRAY_LENGTH(collector->files); i++)
        procfile_close(&collector->files[i]);
    sample_table_fini(&collector->table);
    free(collector);
}
DEFINE_CLEANUP(collector, pressure_close);

/* Opens the files that there are. A kernel without PSI lacks them; one that was booted with psi=0 fails to read them.
 */
static int pressure_open_files(struct collector *collector, const char *proc_path, struct error *err)
{
    size_t opened = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(pressure_names); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "pressure/%s", pressure_names[i]); /* fits: the names are above */
        struct procfile *file = &collector->files[i];
        int rc = procfile_open(file, proc_path, name, err);
        if (rc == 0)
            rc = procfile_read(file, err);
        if (rc == -ENOMEM)
            return rc;
        if (rc < 0)
            procfile_close(file);
        else
            opened++;
    }
    if (opened == 0)
        return error_set(err, -ENODEV, "no '%s/pressure/cpu' that can be read (Linux 4.20 and psi=1)", proc_path);
    return 0;
}

static int pressure_open(const struct sample_config *config, struct collector **out_collector, struct error *err)
{
    CLEANUP(collector_cleanup) struct collector *c = calloc(1, sizeof *c);
    if (c == NULL)
        return error_set(err, -ENOMEM, "no memory for a collector");
    for (size_t i = 0; i < ARRAY_LENGTH(c->files); i++)
        c->files[i] = PROCFILE_CLOSED;
    int rc = pressure_table_init(&c->table, err);
    if (rc == 0)
        rc = pressure_open_files(c, config->proc_path, err);
    if (rc < 0)
        return rc;
    *out_collector = TAKE(c);
    return 0;
}

static int pressure_read(struct collector *collector, int64_t now_boot_ns, struct error *err)
{
    (void)now_boot_ns;
    for (size_t i = 0; i < ARRAY_LENGTH(collector->files); i++) {
        struct procfile *file = &collector->files[i];
        int rc = file->fd >= 0 ? procfile_read(file, err) : 0;
        if (rc < 0)
            return rc;
    }
    sample_table_begin(&collector->table);
    for (size_t i = 0; i < ARRAY_LENGTH(collector->files); i++) {
        const struct procfile *file = &collector->files[i];
        if (file->fd >= 0)
            pressure_parse(file->text, file->length, pressure_names[i], &collector->table);
    }
    sample_table_end(&collector->table);
    return 0;
}

static const struct sample_table *pressure_table(const struct collector *collector)
{
    return &collector->table;
}

const struct collector_ops pressure_collector = {
    .name = "pressure",
    .help = "how long tasks stood still for want of CPU, memory or I/O (/proc/pressure)",
    .open = pressure_open,
    .read = pressure_read,
    .table = pressure_table,
    .close = pressure_close,
};
