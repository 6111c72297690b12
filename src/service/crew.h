/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crew: one sample: all collectors, run by the threads of libuv's pool, each collector by whichever thread is free.
 *
 * The last thread to finish also calls the user's on_sampled(), so that a single-threaded pool hands over once a tick;
 * then the loop calls on_done(). Loop thread, but for the work itself.
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
    void (*on_sampled)(void *context, int64_t now_boot_ns); /* on a thread of the pool, when all collectors have run */
    void (*on_done)(void *context);                         /* on the loop */
    void *context;
};

/*
 * libuv makes its pool when it is first used: `threads` are asked for before that, or as many as there are collectors
 * if that is less. -ENOMEM.
 */
MUST_CHECK int crew_new(const struct crew_request *request, struct crew **out_crew, struct error *err);
void crew_free(struct crew *crew); /* not while it is busy */

/* Begins a sample; not while the crew is busy. */
MUST_CHECK int crew_start(struct crew *crew, int64_t now_boot_ns, struct error *err);
bool crew_is_busy(const struct crew *crew);

/* Why collector `index` failed in the last sample; NULL when it didn't. While the crew is not busy. */
const char *crew_failure(const struct crew *crew, size_t index);

/* A collector that has not come back, for a message; NULL when there is none. */
const char *crew_straggler(const struct crew *crew);

#endif
