/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scrape_target: one exporter or proxy that is asked again and again.
 *
 * Finds out what it is (a proxy serves /is_admire_proxy.html), asks it once a period with a deadline, has the answer
 * read by a worker, and counts it in slices. One that doesn't answer is asked less often, at random moments, and
 * disturbs nobody. What it is and how it does are metrics of `main`: cicada_scrape_…{target=}. Loop thread only.
 */
#ifndef PROXY_SCRAPE_TARGET_H
#define PROXY_SCRAPE_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "net/http_client.h"
#include "net/resolve.h"
#include "proxy/jobs.h"
#include "proxy/scrape_url.h"
#include "util/error.h"

struct scrape_target;

#define SCRAPE_TARGET_TIMEOUT_MIN_MS 1000 /* the deadline is the period within these */
#define SCRAPE_TARGET_TIMEOUT_MAX_MS 10000
#define SCRAPE_TARGET_WAIT_MAX_MS    60000 /* between tries of one that doesn't answer */

enum scrape_target_kind { SCRAPE_TARGET_UNKNOWN, SCRAPE_TARGET_EXPORTER, SCRAPE_TARGET_PROXY };

struct scrape_target_config {
    uv_loop_t *loop; /* borrowed, as all below, for the target's life */
    struct jobs *jobs;
    struct http_client *client;
    struct resolve *resolve;
    /*
     * May this target be asked, now that its addresses are known? 0, or what the error says: it is this proxy, another
     * target is the same, or it is a proxy (`is_proxy`) that nobody admitted.
     */
    int (*admit)(void *context, const struct scrape_target *target, const struct resolve_addresses *addresses,
                 bool is_proxy, struct error *err);
    void *context;
};

/* Asks from the loop's next turn on. `config` and `url` are copied. -ENOMEM. */
MUST_CHECK int scrape_target_new(const struct scrape_target_config *config, const struct scrape_url *url,
                                 unsigned period_ms, bool is_named, struct scrape_target **out_target,
                                 struct error *err);

/* No more is asked; its counters stay. It remembers what it counted, for scrape_target_resume(). */
void scrape_target_pause(struct scrape_target *target);

/* Asks again, with this period. */
void scrape_target_resume(struct scrape_target *target, unsigned period_ms);
bool scrape_target_is_paused(const struct scrape_target *target);

/* The end of the daemon, in two steps: nothing more happens, and after the proxy's last tick its counts go. */
void scrape_target_stop(struct scrape_target *target);
void scrape_target_free(struct scrape_target *target);

/* What it is. Borrowed. */
const struct scrape_url *scrape_target_url(const struct scrape_target *target);
enum scrape_target_kind scrape_target_kind(const struct scrape_target *target);
bool scrape_target_is_named(const struct scrape_target *target); /* on the command line */
unsigned scrape_target_period_ms(const struct scrape_target *target);
int64_t scrape_target_last_wall_ms(const struct scrape_target *target); /* of the last whole answer; 0: none */
const char *scrape_target_error(const struct scrape_target *target);    /* "" when the last try went well */
const struct resolve_addresses *scrape_target_addresses(const struct scrape_target *target);

#endif
