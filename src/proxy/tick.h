/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tick: calls at every multiple of a period after its start, without drift.
 *
 * A tick that comes late does not move the next one; periods that passed wholly without one are counted and left out.
 * Loop thread only.
 */
#ifndef PROXY_TICK_H
#define PROXY_TICK_H

#include <stdint.h>
#include <uv.h>

#include "util/error.h"

/* Embedded by its user; fields are tick.c's. */
struct tick {
    uv_timer_t timer;
    int64_t period_ns;
    int64_t next_mono_ns;
    uint64_t missed;
    void (*on_tick)(void *context);
    void *context;
};

/* The first call comes in the loop's next turn. */
MUST_CHECK int tick_start(struct tick *tick, uv_loop_t *loop, unsigned period_ms, void (*on_tick)(void *context),
                          void *context, struct error *err);

/* No more calls; the memory is in use until `on_closed`, whose handle's `data` is the context. */
void tick_close(struct tick *tick, uv_close_cb on_closed);

/* Periods without a tick. */
uint64_t tick_missed(const struct tick *tick);

/* How long to wait at `now_ns` for the next multiple after `*next_ns`, in ns; moves `*next_ns` there. Pure. */
int64_t tick_wait_ns(int64_t now_ns, int64_t period_ns, int64_t *next_ns, uint64_t *missed);

#endif
