/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment: the layout of the counters that an application shares with the proxy.
 *
 * A segment is one file, usually /dev/shm/cicada-<uid>/<id>.segment, made by the client library at its first metric and
 * shared by all processes that are forked from there. It describes itself: a proxy that starts later, or that succeeds
 * one that was killed, needs nothing but the file. Header only, so that whoever writes or reads segments includes this
 * and nothing else; no function here makes a system call.
 *
 *   0                 header: what it is, whose, how much is used
 *   SEGMENT_HEADER…   records, each at a multiple of SEGMENT_ALIGN:
 *                       JOB      which job the processes belong to: one JSON text, as in the socket's protocol
 *                       PROCESS  one process that writes here
 *                       METRIC   a name, a kind, and the cells that it occupies in every shard
 *                       BLOCK    cells first_cell … of one shard
 *                       GAP      nothing
 *
 * Appending: add the record's size to header.used_bytes (atomically; processes do it at once), fill the record, then
 * store its `word`, which makes it exist. A writer that is killed in between leaves a gap of zeros at `word`; a reader
 * steps over it by SEGMENT_ALIGN. Records are never moved, changed or removed, but for the cells in blocks.
 *
 * Cells are 8 bytes, aligned: a load or store of one is atomic on all machines that we run on. A block belongs to one
 * shard, a shard to one thread at a time: adding needs no lock. A shard whose thread has ended keeps its
 * values, and the next thread adds on top: so every cell of a counter only grows, whenever it is read. A counter's
 * total is the sum of its cells over all shards.
 *
 * The file grows by regions (SEGMENT_REGION_FIRST_BYTES, then as much again as there is), so that what is mapped never
 * moves; no record crosses a region's end.
 *
 * Readers use pread(), never a mapping (the owner could truncate the file under it), and trust no byte.
 */
#ifndef SEGMENT_SEGMENT_H
#define SEGMENT_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_MAGIC   UINT64_C(0x31676573616b6963) /* "cikaseg1" */
#define SEGMENT_VERSION 1u

enum {
    SEGMENT_ALIGN = 64,                   /* of records: a cache line, so that two shards never share one */
    SEGMENT_HEADER_BYTES = 256,           /* where the first record may begin */
    SEGMENT_REGION_FIRST_BYTES = 1 << 16, /* the file at birth */
    SEGMENT_BYTES_MAX = 1 << 26,          /* the largest file: what one application may cost */
    SEGMENT_REGIONS_MAX = 11,             /* 64 KiB doubled ten times is 64 MiB */
    SEGMENT_BLOCK_CELLS = 504,            /* with the record's head 4 KiB */
    SEGMENT_BLOCK_BYTES = SEGMENT_ALIGN + 8 * SEGMENT_BLOCK_CELLS,
    SEGMENT_BLOCKS_MAX = 256, /* a shard: 129,024 cells */
    SEGMENT_CELLS_MAX = SEGMENT_BLOCK_CELLS * SEGMENT_BLOCKS_MAX,
    SEGMENT_NAME_MAX_BYTES = 1024, /* of a metric, labels included */
    SEGMENT_DOC_MAX_BYTES = 1024,
    SEGMENT_JOB_MAX_BYTES = 1 << 14,
    SEGMENT_SHARDS_MAX = 1 << 14,
    SEGMENT_ID_BYTES = 16,
};

enum segment_record_kind {
    SEGMENT_JOB = 1,
    SEGMENT_PROCESS = 2,
    SEGMENT_METRIC = 3,
    SEGMENT_BLOCK = 4,
    SEGMENT_GAP = 5, /* nothing: the rest of a region that was too short for a record */
};

enum segment_metric_kind {
    /*
     * Two cells: a double that metric_proxy_counter_inc() adds to, and a whole number that
     * metric_proxy_counter_add_u64() adds to. The counter is their sum.
     */
    SEGMENT_COUNTER = 1,
    /* One cell, a whole number; the counter is it times `scale` (1e-9 for a time that is counted in nanoseconds). */
    SEGMENT_COUNTER_U64 = 2,
    /* Two cells in the shard of the process (not of a thread): the double last set, and how often it was set; 0: never.
     */
    SEGMENT_GAUGE = 3,
    /* `cells_count` whole numbers: one for each bucket of a histogram, then the sum in units of `scale`. */
    SEGMENT_HISTOGRAM = 4,
};

struct segment_header {
    uint64_t magic; /* stored last: a file without it is still being made, or is none of ours */
    uint32_t version;
    uint32_t header_bytes;             /* SEGMENT_HEADER_BYTES */
    uint8_t id[SEGMENT_ID_BYTES];      /* random; names the segment in the proxy's state for ever */
    uint8_t boot_id[SEGMENT_ID_BYTES]; /* of the kernel: pids of another boot mean nothing */
    uint32_t uid;
    uint32_t flags; /* SEGMENT_FLAG_… */
    int64_t created_wall_ns;
    uint64_t used_bytes;      /* atomic: where the next record goes; may pass the file's size when growing failed */
    uint64_t cells_used;      /* atomic: cells given to metrics */
    uint64_t shards_used;     /* atomic: shards given out */
    uint64_t refused_metrics; /* atomic: declarations, and increments in threads, that found no room: they are lost and
                                 this says so */
};

