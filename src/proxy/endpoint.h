/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoint: what a path of the proxy's HTTP interface is, and what its handlers share.
 *
 * One file endpoints_<family>.c a family of paths, each with a table; endpoints.c finds the row of a request, checks
 * its method and the right to change something, and calls its handler. Handlers answer through http_request.h, at once
 * or later, and never block. Loop thread only.
 */
#ifndef PROXY_ENDPOINT_H
#define PROXY_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "net/http_request.h"
#include "proxy/proxy.h"

struct alarms;
struct own;
struct queue;
struct scrapes;

/* The parts that handlers work on, borrowed; parts that this proxy has not are NULL. */
struct endpoint_parts {
    uv_loop_t *loop;
    struct proxy *proxy;
    struct own *own;
    struct alarms *alarms;
    struct scrapes *scrapes;
    struct queue *queue;
};

enum endpoint_methods { ENDPOINT_GET = 1 << 0, ENDPOINT_POST = 1 << 1, ENDPOINT_PUT = 1 << 2 };

struct endpoint {
    const char *path; /* "/alarms/add"; asked for with a slash at its end, it is the same */
    unsigned methods; /* of enum endpoint_methods */
    bool is_change;   /* refused to whom auth.h doesn't know: always with 403 and what to do */
    void (*handle)(const struct endpoint_parts *parts, struct http_request *request);
};

/* `{"operation":"<what>","success":true}` or, when `rc` is not 0, 400 with the words of `err`. */
void endpoint_answer(struct http_request *request, int rc, const char *what, const struct error *err);

/*
 * The parameter `name` of the request: of its query, or a member of the JSON object in its body, numbers as text.
 * Appended to `out`; false when there is none.
 */
bool endpoint_param(const struct http_request *request, const char *name, struct buf *out);

/* The job that the parameter `name` means, "main" without it; NULL: none, and 400 has been answered. */
struct job *endpoint_job(const struct endpoint_parts *parts, struct http_request *request, const char *name);

/* The tables, each ended by {0}. */
extern const struct endpoint endpoints_metrics[];  /* /metrics */
extern const struct endpoint endpoints_jobs[];     /* /job…, /ranks, /period, /set, /accumulate, /push */
extern const struct endpoint endpoints_profiles[]; /* /profiles…, /model… */
extern const struct endpoint endpoints_queue[];    /* /queue… */
extern const struct endpoint endpoints_alarms[];   /* /alarms… */
extern const struct endpoint endpoints_join[];     /* /join, /join/list, /disconnect */
extern const struct endpoint endpoints_self[];     /* /, /healthz, /readyz, /is_admire_proxy.html */

#endif
