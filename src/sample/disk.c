/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample/procfile.h"
#include "util/cursor.h"
#include "util/file.h"

/* A sector of /proc/diskstats, whatever the device's own are (the kernel's Documentation/ABI/testing/procfs-diskstats).
 */
enum {
    DISK_SECTOR_BYTES = 512,
    DISK_LINE_MAX_BYTES = 1024, /* a name of at most 31 bytes, and some twenty numbers */
};

/* The kernel's numbers after major, minor and name (Documentation/admin-guide/iostats.rst). */
enum disk_field {
    DISK_FIELD_READS,
    DISK_FIELD_READS_MERGED,
    DISK_FIELD_READ_SECTORS,
    DISK_FIELD_READ_MS,
    DISK_FIELD_WRITES,
    DISK_FIELD_WRITES_MERGED,
    DISK_FIELD_WRITTEN_SECTORS,
    DISK_FIELD_WRITE_MS,
    DISK_FIELD_IN_PROGRESS,
    DISK_FIELD_IO_MS,
    DISK_FIELD_WEIGHTED_IO_MS,
    DISK_FIELDS_2_6,
    DISK_FIELD_DISCARDS = DISK_FIELDS_2_6,
    DISK_FIELD_DISCARDS_MERGED,
    DISK_FIELD_DISCARDED_SECTORS,
    DISK_FIELD_DISCARD_MS,
    DISK_FIELDS_4_18,
    DISK_FIELD_FLUSHES = DISK_FIELDS_4_18,
    DISK_FIELD_FLUSH_MS,
    DISK_FIELDS_5_5,
};

static const struct sample_column disk_columns[DISK_COLUMNS] = {
    [DISK_READS_COMPLETED] = {"reads_completed", "", "reads that the device has done", SAMPLE_COUNTER},
    [DISK_BYTES_READ] = {"bytes_read", "bytes", "read from the device", SAMPLE_COUNTER},
    [DISK_READ_MS] = {"read_ms", "ms", "time of all reads, from queue to end", SAMPLE_COUNTER},
    [DISK_WRITES_COMPLETED] = {"writes_completed", "", "writes that the device has done", SAMPLE_COUNTER},
    [DISK_BYTES_WRITTEN] = {"bytes_written", "bytes", "written to the device", SAMPLE_COUNTER},
    [DISK_WRITE_MS] = {"write_ms", "ms", "time of all writes, from queue to end", SAMPLE_COUNTER},
    [DISK_IOS_IN_PROGRESS] = {"ios_in_progress", "", "requests that the device has now", SAMPLE_INTEGER},
    [DISK_IO_MS] = {"io_ms", "ms", "time in which the device had requests", SAMPLE_COUNTER},
    [DISK_WEIGHTED_IO_MS] = {"weighted_io_ms", "ms", "the same times the number of requests", SAMPLE_COUNTER},
    [DISK_DISCARDS_COMPLETED] = {"discards_completed", "", "discards that the device has done", SAMPLE_COUNTER},
    [DISK_BYTES_DISCARDED] = {"bytes_discarded", "bytes", "discarded on the device", SAMPLE_COUNTER},
    [DISK_FLUSHES_COMPLETED] = {"flushes_completed", "", "flushes that the device has done", SAMPLE_COUNTER},
};

/* Which counter is which field. */
static const struct {
    enum disk_column column;
    enum disk_field field;
    uint64_t scale;
} disk_counters[] = {
    {DISK_READS_COMPLETED, DISK_FIELD_READS, 1},
    {DISK_BYTES_READ, DISK_FIELD_READ_SECTORS, DISK_SECTOR_BYTES},
    {DISK_READ_MS, DISK_FIELD_READ_MS, 1},
    {DISK_WRITES_COMPLETED, DISK_FIELD_WRITES, 1},
    {DISK_BYTES_WRITTEN, DISK_FIELD_WRITTEN_SECTORS, DISK_SECTOR_BYTES},
    {DISK_WRITE_MS, DISK_FIELD_WRITE_MS, 1},
    {DISK_IO_MS, DISK_FIELD_IO_MS, 1},
    {DISK_WEIGHTED_IO_MS, DISK_FIELD_WEIGHTED_IO_MS, 1},
    {DISK_DISCARDS_COMPLETED, DISK_FIELD_DISCARDS, 1},
    {DISK_BYTES_DISCARDED, DISK_FIELD_DISCARDED_SECTORS, DISK_SECTOR_BYTES},
    {DISK_FLUSHES_COMPLETED, DISK_FIELD_FLUSHES, 1},
};

