/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue: a queue of whole lines with a limit in bytes, past which the oldest are dropped and counted.
 *
 * The lines lie in chunks. The reader takes the oldest chunk out, uses its bytes without holding anything up, and gives
 * back what it could not use. Each chunk knows how many lines are missing directly before it, so that the place and the
 * number of every gap are exact. Memory is taken and given back in pages as lines come and go.
 * One thread at a time; the bytes of a chunk that is taken out belong to whoever took it.
 */
#ifndef PFW_QUEUE_H
#define PFW_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PFW_QUEUE_CHUNK_MAX_BYTES (1024 * 1024)

struct pfw_chunk {
    struct pfw_chunk *next; /* queue.c's */
    size_t mapped_bytes;    /* queue.c's */
    char *bytes;            /* whole lines from `start` to `end` */
    size_t start;
    size_t end;
    uint64_t events;         /* lines that are here */
    uint64_t dropped_before; /* lines that are missing directly before the first; whoever told that sets it to 0 */
};

struct pfw_queue {
    size_t buffered_bytes;   /* in the queue and in chunks that are taken out */
    uint64_t events_dropped; /* since the start */
    /* the rest is queue.c's */
    size_t max_bytes;
    size_t chunk_bytes;
    struct pfw_chunk *head, *tail, *spare;
    uint64_t dropped_at_end; /* after the last chunk, for want of memory */
};

/* An empty queue; allocates nothing yet. */
void pfw_queue_init(struct pfw_queue *queue, size_t max_bytes);
void pfw_queue_fini(struct pfw_queue *queue);

/* Copies `events` whole lines to the end; drops the oldest when there are too many, these when there is no memory. */
void pfw_queue_append(struct pfw_queue *queue, const char *bytes, size_t length, uint64_t events);

/* Is there something to be taken: lines, or the news that some are missing? */
bool pfw_queue_is_empty(const struct pfw_queue *queue);

/* Takes the oldest chunk out; NULL when empty. It may hold no line, when all that is left is a gap. */
struct pfw_chunk *pfw_queue_take(struct pfw_queue *queue);

/*
 * Gives back (takes) a chunk whose first `used_bytes` are done with; what is left of it is the oldest again. Returns
 * the number of lines that were used.
 */
uint64_t pfw_queue_give_back(struct pfw_queue *queue, struct pfw_chunk *chunk, size_t used_bytes);

#endif
