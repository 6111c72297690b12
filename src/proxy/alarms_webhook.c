/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/alarms_webhook.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/alarms_event.h"
#include "util/clock.h"
#include "util/log.h"

enum {
    ALARMS_WEBHOOK_TIMEOUT_MS = 10000,
    ALARMS_WEBHOOK_ANSWER_MAX_BYTES = 1 << 16,
    ALARMS_WEBHOOK_BODY_MAX_BYTES = 16 << 20,
    ALARMS_WEBHOOK_URL_MAX_BYTES = 4096,
};

#define ALARMS_WEBHOOK_AGAIN_MIN_NS (1 * CLOCK_NS_PER_SECOND)
#define ALARMS_WEBHOOK_AGAIN_MAX_NS (60 * CLOCK_NS_PER_SECOND)
#define ALARMS_WEBHOOK_REPEAT_NS    (60 * CLOCK_NS_PER_SECOND)

struct alarms_webhook {
    struct http_client *client;
    char *url;
    char *hostname;
    struct alarms_event_queue waiting;
    struct alarms_event_queue sent; /* by the call that is under way */
    struct http_client_call *call;
    int64_t again_mono_ns; /* not before */
    int64_t wait_ns;       /* after the next failure */
    int64_t repeat_mono_ns;
    bool is_failing;
};

/* The URL with the path that is meant; NULL without memory. */
static char *alarms_webhook_url(const char *url)
{
    CLEANUP(buf_cleanup) struct buf whole;
    buf_init(&whole, ALARMS_WEBHOOK_URL_MAX_BYTES);
    const char *host = strstr(url, "://") + 3;
    const char *path = host + strcspn(host, "/?#");
    buf_text(&whole, url);
    if (path[0] == '\0')
        buf_text(&whole, "/api/v2/alerts");
    else if (strcmp(path, "/") == 0)
        buf_text(&whole, "api/v2/alerts");
    const char *text = buf_string(&whole);
    return buf_status(&whole, NULL) == 0 ? strdup(text) : NULL;
}

int alarms_webhook_new(struct http_client *client, const char *url, const char *hostname,
                       struct alarms_webhook **out_webhook, struct error *err)
{
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return error_set(err, -EINVAL, "alarm-webhook '%s': a URL of http or https is wanted", url);
    if (strlen(url) > ALARMS_WEBHOOK_URL_MAX_BYTES / 2)
        return error_set(err, -EINVAL, "alarm-webhook: the URL is longer than %d bytes",
                         ALARMS_WEBHOOK_URL_MAX_BYTES / 2);
    struct alarms_webhook *webhook = calloc(1, sizeof *webhook);
    if (webhook == NULL)
        return error_set(err, -ENOMEM, "no memory for the webhook");
    *webhook = (struct alarms_webhook){.client = client,
                                       .url = alarms_webhook_url(url),
                                       .hostname = strdup(hostname),
                                       .wait_ns = ALARMS_WEBHOOK_AGAIN_MIN_NS};
    if (webhook->url == NULL || webhook->hostname == NULL) {
        alarms_webhook_free(webhook);
        return error_set(err, -ENOMEM, "no memory for the webhook");
    }
    *out_webhook = webhook;
    return 0;
}

void alarms_webhook_free(struct alarms_webhook *webhook)
{
    if (webhook == NULL)
        return;
    http_client_cancel(webhook->call);
    alarms_event_clear(&webhook->waiting);
    alarms_event_clear(&webhook->sent);
    free(webhook->url);
    free(webhook->hostname);
    free(webhook);
}

/* Puts `event` into the queue in place of an older one of the same alarm. Takes it. */
static void alarms_webhook_put(struct alarms_webhook *webhook, struct alarms_event *event)
{
    struct alarms_event_queue rest = {0};
    struct alarms_event *old;
    while ((old = alarms_event_pop(&webhook->waiting)) != NULL) {
        if (strcmp(old->name, event->name) == 0 && strcmp(old->target, event->target) == 0)
            alarms_event_free(old);
        else
            (void)alarms_event_push(&rest, old, SIZE_MAX); /* never dropped: it was in a queue of this size */
    }
    webhook->waiting = rest;
    if (alarms_event_push(&webhook->waiting, event, (size_t)2 * ALARMS_MAX))
        log_error("alarm-webhook url='%s' the oldest event is dropped", webhook->url);
}

