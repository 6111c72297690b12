/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoints_queue: /queue/list, /queue/model. */
#include <stdlib.h>

#include "proxy/endpoint.h"
#include "proxy/queue.h"

/* A request that waits for squeue; it goes with the answer, or with the client. */
struct endpoints_queue_pending {
    struct http_request *request;
    struct queue_wait *wait;
};

static void endpoints_queue_on_gone(void *context)
{
    struct endpoints_queue_pending *pending = context;
    queue_cancel(pending->wait);
    free(pending);
}

static void endpoints_queue_on_answer(void *context, const struct buf *json, const struct error *err)
{
    struct endpoints_queue_pending *pending = context;
    if (json == NULL) {
        endpoint_answer(pending->request, err->code, "", err);
    } else {
        struct buf body;
        buf_init(&body, json->length);
        buf_bytes(&body, json->data, json->length);
        http_request_answer(pending->request, &(struct http_request_answer){.body = &body});
    }
    free(pending);
}

static void endpoints_queue_list(const struct endpoint_parts *parts, struct http_request *request)
{
    struct endpoints_queue_pending *pending = parts->queue != NULL ? calloc(1, sizeof *pending) : NULL;
    if (pending == NULL) {
        http_request_fail(request, 503, "no room to ask squeue");
        return;
    }
    *pending = (struct endpoints_queue_pending){.request = request};
    http_request_on_gone(request, endpoints_queue_on_gone, pending);
    struct error err = {0};
    struct queue_wait *wait;
    if (queue_ask(parts->queue, endpoints_queue_on_answer, pending, &wait, &err) < 0) {
        endpoint_answer(request, err.code, "", &err);
        free(pending);
    } else if (wait != NULL) {
        pending->wait = wait; /* it has not been answered yet */
    }
}

static void endpoints_queue_model(const struct endpoint_parts *parts, struct http_request *request)
{
    (void)parts;
    http_request_fail(request, 501,
                      "this version computes no models: see /profiles/extrap for the samples of a command");
}

const struct endpoint endpoints_queue[] = {
    {"/queue/list", ENDPOINT_GET, false, endpoints_queue_list},
    {"/queue/model", ENDPOINT_GET, false, endpoints_queue_model},
    {0},
};
