/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ticker: when samples are due, and which are skipped. Pure: its user owns the timer and says what time it is.
 *
 * Ticks lie on a grid of the boot clock that the work of a tick can't move: no drift. The grid's phase comes from a
 * hash of the host's name, so that the nodes of a machine don't all work in the same instant. A tick that finds its
 * predecessor still at work, or that comes so late that the next one is near, is skipped and counted: there is never a
 * burst. A machine that slept has one gap.
 */
#ifndef SERVICE_TICKER_H
#define SERVICE_TICKER_H

#include <stdbool.h>
#include <stdint.h>

#include "util/clock.h"

struct ticker {
    int64_t interval_ns;
    int64_t first_boot_ns; /* when the timer is to expire first; then every interval */
    int64_t last_index;    /* of the last expiry on the grid; -1 before the first */
    int64_t sampled_boot_ns;
    uint64_t taken;
    uint64_t skipped;  /* too late, or too near to the next one */
    uint64_t overruns; /* the previous one was still at work */
};

enum ticker_verdict { TICKER_TAKE, TICKER_SKIP };

/*
 * The sample that is taken at `now_boot_ns` is the first. The grid's instants, as stamps of `stamper`, are a multiple
 * of the interval plus the host's phase; the first one is at least half an interval away.
 */
void ticker_init(struct ticker *ticker, int64_t interval_ns, const char *host, const struct clock_stamper *stamper,
                 int64_t now_boot_ns);

/* The timer has expired, perhaps some time ago: until `busy_until_boot_ns` the sample before was at work. */
enum ticker_verdict ticker_expire(struct ticker *ticker, int64_t now_boot_ns, int64_t busy_until_boot_ns);

#endif
