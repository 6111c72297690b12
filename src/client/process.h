/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process: the one instance of the client in this process: its segment, its shards, and whose thread has which.
 *
 * The library keeps mutable globals, which nothing else in Cicada may: a program that is linked with it twice must
 * still count once, and an increment must find its cell without an argument.
 *
 * fork(): a page that the kernel wipes in a child (MADV_WIPEONFORK; before Linux 4.14 an atfork handler) says
 * whether this process has entered itself in the segment. A child's first increment finds it empty and takes the slow
 * path, so a child that counts nothing costs nothing. Shards of the parent are never written by the child.
 *
 * Threads: a thread takes a shard at its first increment. Nothing runs at its end; whoever needs a shard later takes
 * over one whose thread is gone (by tgkill), looking at a few in turn. So counting works in the last destructor of a
 * thread too.
 */
#ifndef CLIENT_PROCESS_H
#define CLIENT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "segment/segment.h"

/* One thread's cells, by block; NULL where it has none yet. Private memory: only the blocks are shared. */
struct shard {
    uint64_t *blocks[SEGMENT_BLOCKS_MAX];
    struct shard *next; /* of the process's list */
    uint32_t number;
    int tid;
};

/* Lives in the page that fork() wipes: all zero means that this process has not entered itself. */
struct process_page {
    uint32_t is_ready;
    uint32_t lock;
};

/* Where the cells of a metric are: the handle that programs hold. */
struct MetricProxyValue {
    uint32_t block;
    uint32_t offset; /* in the block */
    uint16_t kind;   /* enum segment_metric_kind */
    uint16_t bounds_count;
    uint32_t name_bytes;
    struct MetricProxyValue *next; /* in the hash chain */
    uint64_t hash;
    double *bounds;
    char *name; /* name_bytes, no NUL */
};

extern __attribute__((visibility("hidden"))) struct process_page *process_page;
extern
    __attribute__((visibility("hidden"), tls_model("initial-exec"))) _Thread_local struct shard *process_thread_shard;

/* Makes the segment, once per program. False when there is no memory even for counting in private. */
bool process_start(void);

/*
 * The slow path: enters the process after a fork, gives the thread a shard, the shard a block. NULL when the segment is
 * full: the increment is lost and header.refused_metrics says that some were.
 */
uint64_t *process_find_cells(const struct MetricProxyValue *value);

/* Cells of the process rather than of a thread, for gauges. NULL like above. */
uint64_t *process_find_gauge(const struct MetricProxyValue *value);

/* Cells for a metric and its record in the segment; the same name and kind gives the same handle. NULL: refused. */
struct segment_metric_spec {
    const char *name;
    size_t name_bytes;
    const char *doc;
    size_t doc_bytes;
    const double *bounds;
    size_t bounds_count;
    enum segment_metric_kind kind;
    uint32_t cells_count;
    double scale;
};
struct MetricProxyValue *process_declare(const struct segment_metric_spec *spec);

/* The cells of `value` in this thread's shard. The hot path of every increment. */
static inline uint64_t *process_cells(const struct MetricProxyValue *value)
{
    struct shard *shard = process_thread_shard;
    /* The page first: after a fork the thread's shard is still the parent's. */
    if (__builtin_expect(__atomic_load_n(&process_page->is_ready, __ATOMIC_RELAXED) != 0 && shard != NULL, 1)) {
        uint64_t *block = shard->blocks[value->block];
        if (__builtin_expect(block != NULL, 1))
            return block + value->offset;
    }
    return process_find_cells(value);
}

#endif
