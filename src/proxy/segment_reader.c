/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/segment_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    READER_CHUNK_BYTES = 1 << 16, /* of records, read at once; the largest record fits */
    READER_BOUNDS_MAX = 64,
};

struct reader_block {
    uint64_t offset; /* of its cells, in the file */
    uint32_t shard;
    uint32_t first_cell;
};

/* What the blocks of one turn add up to. */
struct reader_sum {
    double real;
    uint64_t whole;
};

struct segment_reader {
    int fd;
    struct segment_header header;
    uint64_t walked_bytes; /* all records before are known; here may be one that is still being written */
    uint8_t *taken;        /* a bit for each SEGMENT_ALIGN bytes: a record that begins here is known */
    size_t taken_bytes;
    char *job;
    size_t job_bytes;
    struct segment_reader_metric *metrics;
    size_t metrics_count, metrics_capacity;
    uint32_t *by_cell; /* numbers of metrics in the order of their cells: [by_cell_count] */
    size_t by_cell_count;
    struct reader_sum *sums; /* [by_cell_count], by number of metric */
    struct segment_reader_process *processes;
    size_t processes_count, processes_capacity;
    struct reader_block *blocks;
    size_t blocks_count, blocks_capacity;
    uint64_t bad_records;
};

_Static_assert(READER_CHUNK_BYTES >= SEGMENT_JOB_MAX_BYTES + SEGMENT_HEADER_BYTES, "a job's text fits into a chunk");

/* Room for one more element; true when there is. */
static bool reader_grow(void **array, size_t *capacity, size_t count, size_t element_bytes, size_t max)
{
    if (count < *capacity)
        return true;
    if (count >= max)
        return false;
    size_t wanted = *capacity > 0 ? *capacity * 2 : 8;
    if (wanted > max)
        wanted = max;
    void *grown = realloc(*array, wanted * element_bytes);
    if (grown == NULL)
        return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

static int reader_read_header(struct segment_reader *reader, struct error *err)
{
    struct segment_header header;
    ssize_t got = pread(reader->fd, &header, sizeof header, 0);
    if (got < 0)
        return error_errno(err, "reading a segment's header");
    if ((size_t)got < sizeof header || header.magic == 0)
        return error_set(err, -EAGAIN, "a segment that is still being made");
    if (header.magic != SEGMENT_MAGIC || header.header_bytes != SEGMENT_HEADER_BYTES)
        return error_set(err, -EBADMSG, "not a segment");
    if (header.version != SEGMENT_VERSION)
        return error_set(err, -EBADMSG, "a segment of version %u; this proxy reads version %u", header.version,
                         SEGMENT_VERSION);
    reader->header = header;
    return 0;
}

static int reader_check_owner(const struct segment_reader *reader, uint32_t uid, struct error *err)
{
    struct stat info;
    if (fstat(reader->fd, &info) < 0)
        return error_errno(err, "looking at a segment");
    if (!S_ISREG(info.st_mode))
        return error_set(err, -EBADMSG, "not a regular file");
    if (info.st_uid != uid)
        return error_set(err, -EBADMSG, "a segment of user %u", (unsigned)info.st_uid);
    return 0;
}

int segment_reader_open(int fd, uint32_t uid, struct segment_reader **out_reader, struct error *err)
{
    CLEANUP(segment_reader_cleanup) struct segment_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        close(fd);
        return error_set(err, -ENOMEM, "no memory for one more segment");
    }
    reader->fd = fd;
    int rc = reader_check_owner(reader, uid, err);
    if (rc == 0)
        rc = reader_read_header(reader, err);
    if (rc < 0)
        return rc;
    reader->walked_bytes = SEGMENT_HEADER_BYTES;
    *out_reader = TAKE(reader);
    return 0;
}

void segment_reader_close(struct segment_reader *reader)
{
    if (reader == NULL)
        return;
    for (size_t i = 0; i < reader->metrics_count; i++) {
        free((void *)(uintptr_t)reader->metrics[i].name); /* name, doc and bounds are one piece */
        free(reader->metrics[i].buckets);
    }
    free(reader->taken);
    free(reader->by_cell);
    free(reader->sums);
    free(reader->metrics);
    free(reader->processes);
    free(reader->blocks);
    free(reader->job);
    close(reader->fd);
    free(reader);
}

