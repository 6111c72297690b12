/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk: what block devices did, from /proc/diskstats: a row for each whole device, named as the kernel names it; its
 * label is the name that the device mapper has for it ("vg-root" of dm-0).
 *
 * A partition has no row: what it does is in its device's. Whether something is one is asked of
 * /sys/class/block/<name>/partition when the name first appears, never guessed from the name. Loop and RAM devices are
 * left out: they are memory, or a file whose device is in the list. zram is in it: it is swap.
 */
#ifndef SAMPLE_DISK_H
#define SAMPLE_DISK_H

#include <stdbool.h>
#include <stddef.h>

#include "sample/collector.h"

enum disk_column {
    DISK_READS_COMPLETED,
    DISK_BYTES_READ,
    DISK_READ_MS,
    DISK_WRITES_COMPLETED,
    DISK_BYTES_WRITTEN,
    DISK_WRITE_MS,
    DISK_IOS_IN_PROGRESS,
    DISK_IO_MS,
    DISK_WEIGHTED_IO_MS,
    DISK_DISCARDS_COMPLETED, /* Linux 4.18 */
    DISK_BYTES_DISCARDED,
    DISK_FLUSHES_COMPLETED, /* Linux 5.5 */
    DISK_COLUMNS,
};

extern const struct collector_ops disk_collector;

/* What is known of the block devices of one kernel. */
struct disk_tables {
    struct sample_table disks; /* the collector's table */
    struct sample_table known; /* every name that the kernel lists, without columns; partitions have a group */
};

/* Tables without rows. -ENOMEM, and then they may be given to disk_tables_fini() all the same. */
MUST_CHECK int disk_tables_init(struct disk_tables *tables, struct error *err);
void disk_tables_fini(struct disk_tables *tables);

/* Answers whether the block device `name` is a partition. */
struct disk_partitions {
    bool (*is_partition)(const void *context, const char *name);
    const void *context;
};

/*
 * Parses the text of /proc/diskstats into one tick of `tables`; pure but for `partitions`, which is asked once for each
 * name that is new. An empty text is a machine without block devices; it fails with -EBADMSG, tables untouched, when
 * nothing of a text makes sense. A bad line is counted in `disks.lines_bad` and spoils itself alone.
 */
MUST_CHECK int disk_parse(const char *text, size_t length, const struct disk_partitions *partitions,
                          struct disk_tables *tables, struct error *err);

#endif
