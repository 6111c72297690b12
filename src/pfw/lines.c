/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/lines.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/num.h"

enum {
    LINES_ALIGN_BYTES = 4096,
    LINES_CHUNKS_MIN = 4, /* a chunk that is taken out can't be dropped: it must be a small part of the limit */
    LINES_SPARE_KEPT_BYTES = 64 * 1024,
};

static uint64_t lines_count(const char *bytes, size_t length)
{
    uint64_t count = 0;
    const char *end = bytes + length;
    for (const char *at = bytes; at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        count++;
    return count;
}

/* The largest part of the first `length` bytes that ends with a newline. */
static size_t lines_cut(const char *bytes, size_t length)
{
    const char *newline = length > 0 ? memrchr(bytes, '\n', length) : NULL;
    return newline != NULL ? (size_t)(newline - bytes) + 1 : 0;
}

/*
 * A mapping of its own, not malloc(): pages are resident only as far as lines reach, and after a burst the memory is
 * the kernel's again for certain.
 */
static struct pfw_chunk *chunk_new(size_t bytes)
{
    struct pfw_chunk *chunk = malloc(sizeof *chunk);
    if (chunk == NULL)
        return NULL;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        free(chunk);
        return NULL;
    }
    *chunk = (struct pfw_chunk){.bytes = memory, .mapped_bytes = bytes};
    return chunk;
}

static void chunk_free(struct pfw_chunk *chunk)
{
    if (chunk == NULL)
        return;
    (void)munmap(chunk->bytes, chunk->mapped_bytes); /* a mapping of our own: can't fail */
    free(chunk);
}

/* Keeps one chunk, with little memory, for the next lines: a tick a second shall not map and unmap each time. */
static void lines_release(struct pfw_lines *lines, struct pfw_chunk *chunk)
{
    if (lines->spare != NULL || chunk->mapped_bytes != lines->chunk_bytes) {
        chunk_free(chunk);
        return;
    }
    if (chunk->end > LINES_SPARE_KEPT_BYTES)
        (void)madvise(chunk->bytes + LINES_SPARE_KEPT_BYTES, chunk->mapped_bytes - LINES_SPARE_KEPT_BYTES,
                      MADV_DONTNEED); /* only a hint */
    chunk->start = chunk->end = 0;
    chunk->events = 0;
    lines->spare = chunk;
}

/* Adds an empty chunk with room for a line of `line_bytes`. False without memory. */
static bool lines_add_chunk(struct pfw_lines *lines, size_t line_bytes)
{
    struct pfw_chunk *chunk = lines->spare;
    if (chunk != NULL && chunk->mapped_bytes >= line_bytes) {
        lines->spare = NULL;
    } else {
        size_t bytes = lines->chunk_bytes;
        if (line_bytes > bytes && !num_add_size(line_bytes, LINES_ALIGN_BYTES - 1, &bytes))
            return false;
        chunk = chunk_new(bytes / LINES_ALIGN_BYTES * LINES_ALIGN_BYTES);
    }
    if (chunk == NULL)
        return false;
    chunk->dropped_before = lines->dropped_at_end;
    lines->dropped_at_end = 0;
    if (lines->tail != NULL)
        lines->tail->next = chunk;
    else
        lines->head = chunk;
    lines->tail = chunk;
    return true;
}

/* Drops all lines of the oldest chunk. The gap moves on to the next one; the last chunk stays, empty, to tell it. */
static void lines_drop_chunk(struct pfw_lines *lines)
{
    struct pfw_chunk *chunk = lines->head;
    uint64_t missing = chunk->dropped_before + chunk->events;
    lines->buffered_bytes -= chunk->end - chunk->start;
    lines->events_dropped += chunk->events;
    chunk->events = 0;
    chunk->dropped_before = 0;
    if (chunk->next == NULL) {
        chunk->dropped_before = missing;
        chunk->start = chunk->end = 0;
        return;
    }
    chunk->next->dropped_before += missing;
    lines->head = chunk->next;
    chunk->next = NULL;
    lines_release(lines, chunk);
}