static bool reader_take_job(struct segment_reader *reader, const char *record, uint32_t bytes)
{
    struct segment_job job;
    if (reader->job != NULL || bytes < sizeof job)
        return false;
    memcpy(&job, record, sizeof job);
    if (job.text_bytes > SEGMENT_JOB_MAX_BYTES || job.text_bytes > bytes - offsetof(struct segment_job, text))
        return false;
    reader->job = malloc(job.text_bytes + 1);
    if (reader->job == NULL)
        return false;
    memcpy(reader->job, record + offsetof(struct segment_job, text), job.text_bytes);
    reader->job[job.text_bytes] = '\0';
    reader->job_bytes = job.text_bytes;
    return true;
}

static bool reader_take_process(struct segment_reader *reader, const char *record, uint32_t bytes)
{
    struct segment_process process;
    if (bytes < sizeof process ||
        !reader_grow((void **)&reader->processes, &reader->processes_capacity, reader->processes_count,
                     sizeof *reader->processes, SEGMENT_READER_PROCESSES_MAX))
        return false;
    memcpy(&process, record, sizeof process);
    reader->processes[reader->processes_count++] = (struct segment_reader_process){
        .pid = process.pid,
        .parent_pid = process.parent_pid,
        .pid_namespace = process.pid_namespace,
        .start_ticks = process.start_ticks,
        .shard = process.process_shard,
    };
    return true;
}

/* Has the metric the cells that its kind needs, all of them in one block? */
static bool reader_is_metric(const struct segment_metric *metric, uint32_t bytes)
{
    size_t text_bytes = metric->bounds_count * sizeof(double) + metric->name_bytes + metric->doc_bytes;
    if (metric->bounds_count > READER_BOUNDS_MAX || text_bytes > bytes - offsetof(struct segment_metric, text) ||
        metric->name_bytes == 0 || metric->name_bytes > SEGMENT_NAME_MAX_BYTES ||
        metric->doc_bytes > SEGMENT_DOC_MAX_BYTES || !isfinite(metric->scale) || metric->scale <= 0)
        return false;
    uint32_t needed = 0;
    switch (metric->kind) {
    case SEGMENT_COUNTER:
    case SEGMENT_GAUGE:
        needed = 2;
        break;
    case SEGMENT_COUNTER_U64:
        needed = 1;
        break;
    case SEGMENT_HISTOGRAM:
        needed = metric->bounds_count + 2u;
        break;
    default:
        return false;
    }
    return metric->cells_count == needed && metric->first_cell < SEGMENT_CELLS_MAX &&
           metric->first_cell % SEGMENT_BLOCK_CELLS + needed <= SEGMENT_BLOCK_CELLS;
}

static bool reader_take_metric(struct segment_reader *reader, const char *record, uint32_t bytes)
{
    struct segment_metric head;
    if (bytes < sizeof head)
        return false;
    memcpy(&head, record, sizeof head);
    if (!reader_is_metric(&head, bytes) ||
        !reader_grow((void **)&reader->metrics, &reader->metrics_capacity, reader->metrics_count,
                     sizeof *reader->metrics, SEGMENT_READER_METRICS_MAX))
        return false;
    size_t bounds_bytes = head.bounds_count * sizeof(double);
    size_t text_bytes = (size_t)head.name_bytes + head.doc_bytes;
    char *texts = malloc(text_bytes + bounds_bytes + sizeof(double)); /* bounds follow, aligned */
    uint64_t *buckets = calloc(head.bounds_count + 1u, sizeof *buckets);
    if (texts == NULL || buckets == NULL) {
        free(texts);
        free(buckets);
        return false;
    }
    size_t bounds_at = (text_bytes + sizeof(double) - 1) / sizeof(double) * sizeof(double);
    double *bounds = (double *)(void *)(texts + bounds_at);
    memcpy(texts, record + offsetof(struct segment_metric, text) + bounds_bytes, text_bytes);
    memcpy(bounds, record + offsetof(struct segment_metric, text), bounds_bytes);
    reader->metrics[reader->metrics_count++] = (struct segment_reader_metric){
        .kind = (enum segment_metric_kind)head.kind,
        .name = texts,
        .name_bytes = head.name_bytes,
        .doc = texts + head.name_bytes,
        .doc_bytes = head.doc_bytes,
        .scale = head.scale,
        .bounds = bounds,
        .bounds_count = head.bounds_count,
        .first_cell = head.first_cell,
        .cells_count = head.cells_count,
        .buckets = buckets,
    };
    return true;
}

