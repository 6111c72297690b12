/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment_reader: what one segment (segment/segment.h) says: its job, its processes, its metrics and their values.
 *
 * Reads with pread() and keeps where the records are, so that a turn costs one read of the header and one of each block
 * of cells. Trusts nothing: a record that can't be is passed over and counted, numbers are bounded before memory is
 * taken. A client can spoil its own numbers, and nothing else. Counters of one reader never fall from one turn to the
 * next.
 *
 * Leaves to others: finding segments, knowing whether a process lives, mapping names. One thread.
 */
#ifndef PROXY_SEGMENT_READER_H
#define PROXY_SEGMENT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/segment.h"
#include "util/error.h"

/* What one segment can make us hold. */
#define SEGMENT_READER_METRICS_MAX   100000
#define SEGMENT_READER_PROCESSES_MAX 65536
#define SEGMENT_READER_BLOCKS_MAX    (SEGMENT_BYTES_MAX / SEGMENT_BLOCK_BYTES)

struct segment_reader;

/* A process as it entered itself. */
struct segment_reader_process {
    int32_t pid; /* in its own name space */
    int32_t parent_pid;
    uint64_t pid_namespace;
    uint64_t start_ticks;
    uint64_t shard; /* of its gauges */
    bool is_ended;  /* set by the reader's user: its gauges leave */
};

struct segment_reader_metric {
    enum segment_metric_kind kind;
    const char *name; /* as the client wrote it, not NUL-terminated; owned by the reader */
    size_t name_bytes;
    const char *doc;
    size_t doc_bytes;
    double scale;
    const double *bounds; /* [bounds_count], of a histogram */
    size_t bounds_count;
    uint32_t first_cell;
    uint32_t cells_count;

    /* After segment_reader_read(): */
    double total;      /* counters: the number itself; histograms: the sum of what was observed */
    uint64_t *buckets; /* [bounds_count + 1], of a histogram: not cumulative */
    double gauge_min;  /* gauges, over the processes that live and have set them */
    double gauge_max;
    double gauge_total;
    uint64_t gauge_hits;
};

/*
 * Takes `fd` (even on failure), a descriptor of a segment's file. -EAGAIN: it is still being made; -EBADMSG: it is no
 * segment, of another version, or of a user other than `uid`; -ENOMEM; what fstat() and pread() give.
 */
MUST_CHECK int segment_reader_open(int fd, uint32_t uid, struct segment_reader **out_reader, struct error *err);
void segment_reader_close(struct segment_reader *reader);
DEFINE_CLEANUP(segment_reader, segment_reader_close);

/* Reads records that are new and all values. On failure the values are those of the turn before. -ENOMEM, -EIO…. */
MUST_CHECK int segment_reader_read(struct segment_reader *reader, struct error *err);

enum segment_reader_use {
    SEGMENT_READER_IN_USE,      /* some process has it mapped or open */
    SEGMENT_READER_UNUSED,      /* none has, and none ever will: nothing is counted any more */
    SEGMENT_READER_USE_UNKNOWN, /* its maker could not lock it: ask for its processes */
};

/* Is the segment in use? Ask before the last segment_reader_read(), so that it sees all that was counted. */
enum segment_reader_use segment_reader_use(const struct segment_reader *reader);

const uint8_t *segment_reader_id(const struct segment_reader *reader);      /* [SEGMENT_ID_BYTES] */
const uint8_t *segment_reader_boot_id(const struct segment_reader *reader); /* [SEGMENT_ID_BYTES] */
/* When the program began to count. */
int64_t segment_reader_created_wall_ns(const struct segment_reader *reader);

/* The job's JSON, not NUL-terminated; NULL while there is none. Borrowed. */
const char *segment_reader_job(const struct segment_reader *reader, size_t *out_bytes);

/* In the order in which they stand in the segment; the order and the numbers of those that exist never change. */
size_t segment_reader_metrics_count(const struct segment_reader *reader);
const struct segment_reader_metric *segment_reader_metric_at(const struct segment_reader *reader, size_t index);
size_t segment_reader_processes_count(const struct segment_reader *reader);
struct segment_reader_process *segment_reader_process_at(struct segment_reader *reader, size_t index);

/* Declarations that the client had to refuse, and records that we passed over. */
uint64_t segment_reader_refused(const struct segment_reader *reader);
uint64_t segment_reader_bad_records(const struct segment_reader *reader);

#endif
