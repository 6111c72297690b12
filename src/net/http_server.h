/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_server: HTTP/1.1 on TCP addresses and UNIX sockets, within a libuv loop.
 *
 * Owns listeners, connections, their limits and their clocks; hides libmicrohttpd, which does the parsing, completely.
 * Requests that two programs could read differently are refused before anybody sees them (http_check.h). Leaves paths,
 * rights and answers to the handler (http_request.h). What it can't see, since the library doesn't show it: bare
 * newlines and NULs in a head; so no reverse proxy may share one connection among clients. Loop thread only.
 */
#ifndef NET_HTTP_SERVER_H
#define NET_HTTP_SERVER_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "net/http_request.h"
#include "util/error.h"

struct http_server;

#define HTTP_SERVER_BODY_MAX_BYTES_DEFAULT     (64u << 10)
#define HTTP_SERVER_CONNECTIONS_MAX_DEFAULT    512
#define HTTP_SERVER_HEADER_TIMEOUT_MS_DEFAULT  10000
#define HTTP_SERVER_REQUEST_TIMEOUT_MS_DEFAULT 60000
#define HTTP_SERVER_IDLE_TIMEOUT_MS_DEFAULT    75000
#define HTTP_SERVER_SWEEP_MS_DEFAULT           1000
#define HTTP_SERVER_GZIP_MIN_BYTES             1024

/* Fields of 0 take their defaults. */
struct http_server_config {
    uv_loop_t *loop; /* borrowed for the server's life */
    void (*on_request)(void *context, struct http_request *request);
    /* How large a body this request may have, before it is read; NULL: the default for all. */
    size_t (*body_max_bytes)(void *context, const char *method, const char *path);
    void *context;
    unsigned connections_max;    /* of each listener; the oldest idle one makes room for a new one */
    unsigned header_timeout_ms;  /* from the connection, or a request's first line, to the end of its head */
    unsigned request_timeout_ms; /* to the end of its body; and for 1 MB of an answer, or any piece of a stream */
    unsigned idle_timeout_ms;    /* between requests */
    unsigned sweep_ms;           /* how often all that is looked at */
};

struct http_server_stats {
    size_t connections; /* now */
    uint64_t connections_total;
    uint64_t requests_total;      /* that reached the handler */
    uint64_t refused_total;       /* by the check of heads, or for a body that is too large */
    uint64_t timed_out_total;     /* connections that were too slow, but for idle ones */
    uint64_t evicted_total;       /* idle connections that made room */
    uint64_t accept_pauses_total; /* out of descriptors */
};

/* -EINVAL (no loop, no handler), -ENOMEM, libuv's. Nothing listens yet. */
MUST_CHECK int http_server_new(const struct http_server_config *config, struct http_server **out_server,
                               struct error *err);

/*
 * Listens on a numeric `address` ("127.0.0.1", "0.0.0.0", "::" for both families). Port 0: the kernel chooses.
 * `*out_port` (may be NULL) is the port. -EADDRINUSE; -EINVAL when it is no address; socket()'s and bind()'s.
 */
MUST_CHECK int http_server_listen_tcp(struct http_server *server, const char *address, uint16_t port,
                                      uint16_t *out_port, struct error *err);

/* Listens on a UNIX socket that is bound and listening already (unix_socket.h). Takes `fd`, also on failure. */
MUST_CHECK int http_server_listen_unix(struct http_server *server, int fd, struct error *err);

/* All since the server was made, of all its listeners. */
struct http_server_stats http_server_stats(const struct http_server *server);

/*
 * Ends all connections (kept requests get their on_gone, streams their on_end) and listeners, and frees the server;
 * `on_closed` (may be NULL) comes from the loop afterwards. Not from within a handler. NULL `server` is fine: then it
 * doesn't come.
 */
void http_server_close(struct http_server *server, void (*on_closed)(void *context), void *context);

#endif