/* Drops the first lines of the oldest chunk that have at least `bytes`, which are fewer than it holds. */
static void lines_drop_some(struct pfw_lines *lines, size_t bytes)
{
    struct pfw_chunk *chunk = lines->head;
    const char *first = chunk->bytes + chunk->start;
    const char *newline = memchr(first + bytes - 1, '\n', chunk->end - chunk->start - (bytes - 1));
    assert(newline != NULL);
    size_t length = (size_t)(newline - first) + 1;
    uint64_t events = lines_count(first, length);
    chunk->start += length;
    chunk->events -= events;
    chunk->dropped_before += events;
    lines->buffered_bytes -= length;
    lines->events_dropped += events;
}

static void lines_keep_limit(struct pfw_lines *lines)
{
    while (lines->buffered_bytes > lines->max_bytes && lines->head != NULL) {
        size_t excess = lines->buffered_bytes - lines->max_bytes;
        size_t held = lines->head->end - lines->head->start;
        if (held == 0 && lines->head->next == NULL)
            return; /* the rest is taken out */
        if (held > excess)
            lines_drop_some(lines, excess);
        else
            lines_drop_chunk(lines);
    }
}

void pfw_lines_init(struct pfw_lines *lines, size_t max_bytes)
{
    size_t chunk_bytes = max_bytes / LINES_CHUNKS_MIN / LINES_ALIGN_BYTES * LINES_ALIGN_BYTES;
    if (chunk_bytes < LINES_ALIGN_BYTES)
        chunk_bytes = LINES_ALIGN_BYTES;
    if (chunk_bytes > PFW_LINES_CHUNK_MAX_BYTES)
        chunk_bytes = PFW_LINES_CHUNK_MAX_BYTES;
    *lines = (struct pfw_lines){.max_bytes = max_bytes, .chunk_bytes = chunk_bytes};
}

void pfw_lines_fini(struct pfw_lines *lines)
{
    while (lines->head != NULL) {
        struct pfw_chunk *chunk = lines->head;
        lines->head = chunk->next;
        chunk_free(chunk);
    }
    chunk_free(lines->spare);
    *lines = (struct pfw_lines){0};
}

void pfw_lines_append(struct pfw_lines *lines, const char *bytes, size_t length, uint64_t events)
{
    while (length > 0) {
        size_t room = lines->tail != NULL ? lines->tail->mapped_bytes - lines->tail->end : 0;
        size_t piece = length <= room ? length : lines_cut(bytes, room);
        if (piece == 0) {
            const char *newline = memchr(bytes, '\n', length);
            assert(newline != NULL);
            if (!lines_add_chunk(lines, (size_t)(newline - bytes) + 1)) {
                lines->dropped_at_end += events;
                lines->events_dropped += events;
                return;
            }
            continue;
        }
        uint64_t piece_events = piece == length ? events : lines_count(bytes, piece);
        memcpy(lines->tail->bytes + lines->tail->end, bytes, piece);
        lines->tail->end += piece;
        lines->tail->events += piece_events;
        lines->buffered_bytes += piece;
        bytes += piece;
        length -= piece;
        events -= piece_events;
        lines_keep_limit(lines);
    }
}

bool pfw_lines_is_empty(const struct pfw_lines *lines)
{
    return lines->head == NULL;
}

struct pfw_chunk *pfw_lines_take(struct pfw_lines *lines)
{
    struct pfw_chunk *chunk = lines->head;
    if (chunk == NULL)
        return NULL;
    lines->head = chunk->next;
    if (lines->head == NULL)
        lines->tail = NULL;
    chunk->next = NULL;
    return chunk;
}

uint64_t pfw_lines_give_back(struct pfw_lines *lines, struct pfw_chunk *chunk, size_t used_bytes)
{
    bool is_used_up = used_bytes == chunk->end - chunk->start;
    uint64_t events = is_used_up ? chunk->events : lines_count(chunk->bytes + chunk->start, used_bytes);
    chunk->start += used_bytes;
    chunk->events -= events;
    lines->buffered_bytes -= used_bytes;
    if (is_used_up && chunk->dropped_before == 0) {
        lines_release(lines, chunk);
        return events;
    }
    chunk->next = lines->head;
    lines->head = chunk;
    if (lines->tail == NULL)
        lines->tail = chunk;
    lines_keep_limit(lines);
    return events;
}
