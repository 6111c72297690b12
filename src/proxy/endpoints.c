/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/endpoints.h"

#include <string.h>

#include "proxy/endpoint_body.h"
#include "util/cleanup.h"
#include "util/clock.h"

enum {
    ENDPOINTS_ANSWER_MAX_BYTES = 1 << 16,
    HTTP_BAD_REQUEST = 400,
    HTTP_FORBIDDEN = 403,
    HTTP_NOT_FOUND = 404,
    HTTP_METHOD_NOT_ALLOWED = 405,
};

static const struct endpoint *const endpoints_tables[] = {
    endpoints_metrics, endpoints_jobs,  endpoints_profiles, endpoints_alarms,
    endpoints_join,    endpoints_queue, endpoints_self,
};

static const struct {
    const char *name;
    enum endpoint_methods method;
} endpoints_methods[] = {{"GET", ENDPOINT_GET}, {"POST", ENDPOINT_POST}, {"PUT", ENDPOINT_PUT}};

/* ---- what handlers share ---- */

void endpoint_answer(struct http_request *request, int rc, const char *what, const struct error *err)
{
    if (rc < 0) {
        http_request_fail(request, HTTP_BAD_REQUEST, err->text);
        return;
    }
    struct buf body;
    buf_init(&body, ENDPOINTS_ANSWER_MAX_BYTES);
    buf_text(&body, "{\"operation\":");
    buf_json_string(&body, what);
    buf_text(&body, ",\"success\":true}");
    http_request_answer(request, &(struct http_request_answer){.body = &body});
}

bool endpoint_param(const struct http_request *request, const char *name, struct buf *out)
{
    const char *value = http_target_param(http_request_target(request), name);
    if (value == NULL) {
        const struct buf *body = http_request_body(request);
        return endpoint_body_param(body->data, body->length, name, out);
    }
    buf_text(out, value);
    return out->status == 0;
}

struct job *endpoint_job(const struct endpoint_parts *parts, struct http_request *request, const char *name)
{
    struct jobs *jobs = proxy_jobs(parts->proxy);
    const char *id = http_target_param(http_request_target(request), name);
    struct job *job = id != NULL && id[0] != '\0' ? jobs_find(jobs, UINT32_MAX, id) : jobs_at(jobs, 0);
    if (job == NULL) {
        struct error err = {0};
        (void)error_set(&err, -ENOENT,
                        "no job '%s' counts here now; /job/list has those that do, /profiles those that "
                        "have ended",
                        id); /* the words are what is wanted */
        http_request_fail(request, HTTP_BAD_REQUEST, err.text);
    }
    return job;
}

/* ---- finding one ---- */

static bool endpoints_is_path(const char *path, const char *asked)
{
    size_t length = strlen(path);
    return strncmp(path, asked, length) == 0 &&
           (asked[length] == '\0' || (asked[length] == '/' && asked[length + 1] == '\0'));
}

static const struct endpoint *endpoints_find(const char *path)
{
    for (size_t i = 0; i < ARRAY_LENGTH(endpoints_tables); i++) {
        for (const struct endpoint *row = endpoints_tables[i]; row->path != NULL; row++) {
            if (endpoints_is_path(row->path, path))
                return row;
        }
    }
    return NULL;
}

static bool endpoints_takes(const struct endpoint *row, const char *method)
{
    for (size_t i = 0; i < ARRAY_LENGTH(endpoints_methods); i++) {
        if (strcmp(endpoints_methods[i].name, method) == 0)
            return (row->methods & (unsigned)endpoints_methods[i].method) != 0;
    }
    return false;
}

static bool endpoints_may(struct endpoints *endpoints, const struct endpoint *row, struct http_request *request)
{
    bool needs_right =
        endpoints->mode == SETTINGS_AUTH_ALL || (endpoints->mode == SETTINGS_AUTH_CHANGES && row->is_change);
    if (!needs_right)
        return true;
    struct auth_facts facts;
    struct error err = {0};
    auth_gather(request, &facts);
    if (auth_may_change(endpoints->auth, &facts, clock_wall_ns() / CLOCK_NS_PER_MS, &err) == 0)
        return true;
    endpoints->refused++;
    http_request_fail(request, HTTP_FORBIDDEN, err.text);
    return false;
}

void endpoints_handle(void *context, struct http_request *request)
{
    struct endpoints *endpoints = context;
    const char *path = http_request_target(request)->path;
    const struct endpoint *row = endpoints_find(path);
    if (row == NULL) {
        http_request_fail(request, HTTP_NOT_FOUND, "there is nothing at this path; / lists what is here");
    } else if (!endpoints_takes(row, http_request_method(request))) {
        http_request_fail(request, HTTP_METHOD_NOT_ALLOWED, "this path doesn't take that method");
    } else if (endpoints_may(endpoints, row, request)) {
        row->handle(&endpoints->parts, request);
    }
}