static const char disk_group_partition[] = "partition";

/* A device mapper's name in /sys, with its newline: DM_NAME_LEN of the kernel is 128. */
enum { DISK_LABEL_MAX_BYTES = 256 };

struct collector {
    struct procfile file;
    struct disk_tables tables;
    const char *sys_path;
    struct buf label; /* memory for reading one */
};

int disk_tables_init(struct disk_tables *tables, struct error *err)
{
    *tables = (struct disk_tables){0};
    int rc = sample_table_init(&tables->disks, disk_columns, DISK_COLUMNS, 0, err);
    return rc < 0 ? rc : sample_table_init(&tables->known, NULL, 0, 0, err);
}

void disk_tables_fini(struct disk_tables *tables)
{
    sample_table_fini(&tables->disks);
    sample_table_fini(&tables->known);
}

/* "loop0", "ram15": the names that the drivers of loop and RAM devices have given since ever. */
static bool disk_is_memory(const struct cursor *name)
{
    struct cursor number = *name;
    uint64_t index;
    return (cursor_accept_text(&number, "loop") || cursor_accept_text(&number, "ram")) && cursor_u64(&number, &index) &&
           cursor_is_empty(&number);
}

/* Takes "   8       1 sda1" off the front of a line. */
static bool disk_take_name(struct cursor *line, struct cursor *out_name)
{
    uint64_t major_minor[2];
    size_t count;
    return procfile_numbers(line, major_minor, 2, &count) && count == 2 && cursor_word(line, out_name);
}

/* The row of a line's device; NULL when it has none: a partition, a loop device, a name that was there before. */
static struct sample_row *disk_row(const struct cursor *name, const struct disk_partitions *partitions,
                                   struct disk_tables *tables)
{
    if (disk_is_memory(name))
        return NULL;
    struct sample_row *known = sample_table_row(&tables->known, name->at, cursor_left(name));
    if (known == NULL)
        return NULL;
    if (known->is_first && partitions->is_partition(partitions->context, known->name))
        known->group = disk_group_partition;
    if (known->group != NULL)
        return NULL;
    return sample_table_row(&tables->disks, name->at, cursor_left(name));
}

static void disk_fill(struct sample_row *row, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < ARRAY_LENGTH(disk_counters); i++) {
        uint64_t raw;
        if (disk_counters[i].field < count &&
            !__builtin_mul_overflow(numbers[disk_counters[i].field], disk_counters[i].scale, &raw))
            sample_row_count(row, disk_counters[i].column, raw);
    }
    /* Kernels that count it wrong go below 0, printed as a number that no device can have in its queue. */
    if (numbers[DISK_FIELD_IN_PROGRESS] <= INT32_MAX)
        sample_row_integer(row, DISK_IOS_IN_PROGRESS, (int64_t)numbers[DISK_FIELD_IN_PROGRESS]);
}

/* One line; false when it makes no sense. */
static bool disk_parse_line(struct cursor line, bool is_cut, const struct disk_partitions *partitions,
                            struct disk_tables *tables)
{
    struct cursor name;
    if (!disk_take_name(&line, &name))
        return false;
    struct sample_row *row = disk_row(&name, partitions, tables);
    if (row == NULL)
        return true;
    uint64_t numbers[DISK_FIELDS_5_5];
    size_t count;
    if (!procfile_numbers(&line, numbers, DISK_FIELDS_5_5, &count) || count < DISK_FIELDS_2_6)
        return false;
    /* Without its newline a line has been cut, perhaps in the middle of a number: it must at least be complete. */
    if (is_cut && count != DISK_FIELDS_2_6 && count != DISK_FIELDS_4_18 && count != DISK_FIELDS_5_5)
        return false;
    disk_fill(row, numbers, count);
    return true;
}

int disk_parse(const char *text, size_t length, const struct disk_partitions *partitions, struct disk_tables *tables,
               struct error *err)
{
    struct cursor all = cursor_of(text, length);
    struct cursor line;
    struct cursor name;
    bool has_any = length == 0 && tables->known.rows_count == 0;
    for (struct cursor ahead = all; !has_any && cursor_line(&ahead, &line);)
        has_any = disk_take_name(&line, &name);
    if (!has_any)
        return error_set(err, -EBADMSG, "no line like '8 0 sda …'");

