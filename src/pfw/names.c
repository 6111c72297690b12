/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"

enum { NAMES_FIRST_CAPACITY = 64, NAMES_CHUNK_BYTES = 64 << 10 };

struct pfw_names_entry {
    const char *text;
    uint32_t length;
    uint32_t hash;
};

/* Texts lie one behind another in chunks that never move. */
struct pfw_names_chunk {
    struct pfw_names_chunk *next;
    size_t used;
    size_t size;
    char bytes[];
};

void pfw_names_init(struct pfw_names *names, uint32_t count_max, size_t bytes_max)
{
    *names = (struct pfw_names){.count_max = count_max, .bytes_max = bytes_max};
    buf_init(&names->unescaped, SIZE_MAX);
}

void pfw_names_fini(struct pfw_names *names)
{
    while (names->chunks != NULL) {
        struct pfw_names_chunk *chunk = names->chunks;
        names->chunks = chunk->next;
        free(chunk);
    }
    free(names->entries);
    free(names->slots);
    buf_fini(&names->unescaped);
    *names = (struct pfw_names){0};
}

/* Eight bytes at a time: keys are short, and a hash is computed for each argument of each event. */
static uint32_t names_hash(const char *text, size_t length)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15); /* 2^64 divided by the golden ratio */
    uint64_t hash = length * odd;
    for (; length >= 8; text += 8, length -= 8) {
        uint64_t bytes;
        memcpy(&bytes, text, sizeof bytes);
        hash = (hash ^ bytes) * odd;
        hash ^= hash >> 32;
    }
    uint64_t rest = 0;
    memcpy(&rest, text, length);
    hash = (hash ^ rest) * odd;
    return (uint32_t)(hash ^ hash >> 32);
}

/* The slot that holds `text`, or the empty one where it belongs. */
static uint32_t *names_slot(const struct pfw_names *names, const char *text, size_t length, uint32_t hash)
{
    uint32_t mask = names->capacity * 2 - 1;
    for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
        if (names->slots[i] == 0)
            return &names->slots[i];
        const struct pfw_names_entry *entry = &names->entries[names->slots[i] - 1];
        if (entry->hash == hash && entry->length == length && memcmp(entry->text, text, length) == 0)
            return &names->slots[i];
    }
}

static int names_grow(struct pfw_names *names, struct error *err)
{
    uint32_t capacity = names->capacity == 0 ? NAMES_FIRST_CAPACITY : names->capacity * 2;
    struct pfw_names_entry *entries = realloc(names->entries, capacity * sizeof *entries);
    if (entries == NULL)
        return error_set(err, -ENOMEM, "no memory for %u names", capacity);
    names->entries = entries;
    uint32_t *slots = calloc((size_t)capacity * 2, sizeof *slots);
    if (slots == NULL)
        return error_set(err, -ENOMEM, "no memory for %u names", capacity);
    free(names->slots);
    names->slots = slots;
    names->capacity = capacity;
    for (uint32_t i = 0; i < names->count; i++)
        *names_slot(names, entries[i].text, entries[i].length, entries[i].hash) = i + 1;
    return 0;
}

/* A copy with a NUL behind it; NULL without memory. */
static const char *names_copy(struct pfw_names *names, const char *text, size_t length)
{
    struct pfw_names_chunk *chunk = names->chunks;
    if (chunk == NULL || chunk->size - chunk->used <= length) {
        size_t size = length < NAMES_CHUNK_BYTES ? NAMES_CHUNK_BYTES : length + 1;
        chunk = malloc(sizeof *chunk + size);
        if (chunk == NULL)
            return NULL;
        *chunk = (struct pfw_names_chunk){.next = names->chunks, .size = size};
        names->chunks = chunk;
    }
    char *copy = chunk->bytes + chunk->used;
    memcpy(copy, text, length);
    copy[length] = '\0';
    chunk->used += length + 1;
    return copy;
}

int pfw_names_add(struct pfw_names *names, const void *text, size_t length, uint32_t *out_number, struct error *err)
{
    if (names->capacity == 0 || names->count == names->capacity) {
        int rc = names_grow(names, err);
        if (rc < 0)
            return rc;
    }
    uint32_t hash = names_hash(text, length);
    uint32_t *slot = names_slot(names, text, length, hash);
    if (*slot != 0) {
        *out_number = *slot - 1;
        return 0;
    }
    size_t bytes;
    if (names->count >= names->count_max || length > UINT32_MAX || !num_add_size(names->bytes, length + 1, &bytes) ||
        bytes > names->bytes_max)
        return error_set(err, -ENOSPC, "more than %u different names, or more than %zu bytes of them", names->count_max,
                         names->bytes_max);
    const char *copy = names_copy(names, text, length);
    if (copy == NULL)
        return error_set(err, -ENOMEM, "no memory for a name of %zu bytes", length);
    names->entries[names->count] = (struct pfw_names_entry){.text = copy, .length = (uint32_t)length, .hash = hash};
    names->bytes = bytes;
    *out_number = names->count++;
    *slot = names->count;
    return 0;
}

int pfw_names_add_json(struct pfw_names *names, const struct pfw_json *string, uint32_t *out_number, struct error *err)
{
    if (string->kind != PFW_JSON_STRING)
        return pfw_names_add(names, "", 0, out_number, err);
    if (!string->is_escaped)
        return pfw_names_add(names, string->text.at, cursor_left(&string->text), out_number, err);
    buf_reset(&names->unescaped);
    pfw_json_unescape(string, &names->unescaped);
    int rc = buf_status(&names->unescaped, err);
    if (rc < 0)
        return rc;
    return pfw_names_add(names, names->unescaped.data, names->unescaped.length, out_number, err);
}

struct cursor pfw_names_text(const struct pfw_names *names, uint32_t number)
{
    return cursor_of(names->entries[number].text, names->entries[number].length);
}
