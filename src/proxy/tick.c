/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/tick.h"

#include "util/clock.h"

int64_t tick_wait_ns(int64_t now_ns, int64_t period_ns, int64_t *next_ns, uint64_t *missed)
{
    *next_ns += period_ns;
    if (*next_ns <= now_ns) {
        int64_t periods = (now_ns - *next_ns) / period_ns + 1;
        *next_ns += periods * period_ns;
        *missed += (uint64_t)periods;
    }
    return *next_ns - now_ns;
}

static void tick_on_timer(uv_timer_t *timer);

/* The timer counts in whole milliseconds: rounded up, so that it never fires before its time. */
static void tick_wait(struct tick *tick, int64_t wait_ns)
{
    uint64_t wait_ms = (uint64_t)((wait_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS);
    (void)uv_timer_start(&tick->timer, tick_on_timer, wait_ms, 0); /* fails only for a closing handle */
}

static void tick_on_timer(uv_timer_t *timer)
{
    struct tick *tick = timer->data;
    tick->on_tick(tick->context);
    if (uv_is_closing((uv_handle_t *)timer))
        return;
    uv_update_time(timer->loop); /* waits count from here */
    tick_wait(tick, tick_wait_ns(clock_mono_ns(), tick->period_ns, &tick->next_mono_ns, &tick->missed));
}

int tick_start(struct tick *tick, uv_loop_t *loop, unsigned period_ms, void (*on_tick)(void *context), void *context,
               struct error *err)
{
    *tick = (struct tick){
        .period_ns = (int64_t)period_ms * CLOCK_NS_PER_MS,
        .next_mono_ns = clock_mono_ns(),
        .on_tick = on_tick,
        .context = context,
    };
    int rc = uv_timer_init(loop, &tick->timer);
    if (rc < 0)
        return error_set(err, rc, "timer of the ticks: %s", uv_strerror(rc));
    tick->timer.data = tick;
    tick_wait(tick, 0);
    return 0;
}

void tick_close(struct tick *tick, uv_close_cb on_closed)
{
    void *context = tick->context;
    tick->timer.data = context;
    uv_close((uv_handle_t *)&tick->timer, on_closed);
}

uint64_t tick_missed(const struct tick *tick)
{
    return tick->missed;
}
