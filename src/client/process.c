/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/process.h"

#include <pthread.h>
#include <string.h>

#include "client/announce.h"
#include "client/job.h"
#include "client/start.h"
#include "client/store.h"
#include "client/sys.h"

enum {
    PROCESS_NAMES = 1024,          /* chains of the table of names */
    PROCESS_ARENA_BYTES = 1 << 16, /* handles and names come from pieces of this size */
    PROCESS_REUSE_TRIES = 16,      /* shards looked at for one whose thread is gone, before a new one is made */
};

/* All of the library's state. Zero until process_start(). */
struct process {
    struct store store;
    struct MetricProxyValue *names[PROCESS_NAMES];
    char *arena;
    size_t arena_used;
    struct shard *shards;      /* of this process's threads: a child begins with none */
    struct shard *reuse_next;  /* where the search for a free one goes on */
    struct shard *for_process; /* the cells that belong to no thread: gauges */
    int pid;
    uint32_t is_started;
    uint32_t start_lock;
};

static struct process process;
static struct process_page process_page_before_start;

/* Never NULL, so that the hot path need not ask. */
struct process_page *process_page = &process_page_before_start;

_Thread_local struct shard *process_thread_shard __attribute__((tls_model("initial-exec")));

/*
 * A lock for the slow path. Spins with a yield: it is held for microseconds, and a futex would need a wake at each
 * release. Signals are blocked while it is held, so a handler that counts can't wait for its own thread.
 */
static void process_lock(uint32_t *lock, uint64_t *out_signals)
{
    sys_block_signals(out_signals);
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0)
        (void)syscall(SYS_sched_yield);
}

static void process_unlock(uint32_t *lock, const uint64_t *signals)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
    sys_restore_signals(signals);
}

/* Memory for the process's life, aligned for any handle. Under the lock. */
static void *process_allocate(size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes > PROCESS_ARENA_BYTES)
        return NULL;
    if (process.arena == NULL || bytes > PROCESS_ARENA_BYTES - process.arena_used) {
        process.arena = sys_memory(PROCESS_ARENA_BYTES);
        process.arena_used = 0;
        if (process.arena == NULL)
            return NULL;
    }
    void *memory = process.arena + process.arena_used;
    process.arena_used += bytes; /* before it is used: a fork in between costs the child nothing but a look at it */
    return memory;
}

static uint64_t process_pid_namespace(void)
{
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 ? (uint64_t)info.st_ino : 0;
}

/* A shard with no blocks yet, in the process's list. Under the lock; NULL without memory or past the limit. */
static struct shard *process_new_shard(void)
{
    uint64_t number = __atomic_fetch_add(&store_header(&process.store)->shards_used, 1, __ATOMIC_RELAXED);
    if (number >= SEGMENT_SHARDS_MAX)
        return NULL;
    struct shard *shard = process_allocate(sizeof *shard);
    if (shard == NULL)
        return NULL;
    *shard = (struct shard){.number = (uint32_t)number};
    return shard;
}

/* A shard for the calling thread: one whose thread is gone, or a new one. Under the lock. */
static struct shard *process_take_shard(int tid)
{
    struct shard *shard = process.reuse_next;
    for (int tries = 0; process.shards != NULL && tries < PROCESS_REUSE_TRIES; tries++) {
        if (shard == NULL)
            shard = process.shards;
        struct shard *next = shard->next;
        /* The same tid: that thread is gone, for the one that has its number now is us, and has no shard. */
        if (shard->tid == tid || !sys_has_thread(process.pid, shard->tid)) {
            shard->tid = tid;
            process.reuse_next = next;
            return shard;
        }
        shard = next;
    }
    process.reuse_next = shard;
    struct shard *fresh = process_new_shard();
    if (fresh == NULL)
        return NULL;
    fresh->tid = tid;
    fresh->next = process.shards;
    process.shards = fresh;
    return fresh;
}

/* Writes this process into the segment. Under the lock. False when there is no room: what it counts is not shown as its
 * own. */
