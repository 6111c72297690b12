/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scrapes: the targets of this proxy: who is asked, and who may be.
 *
 * One target is asked once, in whichever forms it is named and under how many names. This proxy itself is refused. A
 * proxy is admitted when it was named on the command line, or its address is among those of --legacy-peers (or
 * everything is open): else what others may make this proxy add up would be anybody's. A target that is disconnected
 * is remembered: what it counts goes on where it was when it comes back. Loop thread only.
 */
#ifndef PROXY_SCRAPES_H
#define PROXY_SCRAPES_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "net/cidr.h"
#include "net/http_client.h"
#include "net/resolve.h"
#include "proxy/jobs.h"
#include "util/buf.h"
#include "util/error.h"

struct scrapes;

#define SCRAPES_MAX           1000
#define SCRAPES_PERIOD_MS_MIN 10
#define SCRAPES_PERIOD_MS_MAX 3600000

struct scrapes_config {
    uv_loop_t *loop; /* borrowed, as all below, for their life */
    struct jobs *jobs;
    struct http_client *client;
    struct resolve *resolve;
    unsigned period_ms;              /* of targets for which none is said */
    uint16_t port;                   /* of our own HTTP; 0: none */
    const struct cidr *legacy_peers; /* copied; NULL: none */
    bool is_open;                    /* --auth none: any proxy is admitted */
};

/* NULL without memory. */
struct scrapes *scrapes_new(const struct scrapes_config *config);

/* The end of the daemon, in two steps: nothing is asked any more; what was counted goes, after the last tick. */
void scrapes_stop(struct scrapes *scrapes);
void scrapes_free(struct scrapes *scrapes); /* its timers close in the loop */

/* "A,B[@PERIOD_MS]", where each may have a period of its own and the last one's is for all without: the option -s.
 * -EINVAL names the part, and nothing was joined. */
MUST_CHECK int scrapes_join_list(struct scrapes *scrapes, const char *text, struct error *err);

/*
 * One more target; `period_ms` 0: the usual one. `*out_is_new` is false when it is there already, with this period from
 * now on. -EINVAL (form, period, this proxy itself), -ENOSPC, -ENOMEM.
 */
MUST_CHECK int scrapes_join(struct scrapes *scrapes, const char *text, unsigned period_ms, bool *out_is_new,
                            struct error *err);

/* No more. -ENOENT, -EINVAL. */
MUST_CHECK int scrapes_disconnect(struct scrapes *scrapes, const char *text, struct error *err);

/* Targets that are asked. */
size_t scrapes_count(const struct scrapes *scrapes);

/* Appends [{"target_url","ttype","period","last_scrape","up","error"}…]: period in ms, last_scrape in s since 1970. */
void scrapes_list(const struct scrapes *scrapes, struct buf *out);

#endif
