/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/num.h"

enum {
    QUEUE_ALIGN_BYTES = 4096,
    QUEUE_CHUNKS_MIN = 4, /* a chunk that is taken out can't be dropped: it must be a small part of the limit */
    QUEUE_SPARE_KEPT_BYTES = 64 * 1024,
};

static uint64_t queue_count(const char *bytes, size_t length)
{
    uint64_t count = 0;
    const char *end = bytes + length;
    for (const char *at = bytes; at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        count++;
    return count;
}

/* The largest part of the first `length` bytes that ends with a newline. */
static size_t queue_cut(const char *bytes, size_t length)
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
static void queue_release(struct pfw_queue *queue, struct pfw_chunk *chunk)
{
    if (queue->spare != NULL || chunk->mapped_bytes != queue->chunk_bytes) {
        chunk_free(chunk);
        return;
    }
    if (chunk->end > QUEUE_SPARE_KEPT_BYTES)
        (void)madvise(chunk->bytes + QUEUE_SPARE_KEPT_BYTES, chunk->mapped_bytes - QUEUE_SPARE_KEPT_BYTES,
                      MADV_DONTNEED); /* only a hint */
    chunk->start = chunk->end = 0;
    chunk->events = 0;
    queue->spare = chunk;
}

/* Adds an empty chunk with room for a line of `line_bytes`. False without memory. */
static bool queue_add_chunk(struct pfw_queue *queue, size_t line_bytes)
{
    struct pfw_chunk *chunk = queue->spare;
    if (chunk != NULL && chunk->mapped_bytes >= line_bytes) {
        queue->spare = NULL;
    } else {
        size_t bytes = queue->chunk_bytes;
        if (line_bytes > bytes && !num_add_size(line_bytes, QUEUE_ALIGN_BYTES - 1, &bytes))
            return false;
        chunk = chunk_new(bytes / QUEUE_ALIGN_BYTES * QUEUE_ALIGN_BYTES);
    }
    if (chunk == NULL)
        return false;
    chunk->dropped_before = queue->dropped_at_end;
    queue->dropped_at_end = 0;
    if (queue->tail != NULL)
        queue->tail->next = chunk;
    else
        queue->head = chunk;
    queue->tail = chunk;
    return true;
}

/* Drops all lines of the oldest chunk. The gap moves on to the next one; the last chunk stays, empty, to tell it. */
static void queue_drop_chunk(struct pfw_queue *queue)
{
    struct pfw_chunk *chunk = queue->head;
    uint64_t missing = chunk->dropped_before + chunk->events;
    queue->buffered_bytes -= chunk->end - chunk->start;
    queue->events_dropped += chunk->events;
    chunk->events = 0;
    chunk->dropped_before = 0;
    if (chunk->next == NULL) {
        chunk->dropped_before = missing;
        chunk->start = chunk->end = 0;
        return;
    }
    chunk->next->dropped_before += missing;
    queue->head = chunk->next;
    chunk->next = NULL;
    queue_release(queue, chunk);
}

/* Drops the first lines of the oldest chunk that have at least `bytes`, which are fewer than it holds. */
static void queue_drop_some(struct pfw_queue *queue, size_t bytes)
{
    struct pfw_chunk *chunk = queue->head;
    const char *first = chunk->bytes + chunk->start;
    const char *newline = memchr(first + bytes - 1, '\n', chunk->end - chunk->start - (bytes - 1));
    assert(newline != NULL);
    size_t length = (size_t)(newline - first) + 1;
    uint64_t events = queue_count(first, length);
    chunk->start += length;
    chunk->events -= events;
    chunk->dropped_before += events;
    queue->buffered_bytes -= length;
    queue->events_dropped += events;
}

static void queue_keep_limit(struct pfw_queue *queue)
{
    while (queue->buffered_bytes > queue->max_bytes && queue->head != NULL) {
        size_t excess = queue->buffered_bytes - queue->max_bytes;
        size_t held = queue->head->end - queue->head->start;
        if (held == 0 && queue->head->next == NULL)
            return; /* the rest is taken out */
        if (held > excess)
            queue_drop_some(queue, excess);
        else
            queue_drop_chunk(queue);
    }
}

void pfw_queue_init(struct pfw_queue *queue, size_t max_bytes)
{
    size_t chunk_bytes = max_bytes / QUEUE_CHUNKS_MIN / QUEUE_ALIGN_BYTES * QUEUE_ALIGN_BYTES;
    if (chunk_bytes < QUEUE_ALIGN_BYTES)
        chunk_bytes = QUEUE_ALIGN_BYTES;
    if (chunk_bytes > PFW_QUEUE_CHUNK_MAX_BYTES)
        chunk_bytes = PFW_QUEUE_CHUNK_MAX_BYTES;
    *queue = (struct pfw_queue){.max_bytes = max_bytes, .chunk_bytes = chunk_bytes};
}

void pfw_queue_fini(struct pfw_queue *queue)
{
    while (queue->head != NULL) {
        struct pfw_chunk *chunk = queue->head;
        queue->head = chunk->next;
        chunk_free(chunk);
    }
    chunk_free(queue->spare);
    *queue = (struct pfw_queue){0};
}

void pfw_queue_append(struct pfw_queue *queue, const char *bytes, size_t length, uint64_t events)
{
    while (length > 0) {
        size_t room = queue->tail != NULL ? queue->tail->mapped_bytes - queue->tail->end : 0;
        size_t piece = length <= room ? length : queue_cut(bytes, room);
        if (piece == 0) {
            const char *newline = memchr(bytes, '\n', length);
            assert(newline != NULL);
            if (!queue_add_chunk(queue, (size_t)(newline - bytes) + 1)) {
                queue->dropped_at_end += events;
                queue->events_dropped += events;
                return;
            }
            continue;
        }
        uint64_t piece_events = piece == length ? events : queue_count(bytes, piece);
        memcpy(queue->tail->bytes + queue->tail->end, bytes, piece);
        queue->tail->end += piece;
        queue->tail->events += piece_events;
        queue->buffered_bytes += piece;
        bytes += piece;
        length -= piece;
        events -= piece_events;
        queue_keep_limit(queue);
    }
}

bool pfw_queue_is_empty(const struct pfw_queue *queue)
{
    return queue->head == NULL;
}

struct pfw_chunk *pfw_queue_take(struct pfw_queue *queue)
{
    struct pfw_chunk *chunk = queue->head;
    if (chunk == NULL)
        return NULL;
    queue->head = chunk->next;
    if (queue->head == NULL)
        queue->tail = NULL;
    chunk->next = NULL;
    return chunk;
}

uint64_t pfw_queue_give_back(struct pfw_queue *queue, struct pfw_chunk *chunk, size_t used_bytes)
{
    bool is_used_up = used_bytes == chunk->end - chunk->start;
    uint64_t events = is_used_up ? chunk->events : queue_count(chunk->bytes + chunk->start, used_bytes);
    chunk->start += used_bytes;
    chunk->events -= events;
    queue->buffered_bytes -= used_bytes;
    if (is_used_up && chunk->dropped_before == 0) {
        queue_release(queue, chunk);
        return events;
    }
    chunk->next = queue->head;
    queue->head = chunk;
    if (queue->tail == NULL)
        queue->tail = chunk;
    queue_keep_limit(queue);
    return events;
}
