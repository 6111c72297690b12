/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store: the segment's file as this process has it mapped: room for records, and records that exist.
 *
 * Ladder: a file in /dev/shm/cicada-<uid>/, else a memfd (whose descriptor the socket passes on), else memory of our
 * own, which nobody can read: then the program counts for nothing, at the same speed, and proxy_run says so.
 *
 * Calls are made under the process's lock (process.h); after fork() the child goes on with the regions that were
 * mapped.
 */
#ifndef CLIENT_STORE_H
#define CLIENT_STORE_H

#include <stdint.h>
#include <sys/types.h>

#include "segment/segment.h"

enum store_kind { STORE_PRIVATE, STORE_MEMFD, STORE_FILE };

enum { STORE_PATH_MAX_BYTES = 96 };

struct store {
    enum store_kind kind;
    int fd; /* -1: not held, open it by path. Verified by device and inode before each use: programs close descriptors
             */
    dev_t device;
    ino_t inode;
    char path[STORE_PATH_MAX_BYTES]; /* of STORE_FILE */
    char *regions[SEGMENT_REGIONS_MAX];
};

/* Makes a segment with its header and maps its first region. Always succeeds, at worst with STORE_PRIVATE or no region.
 */
void store_create(struct store *store);

/* The segment's header; only for a store with a first region. */
static inline struct segment_header *store_header(const struct store *store)
{
    return (struct segment_header *)(void *)store->regions[0];
}

/*
 * Room for a record of `bytes` (a multiple of SEGMENT_ALIGN): where it is mapped, zeroed, or NULL when the segment may
 * not or can't grow. The caller fills it and then makes it exist with store_publish().
 */
void *store_reserve(struct store *store, uint32_t bytes);
void store_publish(void *record, enum segment_record_kind kind, uint32_t bytes);

/*
 * Copies the job and those metrics of `from` that are wanted, as far as this process has it mapped, to `to`, which has
 * no records yet: each metric has the same cells in both. False when there is no room, or no region.
 */
bool store_copy_descriptions(struct store *to, const struct store *from,
                             bool (*is_wanted)(const struct segment_metric *metric));

/*
 * Unmaps and closes it; other processes of the segment go on. With `is_removed`, for one that nobody has seen, its name
 * goes too.
 */
void store_close(struct store *store, bool is_removed);

/* A descriptor of the segment, valid at the time of the call, or a negative errno. Borrowed. */
int store_descriptor(struct store *store);

#endif
