/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_client: HTTP requests to other programs, within a libuv loop; hides libcurl completely.
 *
 * Every request has a deadline, name look-up included, and a limit for its answer. Connections are kept. Follows no
 * redirect, uses no proxy of the environment, speaks http and https alone. Two requests of one key are never under way
 * at once. Loop thread only.
 */
#ifndef NET_HTTP_CLIENT_H
#define NET_HTTP_CLIENT_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "net/resolve.h"
#include "util/buf.h"
#include "util/error.h"

struct http_client;
struct http_client_call;

#define HTTP_CLIENT_CALLS_MAX            1024 /* under way */
#define HTTP_CLIENT_TIMEOUT_MS_DEFAULT   10000
#define HTTP_CLIENT_BODY_MAX_BYTES       (32u << 20) /* default */
#define HTTP_CLIENT_CONNECTIONS_KEPT_MIN 16

struct http_client_result {
    int code;         /* 0, or why there is no whole answer: -ETIMEDOUT, -ECONNREFUSED, -EFBIG, -ENOENT (name), -EIO */
    struct error err; /* the same in words, with the URL */
    unsigned status;  /* of HTTP, whatever it is: 302 and 500 are answers; 0 when there was none */
    const char *content_type; /* "" when none was told */
    struct buf *body;         /* what was read; may be taken: leave an empty one */
    int64_t took_ns;
};

/* Texts are copied. Fields of 0 or NULL take their defaults. */
struct http_client_request {
    const char *url;
    const char *key;            /* default: the URL */
    const char *method;         /* default: GET, or POST with a body */
    const char *const *headers; /* "Name: value", NULL at the end */
    const void *body;           /* copied */
    size_t body_length;
    unsigned timeout_ms;
    size_t body_max_bytes;
    void (*on_done)(void *context, struct http_client_result *result); /* once, from the loop */
    void *context;
};

/* Borrows both for its life; keeps `connections_kept` connections open at most (children and targets). */
MUST_CHECK int http_client_new(uv_loop_t *loop, struct resolve *resolve, size_t connections_kept,
                               struct http_client **out_client, struct error *err);

/* `*out_call` (may be NULL) is borrowed until on_done begins. -EINVAL: no http(s) URL; -EALREADY: that key is under
 * way; -EAGAIN: too many are; -ENOMEM. on_done never comes before this returns. */
MUST_CHECK int http_client_start(struct http_client *client, const struct http_client_request *request,
                                 struct http_client_call **out_call, struct error *err);

/* on_done won't come. NULL is fine. */
void http_client_cancel(struct http_client_call *call);

/* Under way now. */
size_t http_client_count(const struct http_client *client);

/* Cancels all. `on_closed` (may be NULL) comes from the loop when all is freed. NULL `client` is fine: it doesn't. */
void http_client_close(struct http_client *client, void (*on_closed)(void *context), void *context);

#endif
