/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporters/mpi/requests.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

enum {
    REQUESTS_BUCKET = 8,             /* keys: one cache line */
    REQUESTS_FIRST_BUCKETS_BITS = 9, /* the first table: 4,096 requests */
    REQUESTS_LEVELS = 10,            /* each twice as large as the one before: four million in all */
};

/* Keys that are no handles: handles are addresses or 32 bits. */
#define REQUESTS_FREE  UINT64_C(0)
#define REQUESTS_TAKEN UINT64_MAX

struct requests_bucket {
    uint64_t keys[REQUESTS_BUCKET]; /* atomic */
};

struct requests_table {
    struct requests_bucket *buckets;
    struct requests_slot *slots; /* REQUESTS_BUCKET of each bucket */
};

/* Atomic pointers: a level is made by whoever first needs it. */
static struct requests_table *requests_levels[REQUESTS_LEVELS];

static unsigned requests_bits(unsigned level)
{
    return REQUESTS_FIRST_BUCKETS_BITS + level;
}

static uint64_t requests_hash(uint64_t request, unsigned level)
{
    /* Fibonacci hashing: 2^64 divided by the golden ratio. */
    return request * UINT64_C(0x9e3779b97f4a7c15) >> (64 - requests_bits(level));
}

/* Zeroed memory that is only touched where it is used. NULL when there is none. */
static struct requests_table *requests_make_level(unsigned level)
{
    size_t buckets_count = (size_t)1 << requests_bits(level);
    size_t buckets_bytes = buckets_count * sizeof(struct requests_bucket);
    size_t slots_bytes = buckets_count * REQUESTS_BUCKET * sizeof(struct requests_slot);
    size_t bytes = buckets_bytes + slots_bytes + sizeof(struct requests_table);
    int kept_errno = errno;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    errno = kept_errno;
    if (memory == MAP_FAILED)
        return NULL;
    struct requests_table *table = (void *)(memory + buckets_bytes + slots_bytes);
    table->buckets = (void *)memory;
    table->slots = (void *)(memory + buckets_bytes);

    struct requests_table *other = NULL;
    if (__atomic_compare_exchange_n(&requests_levels[level], &other, table, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return table;
    (void)munmap(memory, bytes); /* another thread was faster */
    return other;
}

static struct requests_slot *requests_slot_at(const struct requests_table *table, uint64_t bucket, unsigned index)
{
    struct requests_slot *slot = &table->slots[bucket * REQUESTS_BUCKET + index];
    slot->key = &table->buckets[bucket].keys[index];
    return slot;
}

/* The slot whose key is `request`, or NULL. */
static struct requests_slot *requests_find_in(const struct requests_table *table, unsigned level, uint64_t request)
{
    uint64_t bucket = requests_hash(request, level);
    for (unsigned i = 0; i < REQUESTS_BUCKET; i++) {
        /* Acquire: what was written with the key is seen with it, also when it was another thread's. */
        if (__atomic_load_n(&table->buckets[bucket].keys[i], __ATOMIC_ACQUIRE) == request)
            return &table->slots[bucket * REQUESTS_BUCKET + i];
    }
    return NULL;
}

struct requests_slot *requests_find(uint64_t request)
{
    if (request == REQUESTS_FREE || request == REQUESTS_TAKEN)
        return NULL;
    for (unsigned level = 0; level < REQUESTS_LEVELS; level++) {
        struct requests_table *table = __atomic_load_n(&requests_levels[level], __ATOMIC_ACQUIRE);
        if (table == NULL)
            return NULL;
        struct requests_slot *slot = requests_find_in(table, level, request);
        if (slot != NULL)
            return slot;
    }
    return NULL;
}

/* A free slot for `request`, taken; NULL when its bucket is full. */
static struct requests_slot *requests_claim(const struct requests_table *table, unsigned level, uint64_t request)
{
    uint64_t bucket = requests_hash(request, level);
    for (unsigned i = 0; i < REQUESTS_BUCKET; i++) {
        uint64_t *key = &table->buckets[bucket].keys[i];
        uint64_t expected = REQUESTS_FREE;
        /* Acquire: the slot's last user is done with its entry. */
        if (__atomic_load_n(key, __ATOMIC_RELAXED) == REQUESTS_FREE &&
            __atomic_compare_exchange_n(key, &expected, REQUESTS_TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return requests_slot_at(table, bucket, i);
    }
    return NULL;
}

bool requests_add(uint64_t request, const struct requests_entry *entry)
{
    if (request == REQUESTS_FREE || request == REQUESTS_TAKEN)
        return false;
    struct requests_slot *slot = requests_take(request); /* one that completed behind our back */
    for (unsigned level = 0; level < REQUESTS_LEVELS && slot == NULL; level++) {
        struct requests_table *table = __atomic_load_n(&requests_levels[level], __ATOMIC_ACQUIRE);
        if (table == NULL)
            table = requests_make_level(level);
        if (table == NULL)
            return false;
        slot = requests_claim(table, level, request);
    }
    if (slot == NULL)
        return false;
    slot->entry = *entry;
    requests_put_back(slot, request);
    return true;
}

struct requests_slot *requests_take(uint64_t request)
{
    struct requests_slot *slot = requests_find(request);
    if (slot != NULL)
        __atomic_store_n(slot->key, REQUESTS_TAKEN, __ATOMIC_RELAXED);
    return slot;
}

void requests_put_back(struct requests_slot *slot, uint64_t request)
{
    /* Release: whoever finds the key sees the entry. */
    __atomic_store_n(slot->key, request, __ATOMIC_RELEASE);
}

void requests_drop(struct requests_slot *slot)
{
    /* Release: the next user of the slot writes after our last look. */
    __atomic_store_n(slot->key, REQUESTS_FREE, __ATOMIC_RELEASE);
}
