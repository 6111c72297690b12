/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Metrics lie in pages of REGISTRY_PAGE metrics, so that their addresses are stable and a tick walks memory in order.
 * An index of open addressing (linear probing, at most three quarters full) finds them by name; it holds numbers of
 * metrics, not pointers, to be half as large.
 */
#include "metric/registry.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/utf8.h"

enum { REGISTRY_PAGE = 64, REGISTRY_SLOTS_FIRST = 64, REGISTRY_SLOT_EMPTY = 0 };

struct registry {
    struct metric **pages;
    size_t pages_count;
    size_t pages_capacity;
    size_t count;
    size_t metrics_max;
    uint32_t *slots; /* number of a metric + 1, or REGISTRY_SLOT_EMPTY; [slots_count], a power of two */
    size_t slots_count;
    struct metric **sorted; /* the first sorted_count metrics by name; NULL until somebody asks */
    size_t sorted_count;
    struct registry_budget *budget;
};

/* FNV-1a, 64 bit: Fowler, Noll, Vo; constants as in draft-eastlake-fnv. */
static uint64_t registry_hash(const char *name, size_t name_bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < name_bytes; i++)
        hash = (hash ^ (uint8_t)name[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32; /* the low bits choose the slot */
}

struct registry *registry_new(size_t metrics_max, struct registry_budget *budget)
{
    struct registry *reg = calloc(1, sizeof *reg);
    if (reg == NULL)
        return NULL;
    reg->metrics_max = metrics_max < UINT32_MAX ? metrics_max : UINT32_MAX - 1;
    reg->budget = budget;
    return reg;
}

void registry_free(struct registry *reg)
{
    if (reg == NULL)
        return;
    for (size_t i = 0; i < reg->count; i++)
        free((void *)(uintptr_t)registry_at(reg, i)->name); /* name and doc are one piece of memory */
    for (size_t i = 0; i < reg->pages_count; i++)
        free(reg->pages[i]);
    reg->budget->metrics_used -= reg->count;
    free(reg->pages);
    free(reg->slots);
    free(reg->sorted);
    free(reg);
}

size_t registry_count(const struct registry *reg)
{
    return reg->count;
}

struct metric *registry_at(const struct registry *reg, size_t index)
{
    assert(index < reg->count);
    return &reg->pages[index / REGISTRY_PAGE][index % REGISTRY_PAGE];
}

/* The slot that holds `name`, or the empty one where it would go. Only with slots. */
static size_t registry_slot(const struct registry *reg, const char *name, size_t name_bytes)
{
    size_t mask = reg->slots_count - 1;
    size_t slot = (size_t)registry_hash(name, name_bytes) & mask;
    for (; reg->slots[slot] != REGISTRY_SLOT_EMPTY; slot = (slot + 1) & mask) {
        const char *known = registry_at(reg, reg->slots[slot] - 1)->name;
        if (strncmp(known, name, name_bytes) == 0 && known[name_bytes] == '\0')
            break;
    }
    return slot;
}

struct metric *registry_find(const struct registry *reg, const char *name, size_t name_bytes)
{
    if (reg->slots_count == 0)
        return NULL;
    uint32_t number = reg->slots[registry_slot(reg, name, name_bytes)];
    return number != REGISTRY_SLOT_EMPTY ? registry_at(reg, number - 1) : NULL;
}

/* Makes sure that one more metric finds an empty slot, with a quarter left. */
static int registry_grow_slots(struct registry *reg)
{
    if (reg->slots_count > 0 && (reg->count + 1) * 4 <= reg->slots_count * 3)
        return 0;
    size_t slots_count = reg->slots_count > 0 ? reg->slots_count * 2 : REGISTRY_SLOTS_FIRST;
    uint32_t *slots = calloc(slots_count, sizeof *slots);
    if (slots == NULL)
        return -ENOMEM;
    free(reg->slots);
    reg->slots = slots;
    reg->slots_count = slots_count;
    for (size_t i = 0; i < reg->count; i++) {
        const char *name = registry_at(reg, i)->name;
        reg->slots[registry_slot(reg, name, strlen(name))] = (uint32_t)i + 1;
    }
    return 0;
}

/* Makes sure that there is a place for metric number `count`. */
static int registry_grow_pages(struct registry *reg)
{
    if (reg->count < reg->pages_count * REGISTRY_PAGE)
        return 0;
    if (reg->pages_count == reg->pages_capacity) {
        size_t capacity = reg->pages_capacity > 0 ? reg->pages_capacity * 2 : 4;
        struct metric **pages = realloc(reg->pages, capacity * sizeof(void *));
        if (pages == NULL)
            return -ENOMEM;
        reg->pages = pages;
        reg->pages_capacity = capacity;
    }
    struct metric *page = calloc(REGISTRY_PAGE, sizeof *page);
    if (page == NULL)
        return -ENOMEM;
    reg->pages[reg->pages_count++] = page;
    return 0;
}

/*
 * Makes UTF-8 of `doc`, in place: one byte that is none makes Prometheus refuse the whole answer.
 */
static void registry_clean_doc(char *doc, size_t length)
{
    size_t at = 0;
    while (at < length) {
        size_t bad = 0;
        size_t good = utf8_sequence((const unsigned char *)doc + at, length - at, &bad);
        if (good == 0)
            memset(doc + at, '?', bad);
        at += good + bad;
    }
}

/* "name\0doc\0" in one piece; NULL without memory. */
static char *registry_texts(const char *name, size_t name_bytes, const char *doc)
{
    size_t doc_bytes = strnlen(doc, REGISTRY_DOC_MAX_BYTES);
    char *texts = malloc(name_bytes + doc_bytes + 2);
    if (texts == NULL)
        return NULL;
    memcpy(texts, name, name_bytes);
    texts[name_bytes] = '\0';
    memcpy(texts + name_bytes + 1, doc, doc_bytes);
    texts[name_bytes + 1 + doc_bytes] = '\0';
    registry_clean_doc(texts + name_bytes + 1, doc_bytes);
    return texts;
}

static int registry_add_new(struct registry *reg, const char *name, size_t name_bytes, const char *doc,
                            enum metric_kind kind, struct metric **out_metric)
{
    if (registry_grow_slots(reg) != 0 || registry_grow_pages(reg) != 0)
        return -ENOMEM;
    char *texts = registry_texts(name, name_bytes, doc);
    if (texts == NULL)
        return -ENOMEM;
    size_t slot = registry_slot(reg, name, name_bytes); /* before the new one counts */
    struct metric *metric = &reg->pages[reg->count / REGISTRY_PAGE][reg->count % REGISTRY_PAGE];
    *metric = (struct metric){
        .name = texts,
        .doc = texts + name_bytes + 1,
        .base = metric_zero(kind),
        .value = metric_zero(kind),
    };
    reg->count++;
    reg->slots[slot] = (uint32_t)reg->count;
    reg->budget->metrics_used++;
    *out_metric = metric;
    return 0;
}

/* A metric that was declared without words gets those of a later declaration; without memory it stays without. */
static void registry_set_doc(struct metric *metric, const char *doc)
{
    if (metric->doc[0] != '\0' || doc[0] == '\0')
        return;
    char *texts = registry_texts(metric->name, strlen(metric->name), doc);
    if (texts == NULL)
        return;
    size_t name_bytes = strlen(metric->name);
    free((void *)(uintptr_t)metric->name);
    metric->name = texts;
    metric->doc = texts + name_bytes + 1;
}

int registry_find_or_add(struct registry *reg, const char *name, size_t name_bytes, const char *doc,
                         enum metric_kind kind, struct metric **out_metric, struct error *err)
{
    const char *words = doc != NULL ? doc : "";
    struct metric *metric = registry_find(reg, name, name_bytes);
    if (metric != NULL) {
        if (metric->base.kind != kind)
            return error_set(err, -EEXIST, "metric '%s' is a %s already; give the other one a name of its own",
                             metric->name, kind == METRIC_COUNTER ? "gauge" : "counter");
        registry_set_doc(metric, words);
        *out_metric = metric;
        return 0;
    }
    if (reg->count >= reg->metrics_max || reg->budget->metrics_used >= reg->budget->metrics_max) {
        reg->budget->refused++;
        bool is_job_full = reg->count >= reg->metrics_max;
        return error_set(err, -ENOSPC, "metric '%.*s': no room beside %zu others of %s",
                         (int)(name_bytes < METRIC_NAME_SHOWN_BYTES ? name_bytes : METRIC_NAME_SHOWN_BYTES), name,
                         is_job_full ? reg->count : reg->budget->metrics_used, is_job_full ? "this job" : "all jobs");
    }
    int rc = registry_add_new(reg, name, name_bytes, words, kind, out_metric);
    return rc < 0 ? error_set(err, rc, "no memory for one more metric beside %zu", reg->count) : 0;
}

/* By family, then by labels: '{' comes before all that a name may have. */
static int registry_compare_names(const char *left, const char *right)
{
    const unsigned char *a = (const unsigned char *)left;
    const unsigned char *b = (const unsigned char *)right;
    while (*a == *b && *a != '\0') {
        a++;
        b++;
    }
    int a_rank = *a == '{' ? 1 : *a == '\0' ? 0 : *a + 1;
    int b_rank = *b == '{' ? 1 : *b == '\0' ? 0 : *b + 1;
    return a_rank - b_rank;
}

static int registry_compare(const void *left, const void *right)
{
    return registry_compare_names((*(struct metric *const *)left)->name, (*(struct metric *const *)right)->name);
}

struct metric *const *registry_sorted(struct registry *reg)
{
    if (reg->sorted_count == reg->count)
        return reg->sorted;
    struct metric **sorted = malloc(reg->count * sizeof *sorted);
    if (sorted == NULL)
        return NULL;
    /* Those that are new go to the end, are sorted there, and merged with the others. */
    size_t old = reg->sorted_count;
    for (size_t i = old; i < reg->count; i++)
        sorted[i] = registry_at(reg, i);
    qsort(sorted + old, reg->count - old, sizeof(struct metric *), registry_compare);
    size_t out = 0;
    size_t next_new = old;
    for (size_t next_old = 0; next_old < old; out++) {
        bool is_new_first = next_new < reg->count && registry_compare(&sorted[next_new], &reg->sorted[next_old]) < 0;
        sorted[out] = is_new_first ? sorted[next_new++] : reg->sorted[next_old++];
    }
    free(reg->sorted);
    reg->sorted = sorted;
    reg->sorted_count = reg->count;
    return sorted;
}

size_t registry_sorted_after(struct registry *reg, const char *name)
{
    struct metric *const *sorted = registry_sorted(reg);
    size_t low = 0;
    size_t high = sorted != NULL ? reg->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (registry_compare_names(sorted[middle]->name, name) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void registry_begin(struct registry *reg)
{
    for (size_t i = 0; i < reg->count; i++) {
        struct metric *metric = registry_at(reg, i);
        metric->value = metric->base;
    }
}

void registry_keep(struct metric *metric, const struct metric_value *last)
{
    if (last->kind == METRIC_COUNTER)
        (void)metric_merge(&metric->base, last); /* of the other kind it never contributed */
}