static bool process_enter(void)
{
    process.pid = sys_pid();
    process.shards = NULL; /* the parent's shards stay the parent's */
    process.reuse_next = NULL;
    process.for_process = process_new_shard();
    uint32_t bytes = segment_record_bytes(sizeof(struct segment_process));
    struct segment_process *record = store_reserve(&process.store, bytes);
    if (record == NULL || process.for_process == NULL)
        return false;
    record->pid = process.pid;
    record->parent_pid = (int32_t)syscall(SYS_getppid);
    record->pid_namespace = process_pid_namespace();
    record->start_ticks = start_ticks("self", sizeof "self" - 1);
    record->process_shard = process.for_process->number;
    store_publish(record, SEGMENT_PROCESS, bytes);
    return true;
}

static void process_add_job(void)
{
    static char text[SEGMENT_JOB_MAX_BYTES]; /* static: the stack of the thread that calls first may be small */
    size_t length = job_describe(text, sizeof text);
    uint32_t bytes = segment_record_bytes(sizeof(struct segment_job) + length);
    struct segment_job *record = store_reserve(&process.store, bytes);
    if (record == NULL)
        return;
    record->text_bytes = (uint32_t)length;
    memcpy(record->text, text, length);
    store_publish(record, SEGMENT_JOB, bytes);
}

static void process_wipe_page(void)
{
    *process_page = (struct process_page){0};
}

/* The page that a child finds empty. */
static bool process_make_page(void)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    struct process_page *page = sys_memory(page_bytes);
    if (page == NULL)
        return false;
    bool is_wiped = madvise(page, page_bytes, MADV_WIPEONFORK) == 0;
    if (!is_wiped && pthread_atfork(NULL, NULL, process_wipe_page) != 0)
        return false; /* a child would count into its parent's shards */
    process_page = page;
    return true;
}

bool process_start(void)
{
    if (__atomic_load_n(&process.is_started, __ATOMIC_ACQUIRE) != 0)
        return true;
    uint64_t signals;
    process_lock(&process.start_lock, &signals);
    bool is_new = process.is_started == 0;
    if (is_new) {
        store_create(&process.store);
        bool can_count = process.store.regions[0] != NULL && process_make_page();
        if (can_count) {
            process_add_job();
            (void)process_enter(); /* without it the values are still there */
            __atomic_store_n(&process_page->is_ready, 1, __ATOMIC_RELEASE);
            __atomic_store_n(&process.is_started, 1, __ATOMIC_RELEASE);
        }
    }
    bool is_started = process.is_started != 0;
    process_unlock(&process.start_lock, &signals);
    if (is_new && is_started)
        announce_segment(&process.store);
    return is_started;
}

/* The block of `shard` that holds cell block `index`, made when missing. Under the lock. */
static uint64_t *process_block(struct shard *shard, uint32_t index)
{
    if (shard->blocks[index] != NULL)
        return shard->blocks[index];
    struct segment_block *block = store_reserve(&process.store, sizeof *block);
    if (block == NULL)
        return NULL;
    block->shard = shard->number;
    block->first_cell = index * SEGMENT_BLOCK_CELLS;
    store_publish(block, SEGMENT_BLOCK, sizeof *block);
    shard->blocks[index] = block->cells;
    return block->cells;
}

/* Something is lost for want of room: the segment says so. */
static void process_refuse(void)
{
    (void)__atomic_fetch_add(&store_header(&process.store)->refused_metrics, 1, __ATOMIC_RELAXED);
}

