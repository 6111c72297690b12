/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * args: the arguments of one event after another, each key once.
 *
 * Where a key is written twice, the last value counts, as in other JSON readers. Keys get numbers that stay the same
 * from event to event, so that whoever counts by key needs no text. Values are slices of the line. One thread.
 */
#ifndef PFW_ARGS_H
#define PFW_ARGS_H

#include <stddef.h>
#include <stdint.h>

#include "pfw/line.h"
#include "pfw/names.h"

/* Different keys in a whole trace. */
#define PFW_ARGS_KEYS_MAX       (1u << 20)
#define PFW_ARGS_KEYS_MAX_BYTES (64u << 20)

struct pfw_arg {
    uint32_t key; /* pfw_names_text(&args->keys, key) */
    struct pfw_json value;
};

struct pfw_args {
    struct pfw_arg *list; /* in the order in which keys first appear in the event */
    size_t count;
    size_t duplicates; /* members that a later one replaced */
    struct pfw_names keys;

    /* the rest is args.c's */
    uint64_t events;
    size_t capacity; /* of `list` and of `places` */
    struct pfw_args_place *places;
};

/* Empty; allocates nothing yet. */
void pfw_args_init(struct pfw_args *args);
void pfw_args_fini(struct pfw_args *args);

static inline void pfw_args_cleanup(struct pfw_args *args)
{
    pfw_args_fini(args);
}

/* Takes the members of `object`, whose text must live as long as they are used. -ENOMEM, -ENOSPC (see the limits). */
MUST_CHECK int pfw_args_read(struct pfw_args *args, const struct pfw_json *object, struct error *err);

#endif
