/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * own: what the proxy says of itself: cicada_proxy_…, process_…, cicada_build_info. Made when it is asked for.
 *
 * Also watches the loop: how long it is away from its descriptors. Loop thread only.
 */
#ifndef PROXY_OWN_H
#define PROXY_OWN_H

#include <stdint.h>
#include <uv.h>

#include "net/http_server.h"
#include "net/unix_listener.h"
#include "proxy/exposition.h"
#include "proxy/proxy.h"
#include "util/error.h"

struct own;

/* Borrowed for its life; set by the daemon as they come to be. NULL: not there. */
struct own_sources {
    struct proxy *proxy;
    const struct http_server *http;
    const struct unix_listener *clients;
    const uint64_t *refused_requests;
};

/* `loop` is borrowed until own_close(). -ENOMEM. own_close(), then own_free(), when the loop has turned. */
MUST_CHECK int own_new(uv_loop_t *loop, struct own **out_own, struct error *err);

/* The sources, to be filled in. */
struct own_sources *own_sources(struct own *own);

/* Appends all of it. */
void own_append(struct own *own, enum exposition_form form, struct buf *out);

/* Its handles close with the loop's next turns; then own_free(). NULL is fine. */
void own_close(struct own *own);
void own_free(struct own *own);

#endif