/*
 * The maker holds a read lock on the whole file (fcntl, F_OFD_SETLK). It belongs to the open file, which the maker's
 * mapping keeps open in it and in its forked children: a segment is in use as long as the lock is there, whatever
 * descriptors programs close and whichever pid name space they are in. F_OFD_GETLK asks without taking it, but
 * of another open file: a descriptor that came by the socket is the maker's own, and has to be opened anew.
 */
#define SEGMENT_FLAG_LOCKED 1u

/* `word` of a record: its magic, kind and size in one store, so that it exists wholly or not at all. */
#define SEGMENT_WORD_MAGIC UINT64_C(0xc1cada) /* upper 24 bits */

/* The word of a record of `bytes`, a multiple of SEGMENT_ALIGN. */
static inline uint64_t segment_word(enum segment_record_kind kind, uint32_t bytes)
{
    return SEGMENT_WORD_MAGIC << 40 | (uint64_t)kind << 32 | bytes;
}

/* Takes a word apart; false when it is none, or its size can't be one. */
static inline bool segment_word_parse(uint64_t word, uint8_t *out_kind, uint32_t *out_bytes)
{
    uint32_t bytes = (uint32_t)word;
    if (word >> 40 != SEGMENT_WORD_MAGIC || bytes == 0 || bytes % SEGMENT_ALIGN != 0)
        return false;
    *out_kind = (uint8_t)(word >> 32);
    *out_bytes = bytes;
    return true;
}

struct segment_job {
    uint64_t word;
    uint32_t text_bytes;
    char text[]; /* JSON, [text_bytes], no NUL */
};

/* A process writes here as long as a process of this pid with this start time lives. */
struct segment_process {
    uint64_t word;
    int32_t pid; /* as the process sees itself */
    int32_t parent_pid;
    uint64_t pid_namespace; /* inode of /proc/self/ns/pid: a reader in another one translates, or asks the socket */
    uint64_t start_ticks;   /* field 22 of /proc/<pid>/stat */
    uint64_t process_shard; /* the shard with its gauges */
};

struct segment_metric {
    uint64_t word;
    uint32_t first_cell;
    uint32_t cells_count;
    double scale;
    uint16_t kind; /* enum segment_metric_kind */
    uint16_t name_bytes;
    uint16_t doc_bytes;
    uint16_t bounds_count; /* SEGMENT_HISTOGRAM: upper bounds of the buckets but the last, as doubles before the name */
    char text[];           /* bounds, name, doc; no NULs */
};

struct segment_block {
    uint64_t word;
    uint32_t shard;
    uint32_t first_cell; /* multiple of SEGMENT_BLOCK_CELLS */
    uint64_t reserved[6];
    uint64_t cells[SEGMENT_BLOCK_CELLS]; /* [first_cell … first_cell + SEGMENT_BLOCK_CELLS) of this shard */
};

/*
 * The first bytes on the proxy's UNIX socket, with the segment's descriptor as SCM_RIGHTS. A client of the JSON
 * protocol begins with '{'.
 */
#define SEGMENT_HELLO_MAGIC UINT64_C(0x6f6c6c6568696b63) /* "ckihello" */

struct segment_hello {
    uint64_t magic;
    uint32_t version;
    uint32_t reserved;
};

_Static_assert(sizeof(struct segment_header) <= SEGMENT_HEADER_BYTES, "the header has its place");
_Static_assert(offsetof(struct segment_block, cells) == SEGMENT_ALIGN, "cells begin on a cache line");
_Static_assert(sizeof(struct segment_block) == SEGMENT_BLOCK_BYTES, "a block ends on a cache line");

/* Bytes of a record whose fixed part and texts take `bytes`. */
static inline uint32_t segment_record_bytes(size_t bytes)
{
    return (uint32_t)((bytes + SEGMENT_ALIGN - 1) / SEGMENT_ALIGN * SEGMENT_ALIGN);
}

/* Region `index` covers the file from its start to its end: 0..64 KiB, ..128 KiB, ..256 KiB, … */
static inline size_t segment_region_end(unsigned index)
{
    return (size_t)SEGMENT_REGION_FIRST_BYTES << index;
}

/* Where region `index` begins. */
static inline size_t segment_region_start(unsigned index)
{
    return index == 0 ? 0 : segment_region_end(index - 1);
}

/* The region that `offset` lies in; SEGMENT_REGIONS_MAX when it lies in none. */
static inline unsigned segment_region_of(size_t offset)
{
    unsigned index = 0;
    while (index < SEGMENT_REGIONS_MAX && offset >= segment_region_end(index))
        index++;
    return index;
}

#endif
