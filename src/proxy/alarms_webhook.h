/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alarms_webhook: tells an Alertmanager, or what understands its v2 interface, of alarms.
 *
 * Events go out in one POST at a time, with a deadline; one that fails is tried again, after 1 s and then twice as long
 * up to a minute, with the events since. Of an alarm only its last state is kept, so the queue is bounded. Alarms that
 * stay raised are told again each minute: an Alertmanager takes silence for their end. Loop thread only.
 */
#ifndef PROXY_ALARMS_WEBHOOK_H
#define PROXY_ALARMS_WEBHOOK_H

#include <stdint.h>

#include "net/http_client.h"
#include "proxy/alarms.h"
#include "util/error.h"

struct alarms_webhook;

/*
 * `url` is http(s)://…; without a path /api/v2/alerts is meant. Texts are copied; `client` is borrowed. -EINVAL names
 * what is wrong with the URL; -ENOMEM.
 */
MUST_CHECK int alarms_webhook_new(struct http_client *client, const char *url, const char *hostname,
                                  struct alarms_webhook **out_webhook, struct error *err);

/* What is under way is cancelled. NULL is fine. */
void alarms_webhook_free(struct alarms_webhook *webhook);

/* Raised or cleared: sent in the next tick, with all others of this one. */
void alarms_webhook_tell(struct alarms_webhook *webhook, const struct alarm_view *alarm);

/* Sends what is due. */
void alarms_webhook_tick(struct alarms_webhook *webhook, const struct alarms *alarms, int64_t now_mono_ns);

#endif
