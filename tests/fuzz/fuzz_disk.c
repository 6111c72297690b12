/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/disk.h"

#include "ticks.h"

/* Some names are partitions and some aren't. */
static bool ends_in_digit(const void *context, const char *name)
{
    (void)context;
    char last = name[strlen(name) - 1];
    return last >= '0' && last <= '9';
}

static void disk_tick(const char *text, size_t length, void *context)
{
    static const struct disk_partitions partitions = {.is_partition = ends_in_digit};
    struct disk_tables *tables = context;
    size_t rows_count = tables->disks.rows_count;
    if (disk_parse(text, length, &partitions, tables, NULL) < 0)
        assert(tables->disks.rows_count == rows_count);
    assert(tables->disks.rows_count <= tables->known.rows_count);
    ticks_check(&tables->disks);
    ticks_check(&tables->known);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct disk_tables tables;
    if (disk_tables_init(&tables, NULL) == 0)
        ticks_run(data, size, disk_tick, &tables);
    disk_tables_fini(&tables);
    return 0;
}
