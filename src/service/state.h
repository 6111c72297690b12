/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state: what a running service tells the commands that ask for it: who it is, how far it has come, where its trace is.
 *
 * It stands in the file of the service's claim (claim.h), is written by the service alone, and is read by anybody at
 * any moment: a checksum tells a reader that he met a half-written one. Any thread; a struct state belongs to one.
 */
#ifndef SERVICE_STATE_H
#define SERVICE_STATE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "service/identity.h"
#include "util/error.h"

enum state_phase {
    STATE_STARTING,
    STATE_RUNNING,
    STATE_CLOSING,   /* has been told to end */
    STATE_CLOSED,    /* the trace is complete */
    STATE_ABANDONED, /* ended without all of the trace written: `reason` */
};

/* What changes all the time. */
struct state_progress {
    int64_t written_wall_ns; /* when this was written */
    uint64_t events;         /* in the file */
    uint64_t dropped;
    uint64_t ticks;
    uint64_t is_failing; /* 1: the trace can't be written at the moment */
};

struct state {
    struct identity owner;
    enum state_phase phase;
    int64_t start_wall_ns;
    int64_t interval_ms;
    char trace_path[PATH_MAX];
    char reason[ERROR_TEXT_MAX_BYTES];
    struct state_progress progress;
};

/* Writes the state into the claim's file `fd`. */
int state_write(int fd, const struct state *state, struct error *err);

/* Writes what changes all the time into a file whose state is otherwise the one that was written last. */
int state_write_progress(int fd, const struct state_progress *progress, struct error *err);

/*
 * Reads it. -ENODATA when the file holds none, or one of another version; -EAGAIN when its owner was writing it in each
 * of several attempts.
 */
MUST_CHECK int state_read(int fd, struct state *out_state, struct error *err);

#endif
