/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work: something that takes too long for the loop, done on libuv's pool; its result is dropped if nobody wants it.
 *
 * `run` is called on a thread of the pool and owns `data` until it returns; `done` is called on the loop, always once,
 * and frees `data`. Loop thread only.
 */
#ifndef NET_WORK_H
#define NET_WORK_H

#include <stdbool.h>
#include <uv.h>

#include "util/error.h"

struct work;

struct work_task {
    void (*run)(void *data);
    void (*done)(void *data, bool is_wanted); /* false: whoever asked has gone, touch nothing of theirs */
    void *data;
};

/* `*out_work` is borrowed until `done` begins. On failure (-ENOMEM, libuv's) `done` isn't called: `data` stays yours.
 */
MUST_CHECK int work_start(uv_loop_t *loop, const struct work_task *task, struct work **out_work, struct error *err);

/* The result is not wanted any more. NULL is fine. */
void work_abandon(struct work *work);

#endif
