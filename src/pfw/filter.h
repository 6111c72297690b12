/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter: which events of a trace are wanted: by name, category, host and time.
 *
 * Patterns are those of the shell: * ? [abc]. A host is matched by its name or its hash. A name without wildcards finds
 * its host's events from the first on; a pattern finds those that come after the "HH" event with the name, which is the
 * trace's second. Events without a time stamp hold for the whole trace and are in every span of time. One thread.
 */
#ifndef PFW_FILTER_H
#define PFW_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "pfw/hosts.h"
#include "pfw/line.h"
#include "pfw/moment.h"
#include "pfw/unit.h"

/* What is wanted. Patterns may be NULL; all texts are borrowed for the filter's life. */
struct pfw_filter_options {
    const char *name;
    const char *category;
    const char *host;
    bool has_from;
    bool has_to;
    struct pfw_moment from; /* the first that is wanted */
    struct pfw_moment to;   /* the last that is wanted */
};

struct pfw_filter {
    struct pfw_filter_options options;

    /* the rest is filter.c's */
    char host_hash[PFW_HOST_HASH_BYTES + 1]; /* of options.host, if that is a plain name */
    struct pfw_hosts hosts;
    struct pfw_unit_of_trace unit;
    int64_t start_ns; /* the first time stamp of all: relative times count from it */
    bool has_start;
    struct buf text;
};

/* `options` is copied, its texts are borrowed until pfw_filter_fini(). Allocates nothing yet. */
void pfw_filter_init(struct pfw_filter *filter, const struct pfw_filter_options *options);
void pfw_filter_fini(struct pfw_filter *filter);

static inline void pfw_filter_cleanup(struct pfw_filter *filter)
{
    pfw_filter_fini(filter);
}

/* A new file begins: it may have another unit of time. The start and the names stay. */
void pfw_filter_next_file(struct pfw_filter *filter);

/* Is the next event wanted? -ENOSPC past the limits of hosts.h, -ENOMEM. */
MUST_CHECK int pfw_filter_add(struct pfw_filter *filter, const struct pfw_line *line, bool *out_is_wanted,
                              struct error *err);

#endif
