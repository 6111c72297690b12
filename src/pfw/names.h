/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * names: gives each different text a number, 0, 1, 2, … in the order of arrival, and finds it again.
 *
 * Hosts, series and keys of a trace are counted by such numbers in plain arrays. Texts are any bytes, copied once, and
 * stay where they are. How many and how long they may be together is bounded: traces come from outside. One thread.
 */
#ifndef PFW_NAMES_H
#define PFW_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "pfw/line.h"
#include "util/cursor.h"
#include "util/error.h"

struct pfw_names {
    uint32_t count;

    /* the rest is names.c's */
    uint32_t capacity;
    uint32_t count_max;
    size_t bytes;
    size_t bytes_max;
    struct pfw_names_entry *entries;
    uint32_t *slots; /* open hash table of numbers plus 1, twice as long as `entries` */
    struct pfw_names_chunk *chunks;
    struct buf unescaped;
};

/* At most `count_max` (below 2^30) texts of together `bytes_max` bytes; allocates nothing yet. */
void pfw_names_init(struct pfw_names *names, uint32_t count_max, size_t bytes_max);
void pfw_names_fini(struct pfw_names *names);

/* The number of `text`, a new one when it is new. -ENOSPC past a limit, -ENOMEM. */
MUST_CHECK int pfw_names_add(struct pfw_names *names, const void *text, size_t length, uint32_t *out_number,
                             struct error *err);

/* The same for a JSON string, unescaped; what is no string counts as "". */
MUST_CHECK int pfw_names_add_json(struct pfw_names *names, const struct pfw_json *string, uint32_t *out_number,
                                  struct error *err);

/* The text of a number that was given out, borrowed for the life of `names`; a NUL follows it. */
struct cursor pfw_names_text(const struct pfw_names *names, uint32_t number);

#endif
