/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue: what the batch system has queued, as squeue tells it.
 *
 * squeue is run beside the loop, with a deadline, and not more often than once in QUEUE_KEEP_MS however many ask: it
 * asks a daemon that the whole machine needs. Where there is no squeue that is the answer. Loop thread only, but for
 * queue_parse().
 */
#ifndef PROXY_QUEUE_H
#define PROXY_QUEUE_H

#include <stddef.h>
#include <uv.h>

#include "util/buf.h"
#include "util/error.h"

struct queue;
struct queue_wait;

#define QUEUE_KEEP_MS          5000
#define QUEUE_TIMEOUT_MS       10000
#define QUEUE_WAITING_MAX      64
#define QUEUE_OUTPUT_MAX_BYTES (64u << 20)

/* `loop` is borrowed. NULL without memory. */
struct queue *queue_new(uv_loop_t *loop);

/* Nobody must wait any more. NULL is fine. */
void queue_free(struct queue *queue);

/*
 * Asks. `on_answer` comes once: with {"jobs":{"ID":{"COLUMN":"text"…}…}}, or NULL and why; before this returns when the
 * answer is known, and then `*out_wait` is NULL. It is borrowed until on_answer begins. -EAGAIN: QUEUE_WAITING_MAX
 * wait; -ENOMEM.
 */
typedef void queue_answer(void *context, const struct buf *json, const struct error *err);
MUST_CHECK int queue_ask(struct queue *queue, queue_answer *on_answer, void *context, struct queue_wait **out_wait,
                         struct error *err);

/* on_answer won't come. NULL is fine. */
void queue_cancel(struct queue_wait *wait);

/*
 * What squeue printed, fields ended by 0x1f and jobs by 0x1e, to the JSON above, appended to `out`. Jobs with another
 * number of fields, or without an id, are left out and counted in `*out_bad`. Pure; any thread.
 */
void queue_parse(const char *text, size_t length, struct buf *out, size_t *out_bad);

#endif