/* FNV-1a, 64 bit: Fowler, Noll, Vo; offset basis and prime as in draft-eastlake-fnv. */
static uint64_t process_hash(const struct segment_metric_spec *spec)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)spec->kind;
    for (size_t i = 0; i < spec->name_bytes; i++)
        hash = (hash ^ (uint8_t)spec->name[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static struct MetricProxyValue *process_known(const struct segment_metric_spec *spec, uint64_t hash)
{
    struct MetricProxyValue *value = __atomic_load_n(&process.names[hash % PROCESS_NAMES], __ATOMIC_ACQUIRE);
    for (; value != NULL; value = value->next) {
        if (value->hash == hash && value->kind == spec->kind && value->name_bytes == spec->name_bytes &&
            memcmp(value->name, spec->name, spec->name_bytes) == 0)
            return value;
    }
    return NULL;
}

/*
 * Is the segment half full? Shards of processes that have ended are not used again (nobody could tell whether a reader
 * has seen their end), so a server that forks a child for each request fills it. The other half is for the processes
 * that are in it.
 */
static bool process_is_segment_old(void)
{
    const struct segment_header *header = store_header(&process.store);
    return __atomic_load_n(&header->shards_used, __ATOMIC_RELAXED) >= SEGMENT_SHARDS_MAX / 2 ||
           __atomic_load_n(&header->cells_used, __ATOMIC_RELAXED) >= SEGMENT_CELLS_MAX / 2 ||
           __atomic_load_n(&header->used_bytes, __ATOMIC_RELAXED) >= SEGMENT_BYTES_MAX / 2;
}

/* Does this process have a handle for the metric? Its brothers have declared others, and perhaps the same elsewhere. */
static bool process_has_handle(const struct segment_metric *metric)
{
    struct segment_metric_spec spec = {
        .name = metric->text + metric->bounds_count * sizeof(double),
        .name_bytes = metric->name_bytes,
        .kind = (enum segment_metric_kind)metric->kind,
    };
    const struct MetricProxyValue *value = process_known(&spec, process_hash(&spec));
    return value != NULL && value->block * SEGMENT_BLOCK_CELLS + value->offset == metric->first_cell;
}

/*
 * Takes a segment of this process's own, of the same job, with the same metrics in the same cells: the program holds
 * handles. False: none can be made that a proxy could read, and it stays in the old one. Under the lock, in a child
 * that has no thread but this.
 */
static bool process_leave_segment(void)
{
    struct store fresh;
    store_create(&fresh);
    bool is_better = fresh.kind != STORE_PRIVATE && store_copy_descriptions(&fresh, &process.store, process_has_handle);
    store_close(is_better ? &process.store : &fresh, !is_better);
    if (is_better)
        process.store = fresh;
    return is_better;
}

/* A child's first call: takes the wiped page as the sign to begin anew. Under the lock. */
static void process_enter_after_fork(void)
{
    if (__atomic_load_n(&process_page->is_ready, __ATOMIC_ACQUIRE) != 0)
        return;
    process_thread_shard = NULL; /* the only thread of a new child is this one */
    bool is_in_new_segment = process_is_segment_old() && process_leave_segment();
    (void)process_enter();
    if (is_in_new_segment)
        announce_segment(&process.store);
    __atomic_store_n(&process_page->is_ready, 1, __ATOMIC_RELEASE);
}

uint64_t *process_find_cells(const struct MetricProxyValue *value)
{
    int kept_errno = errno;
    uint64_t signals;
    process_lock(&process_page->lock, &signals);
    process_enter_after_fork();
    struct shard *shard = process_thread_shard;
    if (shard == NULL)
        shard = process_take_shard(sys_tid());
    process_thread_shard = shard;
    uint64_t *block = shard != NULL ? process_block(shard, value->block) : NULL;
    if (block == NULL)
        process_refuse();
    process_unlock(&process_page->lock, &signals);
    errno = kept_errno;
    return block != NULL ? block + value->offset : NULL;
}

uint64_t *process_find_gauge(const struct MetricProxyValue *value)
{
    struct shard *shard = process.for_process;
    bool is_ready = __atomic_load_n(&process_page->is_ready, __ATOMIC_ACQUIRE) != 0;
    if (is_ready && shard != NULL && shard->blocks[value->block] != NULL)
        return shard->blocks[value->block] + value->offset;

    int kept_errno = errno;
    uint64_t signals;
    process_lock(&process_page->lock, &signals);
    process_enter_after_fork();
    uint64_t *block = process.for_process != NULL ? process_block(process.for_process, value->block) : NULL;
    if (block == NULL)
        process_refuse();
    process_unlock(&process_page->lock, &signals);
    errno = kept_errno;
    return block != NULL ? block + value->offset : NULL;
}

/* Cells for a new metric, all in one block; SEGMENT_CELLS_MAX when there are none left. Processes of a segment compete.
 */
static uint64_t process_take_cells(uint32_t count)
{
    uint64_t *used = &store_header(&process.store)->cells_used;
    uint64_t first = __atomic_load_n(used, __ATOMIC_RELAXED);
    for (;;) {
        uint64_t start = first;
        if (start % SEGMENT_BLOCK_CELLS + count > SEGMENT_BLOCK_CELLS)
            start += SEGMENT_BLOCK_CELLS - start % SEGMENT_BLOCK_CELLS;
        if (start + count > SEGMENT_CELLS_MAX)
            return SEGMENT_CELLS_MAX;
        if (__atomic_compare_exchange_n(used, &first, start + count, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return start;
    }
}

static bool process_add_record(const struct segment_metric_spec *spec, uint32_t first_cell)
{
    size_t bounds_bytes = spec->bounds_count * sizeof(double);
    size_t text_bytes = bounds_bytes + spec->name_bytes + spec->doc_bytes;
    uint32_t bytes = segment_record_bytes(sizeof(struct segment_metric) + text_bytes);
    struct segment_metric *record = store_reserve(&process.store, bytes);
    if (record == NULL)
        return false;
    record->first_cell = first_cell;
    record->cells_count = spec->cells_count;
    record->scale = spec->scale;
    record->kind = (uint16_t)spec->kind;
    record->name_bytes = (uint16_t)spec->name_bytes;
    record->doc_bytes = (uint16_t)spec->doc_bytes;
    record->bounds_count = (uint16_t)spec->bounds_count;
    char *to = record->text;
    if (bounds_bytes > 0)
        memcpy(to, spec->bounds, bounds_bytes);
    memcpy(to + bounds_bytes, spec->name, spec->name_bytes);
    if (spec->doc_bytes > 0)
        memcpy(to + bounds_bytes + spec->name_bytes, spec->doc, spec->doc_bytes);
    store_publish(record, SEGMENT_METRIC, bytes);
    return true;
}

/* A handle that is not yet in the table. Under the lock. */
static struct MetricProxyValue *process_new_value(const struct segment_metric_spec *spec, uint64_t hash)
{
    size_t bounds_bytes = spec->bounds_count * sizeof(double);
    struct MetricProxyValue *value = process_allocate(sizeof *value + bounds_bytes + spec->name_bytes);
    if (value == NULL)
        return NULL;
    uint64_t first_cell = process_take_cells(spec->cells_count);
    if (first_cell >= SEGMENT_CELLS_MAX || !process_add_record(spec, (uint32_t)first_cell))
        return NULL;
    double *bounds = (double *)(void *)(value + 1);
    char *name = (char *)bounds + bounds_bytes;
    if (bounds_bytes > 0)
        memcpy(bounds, spec->bounds, bounds_bytes);
    memcpy(name, spec->name, spec->name_bytes);
    *value = (struct MetricProxyValue){
        .block = (uint32_t)(first_cell / SEGMENT_BLOCK_CELLS),
        .offset = (uint32_t)(first_cell % SEGMENT_BLOCK_CELLS),
        .kind = (uint16_t)spec->kind,
        .bounds_count = (uint16_t)spec->bounds_count,
        .name_bytes = (uint32_t)spec->name_bytes,
        .hash = hash,
        .bounds = bounds,
        .name = name,
    };
    return value;
}

struct MetricProxyValue *process_declare(const struct segment_metric_spec *spec)
{
    uint64_t hash = process_hash(spec);
    struct MetricProxyValue *value = process_known(spec, hash);
    if (value != NULL)
        return value;

    uint64_t signals;
    process_lock(&process_page->lock, &signals);
    process_enter_after_fork();
    value = process_known(spec, hash); /* another thread may have been faster */
    if (value == NULL) {
        value = process_new_value(spec, hash);
        if (value != NULL) {
            struct MetricProxyValue **chain = &process.names[hash % PROCESS_NAMES];
            value->next = *chain;
            __atomic_store_n(chain, value, __ATOMIC_RELEASE); /* whole before it can be found */
        } else {
            process_refuse();
        }
    }
    process_unlock(&process_page->lock, &signals);
    return value;
}
