/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts: who wrote the events of a trace: host hashes as numbers, and the names that "HH" events give them. One thread.
 */
#ifndef PFW_HOSTS_H
#define PFW_HOSTS_H

#include "pfw/line.h"
#include "pfw/names.h"

#define PFW_HOSTS_MAX 65536

struct pfw_hosts {
    struct pfw_names hashes;

    /* the rest is hosts.c's */
    char **names; /* NULL: not told yet */
    uint32_t capacity;
};

/* Empty; allocates nothing yet. */
void pfw_hosts_init(struct pfw_hosts *hosts);
void pfw_hosts_fini(struct pfw_hosts *hosts);

/*
 * The number of the host of `line`; events without a hash share one. When the line is an "HH" event, its name is kept
 * from now on. -ENOSPC past PFW_HOSTS_MAX, -ENOMEM.
 */
MUST_CHECK int pfw_hosts_of(struct pfw_hosts *hosts, const struct pfw_line *line, uint32_t *out_host,
                            struct error *err);

/* Is the line an event that tells a host's name? */
bool pfw_hosts_is_naming(const struct pfw_line *line);

/* NULL while no "HH" event has told it. Borrowed until the next pfw_hosts_of(). */
const char *pfw_hosts_name(const struct pfw_hosts *hosts, uint32_t host);

/* "" for events without one. */
const char *pfw_hosts_hash(const struct pfw_hosts *hosts, uint32_t host);

/* Something to call the host by: its name, else its hash, else "unknown". */
const char *pfw_hosts_label(const struct pfw_hosts *hosts, uint32_t host);

#endif
