/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * args: the arguments of one event after another, each key once.
 *
 * Where a key is written twice, the last value counts, as in other JSON readers. The memory is kept from line to line.
 * Values are slices of the line, keys too unless they hold escapes. One thread.
 */
#ifndef PFW_ARGS_H
#define PFW_ARGS_H

#include <stddef.h>
#include <stdint.h>

#include "pfw/line.h"

/* A line of the largest length that a reader gives holds fewer than this. */
#define PFW_ARGS_MAX (16u << 20)

struct pfw_arg {
    struct cursor key; /* unescaped */
    struct pfw_json value;
    uint32_t slot; /* of the hash table below */
};

struct pfw_args {
    struct pfw_arg *list; /* in the order in which keys first appear */
    size_t count;
    size_t duplicates; /* members that a later one replaced */

    size_t capacity;
    uint32_t *slots; /* open hash table of indices into list plus 1, twice as large as the list may get */
    struct buf unescaped;
};

void pfw_args_init(struct pfw_args *args);
void pfw_args_fini(struct pfw_args *args);

static inline void pfw_args_cleanup(struct pfw_args *args)
{
    pfw_args_fini(args);
}

/* Takes the arguments of `line`, whose text must live as long as they are used. -ENOMEM, -E2BIG. */
MUST_CHECK int pfw_args_read(struct pfw_args *args, const struct pfw_line *line, struct error *err);

#endif
