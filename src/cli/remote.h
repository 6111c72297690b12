/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote: the metric proxy that a command asks, by HTTP.
 *
 * Without an address it is this user's proxy on this node, found by its beacon. Each call waits for its answer, at most
 * REMOTE_TIMEOUT_MS. One thread.
 */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include <jansson.h>
#include <stddef.h>

#include "util/buf.h"
#include "util/cleanup.h"
#include "util/error.h"

#define REMOTE_TIMEOUT_MS       10000
#define REMOTE_ANSWER_MAX_BYTES (1u << 30)

struct remote;

/*
 * `address` is "host:port" or "http://host:port"; NULL: this node's. Returns -ENOENT when no proxy of this user is
 * here, and `err` says what to do; -EINVAL for an address that is none. Nothing is asked yet.
 */
MUST_CHECK int remote_open(const char *address, struct remote **out_remote, struct error *err);
void remote_close(struct remote *remote); /* NULL is fine */
DEFINE_CLEANUP(remote, remote_close);

/* "http://127.0.0.1:1337", borrowed. */
const char *remote_url(const struct remote *remote);

/*
 * Appends the answer to GET `path` ("/job/list"). -ESRCH: 400 to 499, it has no such thing; -EPROTO: another
 * status but 200; `err` has the proxy's words; -ECONNREFUSED, -ETIMEDOUT, -EFBIG, -ENOMEM.
 */
MUST_CHECK int remote_get(struct remote *remote, const char *path, struct buf *out, struct error *err);

/* The same, read as JSON: json_decref() frees it. -EPROTO, too, when it is none. */
MUST_CHECK int remote_get_json(struct remote *remote, const char *path, json_t **out_answer, struct error *err);

/* Appends `text` as it must stand in a query: %41. */
void remote_query_text(struct buf *out, const char *text);

#endif