void alarms_webhook_tell(struct alarms_webhook *webhook, const struct alarm_view *alarm)
{
    struct alarms_event *event = alarms_event_new(alarm);
    if (event != NULL)
        alarms_webhook_put(webhook, event);
    else
        log_error("alarm-webhook url='%s' no memory to tell of an alarm", webhook->url);
}

/* What was not told waits again, before what has come since; a newer state of an alarm wins. */
static void alarms_webhook_take_back(struct alarms_webhook *webhook)
{
    struct alarms_event_queue newer = webhook->waiting;
    struct alarms_event *event;
    webhook->waiting = webhook->sent;
    webhook->sent = (struct alarms_event_queue){0};
    while ((event = alarms_event_pop(&newer)) != NULL)
        alarms_webhook_put(webhook, event);
}

static void alarms_webhook_fail(struct alarms_webhook *webhook, const char *why)
{
    alarms_webhook_take_back(webhook);
    webhook->again_mono_ns = clock_mono_ns() + webhook->wait_ns;
    webhook->wait_ns *= 2;
    if (webhook->wait_ns > ALARMS_WEBHOOK_AGAIN_MAX_NS)
        webhook->wait_ns = ALARMS_WEBHOOK_AGAIN_MAX_NS;
    if (!webhook->is_failing)
        log_error("alarm-webhook url='%s' %s: tried again until it works", webhook->url, why);
    webhook->is_failing = true;
}

static void alarms_webhook_on_done(void *context, struct http_client_result *result)
{
    struct alarms_webhook *webhook = context;
    webhook->call = NULL;
    if (result->code == 0 && result->status / 100 == 2) {
        alarms_event_clear(&webhook->sent);
        webhook->wait_ns = ALARMS_WEBHOOK_AGAIN_MIN_NS;
        if (webhook->is_failing)
            log_info("alarm-webhook url='%s' works again", webhook->url);
        webhook->is_failing = false;
        return;
    }
    struct error err = result->err;
    if (result->code == 0)
        (void)error_set(&err, -EIO, "status %u", result->status);
    alarms_webhook_fail(webhook, err.text);
}

static void alarms_webhook_send(struct alarms_webhook *webhook)
{
    CLEANUP(buf_cleanup) struct buf body;
    buf_init(&body, ALARMS_WEBHOOK_BODY_MAX_BYTES);
    buf_char(&body, '[');
    for (const struct alarms_event *event = webhook->waiting.first; event != NULL; event = event->next) {
        if (event != webhook->waiting.first)
            buf_char(&body, ',');
        alarms_event_to_alert(event, webhook->hostname, &body);
    }
    buf_char(&body, ']');
    struct error err = {0};
    int rc = buf_status(&body, &err);
    webhook->sent = webhook->waiting;
    webhook->waiting = (struct alarms_event_queue){0};
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    const struct http_client_request request = {.url = webhook->url,
                                                .key = "alarms webhook",
                                                .method = "POST",
                                                .headers = headers,
                                                .body = body.data,
                                                .body_length = body.length,
                                                .timeout_ms = ALARMS_WEBHOOK_TIMEOUT_MS,
                                                .body_max_bytes = ALARMS_WEBHOOK_ANSWER_MAX_BYTES,
                                                .on_done = alarms_webhook_on_done,
                                                .context = webhook};
    if (rc == 0)
        rc = http_client_start(webhook->client, &request, &webhook->call, &err);
    if (rc < 0)
        alarms_webhook_fail(webhook, err.text);
}

void alarms_webhook_tick(struct alarms_webhook *webhook, const struct alarms *alarms, int64_t now_mono_ns)
{
    if (webhook->call != NULL || now_mono_ns < webhook->again_mono_ns)
        return;
    if (now_mono_ns >= webhook->repeat_mono_ns) {
        webhook->repeat_mono_ns = now_mono_ns + ALARMS_WEBHOOK_REPEAT_NS;
        for (size_t i = 0; i < alarms_count(alarms); i++) {
            struct alarm_view alarm = alarms_at(alarms, i);
            if (alarm.is_active)
                alarms_webhook_tell(webhook, &alarm);
        }
    }
    if (webhook->waiting.count > 0)
        alarms_webhook_send(webhook);
}
