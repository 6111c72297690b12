/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crew: takes samples at every tick, on threads of libuv's pool.
 *
 * The first thread leads: it sleeps on the timer, runs the collectors and hands over what they measured, so that a tick
 * wakes one thread and never the loop. With more threads, each collector is run by whichever is free. They keep their
 * places in the pool from crew_start() to the end. Callbacks say on which thread they come; all else: loop thread.
 */
#ifndef SERVICE_CREW_H
#define SERVICE_CREW_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "sample/sampler.h"
#include "util/error.h"

struct crew;

struct crew_request {
    uv_loop_t *loop;
    struct sampler *sampler;
    unsigned threads;
    int timer_fd; /* a timerfd whose read() blocks; borrowed until on_ended, set by the user but for crew_end() */

    /*
     * The leader: the timer has expired. True: take a sample. `busy_until_boot_ns` is when the sample before was done.
     */
    bool (*on_tick)(void *context, int64_t now_boot_ns, int64_t busy_until_boot_ns);

    /* The leader: all collectors have run. False ends the crew. */
    bool (*on_sampled)(void *context, int64_t now_boot_ns);

    void (*on_started)(void *context); /* the loop: the first sample has been taken */
    void (*on_ended)(void *context);   /* the loop: all threads have come back */
    void *context;
};

/*
 * libuv makes its pool when it is first used: `threads` are asked for before that, or as many as there are collectors
 * if that is less. -ENOMEM, libuv's.
 */
MUST_CHECK int crew_new(const struct crew_request *request, struct crew **out_crew, struct error *err);

/* After on_ended, or if it was never started; and after its loop has been run once more, to close a handle. */
void crew_free(struct crew *crew);

/* Takes the first sample, as of `now_boot_ns`, then one at each tick. */
MUST_CHECK int crew_start(struct crew *crew, int64_t now_boot_ns, struct error *err);

/* After the sample that is under way, if there is one: a last sample if `takes_sample`, then the end. */
void crew_end(struct crew *crew, bool takes_sample);

/* Why collector `index` failed in the last sample; NULL when it didn't. The leader, or after on_ended. */
const char *crew_failure(const struct crew *crew, size_t index);

/* A collector that has not come back, for a message; NULL when there is none. */
const char *crew_straggler(const struct crew *crew);

#endif
