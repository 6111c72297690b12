/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alarms_keeper: alarms as the daemon has them: kept in a file, told to a command and to a webhook.
 *
 * The file is <prefix>/nodes/<host>/alarms.json: proxies that share a prefix have one each. Loop thread only.
 */
#ifndef PROXY_ALARMS_KEEPER_H
#define PROXY_ALARMS_KEEPER_H

#include <stdint.h>
#include <uv.h>

#include "net/http_client.h"
#include "proxy/alarms.h"
#include "util/error.h"

struct alarms_keeper;

/* Texts are copied; the rest is borrowed for the keeper's life. */
struct alarms_keeper_config {
    uv_loop_t *loop;
    struct jobs *jobs;
    struct http_client *client; /* for the webhook; may be NULL without one */
    const char *prefix;
    const char *hostname;
    const char *command; /* NULL: none */
    const char *webhook; /* NULL: none */
};

/* Begins to read the file. -EINVAL (the URL, the prefix), -ENOMEM. */
MUST_CHECK int alarms_keeper_open(const struct alarms_keeper_config *config, struct alarms_keeper **out_keeper,
                                  struct error *err);

/* The list, borrowed. */
struct alarms *alarms_keeper_alarms(struct alarms_keeper *keeper);

/* At the end of each tick of the proxy. */
void alarms_keeper_tick(struct alarms_keeper *keeper, int64_t now_mono_ns, int64_t now_wall_ms);

/* Before the proxy closes: alarms have contributors in its jobs. `on_closed` comes from the loop or at once, when the
 * file has been written. NULL is fine. */
void alarms_keeper_close(struct alarms_keeper *keeper, void (*on_closed)(void *context), void *context);

#endif