static bool reader_take_block(struct segment_reader *reader, const char *record, uint32_t bytes, uint64_t offset)
{
    struct reader_block block = {.offset = offset + offsetof(struct segment_block, cells)};
    if (bytes != sizeof(struct segment_block))
        return false;
    memcpy(&block.shard, record + offsetof(struct segment_block, shard), sizeof block.shard);
    memcpy(&block.first_cell, record + offsetof(struct segment_block, first_cell), sizeof block.first_cell);
    if (block.shard >= SEGMENT_SHARDS_MAX || block.first_cell >= SEGMENT_CELLS_MAX ||
        block.first_cell % SEGMENT_BLOCK_CELLS != 0 ||
        !reader_grow((void **)&reader->blocks, &reader->blocks_capacity, reader->blocks_count, sizeof *reader->blocks,
                     SEGMENT_READER_BLOCKS_MAX))
        return false;
    reader->blocks[reader->blocks_count++] = block;
    return true;
}

/* `record` is all of a record that begins at `offset` of the file. */
static void reader_take_record(struct segment_reader *reader, const char *record, uint8_t kind, uint32_t bytes,
                               uint64_t offset)
{
    bool is_good = false;
    switch (kind) {
    case SEGMENT_JOB:
        is_good = reader_take_job(reader, record, bytes);
        break;
    case SEGMENT_PROCESS:
        is_good = reader_take_process(reader, record, bytes);
        break;
    case SEGMENT_METRIC:
        is_good = reader_take_metric(reader, record, bytes);
        break;
    case SEGMENT_BLOCK:
        is_good = reader_take_block(reader, record, bytes, offset);
        break;
    case SEGMENT_GAP:
        is_good = true;
        break;
    default:
        break;
    }
    if (!is_good)
        reader->bad_records++;
}

/* Was the record at `offset` known already? It is from now on. */
static bool reader_mark_taken(struct segment_reader *reader, uint64_t offset)
{
    size_t place = (size_t)(offset / SEGMENT_ALIGN);
    uint8_t bit = (uint8_t)(1u << place % 8);
    bool was_taken = (reader->taken[place / 8] & bit) != 0;
    reader->taken[place / 8] |= bit;
    return was_taken;
}

static bool reader_grow_taken(struct segment_reader *reader, uint64_t used_bytes)
{
    size_t bytes = (size_t)(used_bytes / SEGMENT_ALIGN / 8 + 1);
    if (bytes <= reader->taken_bytes)
        return true;
    uint8_t *taken = realloc(reader->taken, bytes);
    if (taken == NULL)
        return false;
    memset(taken + reader->taken_bytes, 0, bytes - reader->taken_bytes);
    reader->taken = taken;
    reader->taken_bytes = bytes;
    return true;
}

/*
 * Looks at the records in `chunk`, which begins at `offset` of the file. Returns how many bytes it got past; what is
 * cut off by the chunk's end is left for the next one.
 */
static size_t reader_walk_chunk(struct segment_reader *reader, const char *chunk, size_t length, uint64_t offset)
{
    size_t at = 0;
    while (at + SEGMENT_ALIGN <= length) {
        uint64_t word;
        uint8_t kind;
        uint32_t bytes;
        memcpy(&word, chunk + at, sizeof word);
        bool is_record = segment_word_parse(word, &kind, &bytes) && bytes <= READER_CHUNK_BYTES;
        if (!is_record) {
            at += SEGMENT_ALIGN; /* being written, or left behind by a writer that was killed: look again next time */
            continue;
        }
        if (bytes > length - at)
            break;
        if (!reader_mark_taken(reader, offset + at))
            reader_take_record(reader, chunk + at, kind, bytes, offset + at);
        if (reader->walked_bytes == offset + at)
            reader->walked_bytes += bytes;
        at += bytes;
    }
    return at;
}

