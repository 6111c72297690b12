/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoints_join: /join, /join/list, /join/multiple, /disconnect. */
#include <errno.h>
#include <string.h>

#include "proxy/endpoint.h"
#include "proxy/scrapes.h"
#include "util/cursor.h"

enum { ENDPOINTS_JOIN_MAX_BYTES = 8 << 20 };

static bool endpoints_join_has_scrapes(const struct endpoint_parts *parts, struct http_request *request)
{
    if (parts->scrapes != NULL)
        return true;
    http_request_fail(request, 501, "this proxy scrapes nobody");
    return false;
}

/* The parameter `period`, 0 when there is none; -1, answered, when it is no number. */
static int endpoints_join_period(struct http_request *request, unsigned *out_period_ms)
{
    const char *text = http_target_param(http_request_target(request), "period");
    *out_period_ms = 0;
    if (text == NULL || text[0] == '\0')
        return 0;
    struct cursor number = cursor_of(text, strlen(text));
    uint64_t period_ms;
    if (cursor_u64(&number, &period_ms) && cursor_is_empty(&number) && period_ms > 0 && period_ms <= UINT32_MAX) {
        *out_period_ms = (unsigned)period_ms;
        return 0;
    }
    http_request_fail(request, 400, "'period' is a number of milliseconds");
    return -1;
}

static void endpoints_join_one(const struct endpoint_parts *parts, struct http_request *request)
{
    const char *to = http_target_param(http_request_target(request), "to");
    unsigned period_ms;
    if (!endpoints_join_has_scrapes(parts, request) || endpoints_join_period(request, &period_ms) < 0)
        return;
    struct error err = {0};
    bool is_new = false;
    int rc = to != NULL ? scrapes_join(parts->scrapes, to, period_ms, &is_new, &err)
                        : error_set(&err, -EINVAL, "whom? /join?to=HOST:PORT");
    endpoint_answer(request, rc, rc == 0 && !is_new ? "joined already" : "joined", &err);
}

/* `to=A&B&C`: the others stand as parameters without a value. All are tried; the first that fails is told. */
static void endpoints_join_multiple(const struct endpoint_parts *parts, struct http_request *request)
{
    const struct http_target *target = http_request_target(request);
    unsigned period_ms;
    if (!endpoints_join_has_scrapes(parts, request) || endpoints_join_period(request, &period_ms) < 0)
        return;
    struct error first = {0};
    size_t tried = 0;
    for (size_t i = 0; i < target->param_count; i++) {
        const struct http_target_param *param = &target->params[i];
        bool is_to = strcmp(param->name, "to") == 0;
        if (!is_to && (param->value[0] != '\0' || strcmp(param->name, "period") == 0))
            continue;
        struct error err = {0};
        bool is_new;
        tried++;
        if (scrapes_join(parts->scrapes, is_to ? param->value : param->name, period_ms, &is_new, &err) < 0 &&
            first.code == 0)
            first = err;
    }
    if (tried == 0)
        (void)error_set(&first, -EINVAL, "whom? /join/multiple?to=HOST:PORT&HOST:PORT");
    endpoint_answer(request, first.code, "joined", &first);
}

static void endpoints_join_list(const struct endpoint_parts *parts, struct http_request *request)
{
    if (!endpoints_join_has_scrapes(parts, request))
        return;
    struct buf body;
    buf_init(&body, ENDPOINTS_JOIN_MAX_BYTES);
    scrapes_list(parts->scrapes, &body);
    http_request_answer(request, &(struct http_request_answer){.body = &body});
}

static void endpoints_join_disconnect(const struct endpoint_parts *parts, struct http_request *request)
{
    const char *target = http_target_param(http_request_target(request), "target");
    if (!endpoints_join_has_scrapes(parts, request))
        return;
    struct error err = {0};
    int rc = target != NULL ? scrapes_disconnect(parts->scrapes, target, &err)
                            : error_set(&err, -EINVAL, "whom? /disconnect?target=HOST:PORT");
    endpoint_answer(request, rc, "disconnected", &err);
}

const struct endpoint endpoints_join[] = {
    {"/join", ENDPOINT_GET, true, endpoints_join_one},
    {"/join/list", ENDPOINT_GET, false, endpoints_join_list},
    {"/join/multiple", ENDPOINT_GET, true, endpoints_join_multiple},
    {"/disconnect", ENDPOINT_GET, true, endpoints_join_disconnect},
    {0},
};
