/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filesystem: how full the file systems are, one row a file system, named by its mount point; the label is its device.
 *
 * Reads the list of mounts (sample/mounts.h says which ones count) when the kernel tells that it has changed, and asks
 * each mount through a probe, since statvfs() of a dead mount never returns. A mount that is stuck has no row until it
 * answers again. A tick shows what the questions before it have answered; a mount is asked at most once a second,
 * however short the period is, since its server has other clients.
 */
#ifndef SAMPLE_FILESYSTEM_H
#define SAMPLE_FILESYSTEM_H

#include "sample/collector.h"

extern const struct collector_ops filesystem_collector;

/* Columns, in the table's order. */
enum filesystem_column {
    FILESYSTEM_SIZE,
    FILESYSTEM_USED,
    FILESYSTEM_AVAILABLE,
    FILESYSTEM_FILES,
    FILESYSTEM_FILES_USED,
    FILESYSTEM_IS_READ_ONLY,
    FILESYSTEM_COLUMNS
};

#endif