static int reader_walk(struct segment_reader *reader, struct error *err)
{
    uint64_t end = reader->header.used_bytes < SEGMENT_BYTES_MAX ? reader->header.used_bytes : SEGMENT_BYTES_MAX;
    if (reader->walked_bytes >= end)
        return 0;
    if (!reader_grow_taken(reader, end))
        return error_set(err, -ENOMEM, "no memory for the records of a segment");
    CLEANUP(memory_cleanup) char *chunk = malloc(READER_CHUNK_BYTES);
    if (chunk == NULL)
        return error_set(err, -ENOMEM, "no memory to read a segment");
    for (uint64_t offset = reader->walked_bytes; offset < end;) {
        size_t wanted = end - offset < READER_CHUNK_BYTES ? (size_t)(end - offset) : READER_CHUNK_BYTES;
        ssize_t got = pread(reader->fd, chunk, wanted, (off_t)offset);
        if (got < 0)
            return error_errno(err, "reading a segment's records");
        size_t walked = reader_walk_chunk(reader, chunk, (size_t)got, offset);
        if (walked == 0)
            break; /* the file ends here, or its last record says that it goes on */
        offset += walked;
    }
    return 0;
}

/* Which cell of a reader's metrics comes first. qsort_r() gives the metrics. */
static int reader_compare_cells(const void *a, const void *b, void *metrics)
{
    const struct segment_reader_metric *all = metrics;
    uint32_t cell_a = all[*(const uint32_t *)a].first_cell;
    uint32_t cell_b = all[*(const uint32_t *)b].first_cell;
    return cell_a < cell_b ? -1 : cell_a > cell_b;
}

static int reader_order_metrics(struct segment_reader *reader, struct error *err)
{
    size_t count = reader->metrics_count;
    if (reader->by_cell_count == count)
        return 0;
    uint32_t *by_cell = realloc(reader->by_cell, count * sizeof *by_cell);
    if (by_cell != NULL)
        reader->by_cell = by_cell;
    struct reader_sum *sums = realloc(reader->sums, count * sizeof *sums);
    if (sums != NULL)
        reader->sums = sums;
    if (by_cell == NULL || sums == NULL)
        return error_set(err, -ENOMEM, "no memory for %zu metrics of a segment", count);
    for (size_t i = 0; i < count; i++)
        by_cell[i] = (uint32_t)i;
    qsort_r(by_cell, count, sizeof *by_cell, reader_compare_cells, reader->metrics);
    reader->by_cell_count = count;
    return 0;
}

