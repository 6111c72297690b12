/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * instance: "the service of this host and this log directory": at most one lives, and others can tell whether.
 *
 * Owns its claim, the state in it, and the PID file. The claim decides, since it is the kernel's and goes with its
 * owner; the PID file is for people and scripts, and second witness when somebody has cleaned the claims up.
 */
#ifndef SERVICE_INSTANCE_H
#define SERVICE_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "service/claim.h"
#include "service/identity.h"
#include "service/paths.h"
#include "service/state.h"
#include "util/error.h"

/* The service's own side. */
struct instance {
    const struct paths *paths; /* borrowed */
    struct claim claim;
    struct state state; /* changed by the user, written by instance_publish() */
    bool is_published;  /* the file has all of the state but perhaps its progress */
};

/*
 * Becomes the service; the PID file is not written yet. -EEXIST when one lives: the words say its pid. A stale PID file
 * is no obstacle. `paths` is borrowed until instance_leave().
 */
MUST_CHECK int instance_become(struct instance *out_instance, const struct paths *paths, struct error *err);

/* Writes the PID file: the service is ready. */
MUST_CHECK int instance_announce(const struct instance *instance, struct error *err);

/* Writes the state for those who ask. -EIDRM when another service has taken the claim, so that this one must end. */
MUST_CHECK int instance_publish(struct instance *instance, struct error *err);

/* The same when nothing but `state.progress` has changed since then: cheaper. */
MUST_CHECK int instance_publish_progress(struct instance *instance, struct error *err);

/* Publishes the state a last time, removes the PID file if it is ours, and gives the claim up. */
void instance_leave(struct instance *instance);

/* The others' side. */
enum instance_life {
    INSTANCE_NONE,    /* nobody, and no trace of one */
    INSTANCE_STALE,   /* somebody died without a word: a PID file, or a claim, without an owner */
    INSTANCE_RUNNING, /* lives, and `state.owner` is provably it */
    INSTANCE_FOREIGN, /* something lives that must not be touched: see `why` */
};

struct instance_view {
    enum instance_life life;
    bool has_pid_file;
    bool has_state; /* `state` is filled; else only `state.owner` is, from the PID file */
    int claim_fd;   /* to see when it is given up; -1 without. Closed by instance_view_fini() */
    struct state state;
    struct error why; /* what was found instead, for a person */
};

/* Looks. Fails only when it can't look (no node directory, no memory). */
MUST_CHECK int instance_look(const struct paths *paths, struct instance_view *out_view, struct error *err);
void instance_view_fini(struct instance_view *view);

#endif
