/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_parts: what http_server, http_listener, http_request and http_sweep know of each other; included by these alone.
 *
 * server -> listener (one daemon of libmicrohttpd each) -> connection -> request. A connection has at most one request.
 * The library calls back: connection opened; first line seen (the request is born); head complete; body; answer taken;
 * request completed; connection closed. Each callback sets the connection's deadline. Loop thread only.
 */
#ifndef NET_HTTP_PARTS_H
#define NET_HTTP_PARTS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "net/http_request.h"
#include "net/http_server.h"
#include "net/http_target.h"
#include "net/work.h"
#include "util/buf.h"

struct http_listener {
    struct http_server *server;
    struct MHD_Daemon *daemon;
    int fd; /* listening; the library never sees it */
    uv_poll_t accept_poll;
    uv_timer_t accept_pause;
    bool is_full;     /* accepts again when a connection closes */
    uv_poll_t poll;   /* of the library's descriptor */
    uv_timer_t timer; /* when the library wants to run next */
    bool is_unix;
    bool is_running; /* within MHD_run() */
    size_t connection_count;
    struct http_connection *oldest, *newest; /* by arrival */
    struct http_listener *next;
};

struct http_server {
    struct http_server_config config;
    uv_timer_t sweep;
    struct http_listener *listeners;
    struct http_server_stats stats;
    bool is_closing;
    unsigned handles; /* that are closing, and bodies with a thread: the end waits for them */
    void (*on_closed)(void *context);
    void *closed_context;
};

enum http_phase {
    HTTP_PHASE_IDLE,    /* no first line yet */
    HTTP_PHASE_HEAD,    /* first line seen */
    HTTP_PHASE_BODY,    /* head complete */
    HTTP_PHASE_HELD,    /* the handler has it: the library has suspended the connection */
    HTTP_PHASE_SENDING, /* an answer is on its way */
};

#define HTTP_PARTS_NEVER INT64_MAX

struct http_connection {
    struct http_listener *listener;
    struct MHD_Connection *mhd;
    int fd; /* the library's */
    enum http_phase phase;
    int64_t deadline_ms; /* of the loop's clock */
    bool has_served;     /* a request already */
    bool is_shut;        /* by us: the library is about to notice */
    struct http_request *request;
    struct http_request_peer peer;
    struct http_connection *previous, *next;
};

struct http_request {
    struct http_connection *connection;
    char *raw_target;
    char method[16];
    bool is_head_seen; /* the library has called with the head */
    bool is_refused;   /* the answer is ours, the handler never sees it */
    bool is_body_too_long;
    bool is_dispatched;
    bool is_gone; /* the client, or the server closes */
    bool is_suspended;
    struct http_target target;
    struct buf body;
    size_t discarded_bytes; /* of a body that is too long */
    void (*on_gone)(void *context);
    void *gone_context;
    struct MHD_Response *response; /* made, not yet given to the library */
    unsigned status;
    uint64_t answer_bytes;
    struct work *compression;
    bool is_stream;
    bool is_stream_over; /* on_end was called */
    bool is_stream_last; /* nothing comes after `piece` */
    struct http_request_source source;
    struct buf piece;
    size_t piece_sent;
};

/* http_server */

/* The library's callbacks; `context` is the listener. */
void net_http_on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                            enum MHD_ConnectionNotificationCode code);
void *net_http_on_line(void *context, const char *uri, struct MHD_Connection *mhd);
void net_http_on_completed(void *context, struct MHD_Connection *mhd, void **request_context,
                           enum MHD_RequestTerminationCode code);
enum MHD_Result net_http_on_access(void *context, struct MHD_Connection *mhd, const char *url, const char *method,
                                   const char *version, const char *upload, size_t *upload_length,
                                   void **request_context);

/* Closes a handle of the server or a listener; the last one frees all. */
void net_http_close_handle(struct http_server *server, uv_handle_t *handle);

/* One of what the server's end waits for (`handles`) is over. */
void net_http_release(struct http_server *server);

/* http_listener */

/* The library is to run at the loop's next turn. */
void net_http_schedule(struct http_listener *listener);

/* A connection has closed: there may be room for one that waits. */
void net_http_accept_again(struct http_listener *listener);

/* The server closes: ends all connections, closes the handles. */
void net_http_end_listener(struct http_listener *listener);

/* Frees the server's first listener, whose handles have closed. */
void net_http_free_listener(struct http_server *server);

/* http_request */

struct http_request *net_http_request_new(struct http_connection *connection,
                                          const char *raw_target); /* NULL: no memory */
void net_http_request_free(struct http_request *request);          /* after telling the handler, if it still waits */

/* The answer is there, or the client has gone: the library is to go on with it. */
void net_http_resume(struct http_request *request);

/* The client has gone, or is to go: tells the handler, once. */
void net_http_abandon(struct http_request *request);

/* http_sweep */

/* Ends connections that are past their deadline, and requests whose client has gone. */
void net_http_sweep(struct http_server *server);

/* The time by which the connection's present phase must have ended. */
void net_http_enter(struct http_connection *connection, enum http_phase phase);

/* A listener is near its limit: the oldest idle connection goes. */
void net_http_make_room(struct http_listener *listener);

#endif