    sample_table_begin(&tables->known);
    sample_table_begin(&tables->disks);
    while (cursor_line(&all, &line)) {
        bool is_cut = line.end == text + length;
        if (!disk_parse_line(line, is_cut, partitions, tables))
            tables->disks.lines_bad++;
    }
    sample_table_end(&tables->known);
    sample_table_end(&tables->disks);
    return 0;
}

/* Makes "<sys_path>/<directory>/<name>/<file>"; the kernel writes a '/' of a device's name as '!' there. */
static bool disk_sys_path(char path[PATH_MAX], const char *sys_path, const char *directory, const char *name,
                          const char *file)
{
    int start = snprintf(path, PATH_MAX, "%s/%s/", sys_path, directory);
    if (start < 0 || start >= PATH_MAX)
        return false;
    char *name_at = path + start;
    int rest = snprintf(name_at, (size_t)(PATH_MAX - start), "%s/%s", name, file);
    if (rest < 0 || rest >= PATH_MAX - start)
        return false;
    for (size_t i = 0; name[i] != '\0'; i++) {
        if (name_at[i] == '/')
            name_at[i] = '!';
    }
    return true;
}

static bool disk_is_partition(const void *context, const char *name)
{
    const struct collector *c = context;
    char path[PATH_MAX];
    return disk_sys_path(path, c->sys_path, "class/block", name, "partition") && access(path, F_OK) == 0;
}

/* Gives a new row the name that people gave the device. Without one, or when it can't be read, it has none. */
static void disk_label(struct collector *collector, struct sample_row *row)
{
    char path[PATH_MAX];
    struct buf *label = &collector->label;
    buf_reset(label);
    if (!disk_sys_path(path, collector->sys_path, "block", row->name, "dm/name") ||
        file_read(AT_FDCWD, path, label, NULL) < 0)
        return;
    while (label->length > 0 && label->data[label->length - 1] == '\n')
        buf_truncate(label, label->length - 1);
    if (label->length > 0)
        sample_row_set_label(row, label->data, label->length);
}

static void disk_close(struct collector *collector)
{
    if (collector == NULL)
        return;
    procfile_close(&collector->file);
    disk_tables_fini(&collector->tables);
    buf_fini(&collector->label);
    free(collector);
}
DEFINE_CLEANUP(collector, disk_close);

static int disk_open(const struct sample_config *config, struct collector **out_collector, struct error *err)
{
    CLEANUP(collector_cleanup) struct collector *c = malloc(sizeof *c);
    if (c == NULL)
        return error_set(err, -ENOMEM, "no memory for a collector");
    *c = (struct collector){.file = PROCFILE_CLOSED, .sys_path = config->sys_path};
    buf_init(&c->label, DISK_LABEL_MAX_BYTES);

    int rc = disk_tables_init(&c->tables, err);
    if (rc < 0)
        return rc;
    rc = procfile_open(&c->file, config->proc_path, "diskstats", err);
    if (rc == -ENOENT || rc == -ENOTDIR)
        return error_set(err, -ENODEV, "no '%s/diskstats'", config->proc_path);
    if (rc < 0)
        return rc;
    c->file.line_max_bytes = DISK_LINE_MAX_BYTES;
    *out_collector = TAKE(c);
    return 0;
}

static int disk_read(struct collector *collector, int64_t now_boot_ns, struct error *err)
{
    (void)now_boot_ns;
    struct procfile *file = &collector->file;
    int rc = procfile_read(file, err);
    if (rc < 0)
        return rc;
    const struct disk_partitions partitions = {.is_partition = disk_is_partition, .context = collector};
    rc = disk_parse(file->text, file->length, &partitions, &collector->tables, err);
    if (rc < 0)
        return error_wrap(err, rc, "'%s'", file->path);
    const struct sample_table *disks = &collector->tables.disks;
    for (size_t i = 0; i < disks->rows_count; i++) {
        if (disks->rows[i]->is_first)
            disk_label(collector, disks->rows[i]);
    }
    return 0;
}

static const struct sample_table *disk_table(const struct collector *collector)
{
    return &collector->tables.disks;
}

const struct collector_ops disk_collector = {
    .name = "disk",
    .help = "what each whole block device did (/proc/diskstats)",
    .open = disk_open,
    .read = disk_read,
    .table = disk_table,
    .close = disk_close,
};
