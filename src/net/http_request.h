/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_request: one request, as a handler of http_server sees it, and the ways to answer it.
 *
 * A handler answers at once, or keeps the request and answers later from the loop; http_request_answer() and
 * http_request_stream() end its right to touch it. If the client goes before that, on_gone is called once, and then the
 * request is gone. What the getters return is borrowed for as long. Loop thread only.
 */
#ifndef NET_HTTP_REQUEST_H
#define NET_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "net/http_target.h"
#include "util/buf.h"

struct http_request;

/* Who asks. */
struct http_request_peer {
    bool is_unix; /* over the UNIX socket: then uid is known, else it is (uid_t)-1 */
    uid_t uid;
    pid_t pid;                     /* 0: unknown */
    struct sockaddr_storage peer;  /* TCP: whence, and */
    struct sockaddr_storage local; /* where to; for peer.h */
};

/* "GET", "POST", …; a HEAD reads "GET", its answer's body is left out. */
const char *http_request_method(const struct http_request *request);

/* Decoded path and parameters, and the raw text of both. */
const struct http_target *http_request_target(const struct http_request *request);
const char *http_request_raw_target(const struct http_request *request);

/* A header's value by its name in any case; NULL when there is none. */
const char *http_request_header(const struct http_request *request, const char *name);

/* The whole body; length 0 when there was none. */
const struct buf *http_request_body(const struct http_request *request);

/* Who asks; never NULL. */
const struct http_request_peer *http_request_peer(const struct http_request *request);

/* What to call when the client goes before there is an answer. */
void http_request_on_gone(struct http_request *request, void (*on_gone)(void *context), void *context);

#define HTTP_REQUEST_HEADERS_MAX 8

struct http_request_header {
    const char *name;
    const char *value;
};

/* Texts are borrowed until the call returns. */
struct http_request_answer {
    unsigned status;          /* 200 when 0 */
    const char *content_type; /* "application/json" when NULL */
    struct buf *body; /* its memory is taken, the buf is empty then. A body with a failed status becomes a 500 */
    const char *cache_control; /* "no-store" when NULL */
    bool is_compressed;        /* `body` is gzip already: the client must have been asked with http_check_… */
    bool is_last;              /* close the connection afterwards */
    struct http_request_header headers[HTTP_REQUEST_HEADERS_MAX]; /* more of them; the first without a name ends it */
};

/* Answers, now or later; `request` is not the handler's any more. A client that has gone is no error. */
void http_request_answer(struct http_request *request, struct http_request_answer *answer);

/* `{"operation":"<why>","success":false}`, which is how every endpoint tells that it can't. `why` is cut to 1 kB. */
void http_request_fail(struct http_request *request, unsigned status, const char *why);

enum http_request_more {
    HTTP_REQUEST_MORE, /* something was appended; ask again when it has been sent */
    HTTP_REQUEST_WAIT, /* nothing now; http_request_wake() will come */
    HTTP_REQUEST_END,  /* what was appended is the last */
};

/* An answer that is made piece by piece: server-sent events, or a large file. */
struct http_request_source {
    /* Appends at most HTTP_REQUEST_PIECE_MAX_BYTES. Called when the client has taken the piece before. */
    enum http_request_more (*produce)(void *context, struct buf *out);
    void (*on_end)(void *context); /* always called once: sent, or the client has gone, or the server closes */
    void *context;
};

#define HTTP_REQUEST_PIECE_MAX_BYTES (1u << 20)

/* Unlike after http_request_answer(), `request` stays valid for http_request_wake() until on_end. */
void http_request_stream(struct http_request *request, struct http_request_answer *head,
                         const struct http_request_source *source);

/* There is more to produce. */
void http_request_wake(struct http_request *request);

#endif