/* The first of by_cell whose cells are at or after `cell`. */
static size_t reader_find_cell(const struct segment_reader *reader, uint32_t cell)
{
    size_t low = 0;
    size_t high = reader->by_cell_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (reader->metrics[reader->by_cell[middle]].first_cell < cell)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static double reader_real(uint64_t cell)
{
    double real;
    memcpy(&real, &cell, sizeof real);
    return isfinite(real) ? real : 0;
}

static void reader_add_whole(uint64_t *sum, uint64_t count)
{
    if (__builtin_add_overflow(*sum, count, sum))
        *sum = UINT64_MAX;
}

/* Which process has this shard for its gauges, while it lives; NULL: none. */
static const struct segment_reader_process *reader_gauge_process(const struct segment_reader *reader, uint32_t shard)
{
    for (size_t i = 0; i < reader->processes_count; i++) {
        const struct segment_reader_process *process = &reader->processes[i];
        if (process->shard == shard)
            return process->is_ended ? NULL : process;
    }
    return NULL;
}

static void reader_add_gauge(struct segment_reader_metric *metric, const uint64_t *cells)
{
    if (cells[1] == 0)
        return;
    double value = reader_real(cells[0]);
    if (metric->gauge_hits == 0 || value < metric->gauge_min)
        metric->gauge_min = value;
    if (metric->gauge_hits == 0 || value > metric->gauge_max)
        metric->gauge_max = value;
    metric->gauge_total += value;
    metric->gauge_hits++;
}

static void reader_add_cells(struct segment_reader_metric *metric, struct reader_sum *sum, const uint64_t *cells,
                             bool is_gauge_shard)
{
    switch (metric->kind) {
    case SEGMENT_COUNTER:
        sum->real += reader_real(cells[0]);
        reader_add_whole(&sum->whole, cells[1]);
        break;
    case SEGMENT_COUNTER_U64:
        reader_add_whole(&sum->whole, cells[0]);
        break;
    case SEGMENT_HISTOGRAM:
        for (size_t i = 0; i <= metric->bounds_count; i++)
            reader_add_whole(&metric->buckets[i], cells[i]);
        sum->real += reader_real(cells[metric->bounds_count + 1]);
        break;
    case SEGMENT_GAUGE:
        if (is_gauge_shard)
            reader_add_gauge(metric, cells);
        break;
    }
}

static int reader_add_block(struct segment_reader *reader, const struct reader_block *block, struct error *err)
{
    uint64_t cells[SEGMENT_BLOCK_CELLS] = {0};
    ssize_t got = pread(reader->fd, cells, sizeof cells, (off_t)block->offset);
    if (got < 0)
        return error_errno(err, "reading a segment's cells");
    if ((size_t)got < sizeof cells)
        return error_set(err, -EIO, "a segment was cut while it was in use");
    bool is_gauge_shard = reader_gauge_process(reader, block->shard) != NULL;
    uint32_t end_cell = block->first_cell + SEGMENT_BLOCK_CELLS;
    for (size_t i = reader_find_cell(reader, block->first_cell); i < reader->by_cell_count; i++) {
        uint32_t number = reader->by_cell[i];
        struct segment_reader_metric *metric = &reader->metrics[number];
        if (metric->first_cell >= end_cell)
            break;
        reader_add_cells(metric, &reader->sums[number], cells + (metric->first_cell - block->first_cell),
                         is_gauge_shard);
    }
    return 0;
}

static void reader_begin(struct segment_reader *reader)
{
    for (size_t i = 0; i < reader->metrics_count; i++) {
        struct segment_reader_metric *metric = &reader->metrics[i];
        reader->sums[i] = (struct reader_sum){0};
        metric->gauge_min = metric->gauge_max = metric->gauge_total = 0;
        metric->gauge_hits = 0;
        memset(metric->buckets, 0, (metric->bounds_count + 1) * sizeof *metric->buckets);
    }
}

static void reader_end(struct segment_reader *reader)
{
    for (size_t i = 0; i < reader->metrics_count; i++) {
        struct segment_reader_metric *metric = &reader->metrics[i];
        double total = reader->sums[i].real + (double)reader->sums[i].whole * metric->scale;
        bool may_fall = metric->kind == SEGMENT_HISTOGRAM; /* the sum of what was observed, which may be negative */
        if (isfinite(total) && (may_fall || total > metric->total))
            metric->total = total;
    }
}

int segment_reader_read(struct segment_reader *reader, struct error *err)
{
    int rc = reader_read_header(reader, err);
    if (rc == 0)
        rc = reader_walk(reader, err);
    if (rc == 0)
        rc = reader_order_metrics(reader, err);
    if (rc < 0)
        return rc;
    reader_begin(reader);
    /* Blocks are added in the order of the file: the order never changes, so rounding never makes a sum fall. */
    for (size_t i = 0; i < reader->blocks_count && rc == 0; i++)
        rc = reader_add_block(reader, &reader->blocks[i], err);
    if (rc == 0)
        reader_end(reader);
    return rc;
}

enum segment_reader_use segment_reader_use(const struct segment_reader *reader)
{
    if ((reader->header.flags & SEGMENT_FLAG_LOCKED) == 0)
        return SEGMENT_READER_USE_UNKNOWN;
    /* Asks who would be in the way of a write lock. This descriptor may not take one, but it may ask. */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(reader->fd, F_OFD_GETLK, &lock) < 0)
        return SEGMENT_READER_USE_UNKNOWN;
    return lock.l_type == F_UNLCK ? SEGMENT_READER_UNUSED : SEGMENT_READER_IN_USE;
}

const uint8_t *segment_reader_id(const struct segment_reader *reader)
{
    return reader->header.id;
}

const uint8_t *segment_reader_boot_id(const struct segment_reader *reader)
{
    return reader->header.boot_id;
}

int64_t segment_reader_created_wall_ns(const struct segment_reader *reader)
{
    return reader->header.created_wall_ns;
}

const char *segment_reader_job(const struct segment_reader *reader, size_t *out_bytes)
{
    *out_bytes = reader->job_bytes;
    return reader->job;
}

size_t segment_reader_metrics_count(const struct segment_reader *reader)
{
    return reader->metrics_count;
}

const struct segment_reader_metric *segment_reader_metric_at(const struct segment_reader *reader, size_t index)
{
    return &reader->metrics[index];
}

size_t segment_reader_processes_count(const struct segment_reader *reader)
{
    return reader->processes_count;
}

struct segment_reader_process *segment_reader_process_at(struct segment_reader *reader, size_t index)
{
    return &reader->processes[index];
}

uint64_t segment_reader_refused(const struct segment_reader *reader)
{
    return reader->header.refused_metrics;
}

uint64_t segment_reader_bad_records(const struct segment_reader *reader)
{
    return reader->bad_records;
}
