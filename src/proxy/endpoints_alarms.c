/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoints_alarms: /alarms, /alarms/list, /alarms/add, /alarms/del. */
#include <errno.h>
#include <string.h>

#include "proxy/alarms.h"
#include "proxy/alarms_text.h"
#include "proxy/endpoint.h"

static void endpoints_alarms_answer(const struct endpoint_parts *parts, struct http_request *request,
                                    bool is_raised_only)
{
    if (parts->alarms == NULL) {
        http_request_fail(request, 501, "this proxy has no alarms");
        return;
    }
    struct buf body;
    buf_init(&body, ALARMS_TEXT_FILE_MAX_BYTES);
    alarms_text_list(parts->alarms, is_raised_only, &body);
    http_request_answer(request, &(struct http_request_answer){.body = &body});
}

static void endpoints_alarms_raised(const struct endpoint_parts *parts, struct http_request *request)
{
    endpoints_alarms_answer(parts, request, true);
}

static void endpoints_alarms_list(const struct endpoint_parts *parts, struct http_request *request)
{
    endpoints_alarms_answer(parts, request, false);
}

static void endpoints_alarms_add(const struct endpoint_parts *parts, struct http_request *request)
{
    if (parts->alarms == NULL) {
        http_request_fail(request, 501, "this proxy has no alarms");
        return;
    }
    const struct buf *body = http_request_body(request);
    struct error err = {0};
    int rc = alarms_text_add(parts->alarms, body->length > 0 ? body->data : "", body->length, &err);
    endpoint_answer(request, rc, "alarm added", &err);
}

static void endpoints_alarms_del(const struct endpoint_parts *parts, struct http_request *request)
{
    if (parts->alarms == NULL) {
        http_request_fail(request, 501, "this proxy has no alarms");
        return;
    }
    struct error err = {0};
    int rc;
    if (strcmp(http_request_method(request), "POST") == 0) {
        const struct buf *body = http_request_body(request);
        rc = alarms_text_remove(parts->alarms, body->length > 0 ? body->data : "", body->length, &err);
    } else {
        const char *target = http_target_param(http_request_target(request), "targetjob");
        const char *name = http_target_param(http_request_target(request), "name");
        rc = target != NULL && name != NULL ? alarms_remove(parts->alarms, target, name, &err)
                                            : error_set(&err, -EINVAL, "the parameters are targetjob and name");
    }
    endpoint_answer(request, rc, "alarm deleted", &err);
}

const struct endpoint endpoints_alarms[] = {
    {"/alarms", ENDPOINT_GET, false, endpoints_alarms_raised},
    {"/alarms/list", ENDPOINT_GET, false, endpoints_alarms_list},
    {"/alarms/add", ENDPOINT_POST, true, endpoints_alarms_add},
    {"/alarms/del", ENDPOINT_GET | ENDPOINT_POST, true, endpoints_alarms_del},
    {0},
};
