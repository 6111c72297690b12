/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/http_request.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "net/http_check.h"
#include "net/http_parts.h"

enum {
    HTTP_REQUEST_STATUS_OK = 200,
    HTTP_REQUEST_STATUS_BROKEN = 500,
    HTTP_REQUEST_GZIP_LEVEL = 1,              /* a third larger than level 6 at five times its speed */
    HTTP_REQUEST_GZIP_INLINE_MAX = 128 << 10, /* half a millisecond; more goes to a thread */
    HTTP_REQUEST_WHY_MAX = 1024,
    HTTP_REQUEST_FAILURE_MAX_BYTES = 16 << 10, /* every byte of the words may become an escape of six */
};

/* Answers that say nothing else get these: no cache, no guessing of types, no frames of others. */
static void http_request_add_headers(struct MHD_Response *response, const struct http_request_answer *answer)
{
    const struct http_request_header fixed[] = {
        {"Content-Type", answer->content_type != NULL ? answer->content_type : "application/json"},
        {"Cache-Control", answer->cache_control != NULL ? answer->cache_control : "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Vary", "Accept-Encoding"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(fixed); i++)
        (void)MHD_add_response_header(response, fixed[i].name, fixed[i].value);
    for (size_t i = 0; i < HTTP_REQUEST_HEADERS_MAX && answer->headers[i].name != NULL; i++)
        (void)MHD_add_response_header(response, answer->headers[i].name, answer->headers[i].value);
    if (answer->is_last)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (answer->is_compressed)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
}

/* Takes the memory of `body`, also on failure: NULL without memory. */
static struct MHD_Response *http_request_wrap(struct buf *body)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(body->length, body->data, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        free(body->data);
    buf_init(body, body->max);
    return response;
}

/* Replaces `body` by its gzip form; leaves it when that fails or is no shorter. True when it did. */
static bool http_request_gzip(struct buf *body)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(HTTP_REQUEST_GZIP_LEVEL);
    if (compressor == NULL)
        return false;
    char *packed = malloc(body->length);
    size_t length =
        packed != NULL ? libdeflate_gzip_compress(compressor, body->data, body->length, packed, body->length) : 0;
    libdeflate_free_compressor(compressor);
    if (length == 0) {
        free(packed);
        return false;
    }
    free(body->data);
    *body = (struct buf){.data = packed, .length = length, .capacity = length, .max = body->max};
    return true;
}

/* A body on its way through a thread. */
struct http_request_packing {
    struct http_server *server;
    struct http_request *request;
    struct MHD_Response *head; /* carries the headers */
    struct buf body;
    bool is_packed;
};

static void http_request_pack(void *data)
{
    struct http_request_packing *packing = data;
    packing->is_packed = http_request_gzip(&packing->body);
}

static enum MHD_Result http_request_copy_header(void *context, enum MHD_ValueKind kind, const char *name,
                                                const char *value)
{
    (void)kind;
    (void)MHD_add_response_header(context, name, value);
    return MHD_YES;
}

static void http_request_packed(void *data, bool is_wanted)
{
    struct http_request_packing *packing = data;
    if (is_wanted) {
        struct http_request *request = packing->request;
        request->compression = NULL;
        request->answer_bytes = packing->body.length;
        request->response = http_request_wrap(&packing->body);
        if (request->response != NULL) {
            (void)MHD_get_response_headers(packing->head, http_request_copy_header, request->response);
            if (packing->is_packed)
                (void)MHD_add_response_header(request->response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
        }
        request->is_gone = request->response == NULL;
        net_http_resume(request);
    }
    MHD_destroy_response(packing->head);
    buf_fini(&packing->body);
    net_http_release(packing->server);
    free(packing);
}

/* True: a thread compresses `answer`'s body now, and the answer follows. */
static bool http_request_pack_elsewhere(struct http_request *request, struct http_request_answer *answer)
{
    struct http_request_packing *packing = calloc(1, sizeof *packing);
    if (packing == NULL)
        return false;
    packing->server = request->connection->listener->server;
    packing->request = request;
    packing->head = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    const struct work_task task = {.run = http_request_pack, .done = http_request_packed, .data = packing};
    packing->body = *answer->body; /* before the thread can see it */
    if (packing->head == NULL || work_start(packing->server->config.loop, &task, &request->compression, NULL) < 0) {
        if (packing->head != NULL)
            MHD_destroy_response(packing->head);
        free(packing);
        return false;
    }
    packing->server->handles++;
    http_request_add_headers(packing->head, answer);
    buf_init(answer->body, answer->body->max);
    return true;
}

/* From here on the handler has nothing to do with the request. */
static void http_request_settle(struct http_request *request, unsigned status)
{
    request->on_gone = NULL;
    request->status = status != 0 ? status : HTTP_REQUEST_STATUS_OK;
}

void http_request_answer(struct http_request *request, struct http_request_answer *answer)
{
    struct buf none;
    buf_init(&none, 0);
    if (answer->body == NULL)
        answer->body = &none;
    if (answer->body->status != 0) {
        buf_fini(answer->body);
        http_request_fail(request, HTTP_REQUEST_STATUS_BROKEN, "the answer is too large, or there is no memory for it");
        return;
    }
    http_request_settle(request, answer->status);
    bool is_worth_it = answer->body->length >= HTTP_SERVER_GZIP_MIN_BYTES && !answer->is_compressed &&
                       http_check_accepts_gzip(http_request_header(request, MHD_HTTP_HEADER_ACCEPT_ENCODING));
    if (is_worth_it && answer->body->length > HTTP_REQUEST_GZIP_INLINE_MAX) {
        if (http_request_pack_elsewhere(request, answer))
            return;
    } else if (is_worth_it) {
        answer->is_compressed = http_request_gzip(answer->body);
    }
    request->answer_bytes = answer->body->length;
    request->response = http_request_wrap(answer->body);
    if (request->response != NULL)
        http_request_add_headers(request->response, answer);
    request->is_gone = request->response == NULL;
    net_http_resume(request);
}

void http_request_fail(struct http_request *request, unsigned status, const char *why)
{
    struct buf body;
    buf_init(&body, HTTP_REQUEST_FAILURE_MAX_BYTES);
    buf_text(&body, "{\"operation\":");
    buf_json_bytes(&body, why, strnlen(why, HTTP_REQUEST_WHY_MAX));
    buf_text(&body, ",\"success\":false}");
    if (body.status != 0) { /* no memory even for that: the connection is closed */
        buf_fini(&body);
        http_request_settle(request, status);
        request->is_gone = true;
        net_http_resume(request);
        return;
    }
    struct http_request_answer answer = {.status = status, .body = &body, .is_last = request->is_refused};
    http_request_answer(request, &answer);
}

/* The library asks for more of a stream. */
static ssize_t http_request_read(void *context, uint64_t position, char *to, size_t size)
{
    (void)position;
    struct http_request *request = context;
    if (request->is_gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (request->piece_sent == request->piece.length) {
        if (request->is_stream_last)
            return MHD_CONTENT_READER_END_OF_STREAM;
        buf_reset(&request->piece);
        request->piece_sent = 0;
        enum http_request_more more = request->source.produce(request->source.context, &request->piece);
        if (request->piece.status != 0)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        request->is_stream_last = more == HTTP_REQUEST_END;
        if (request->piece.length == 0 && request->is_stream_last)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (request->piece.length == 0) {
            request->is_suspended = true;
            net_http_enter(request->connection, HTTP_PHASE_HELD);
            MHD_suspend_connection(request->connection->mhd);
            return 0;
        }
    }
    size_t left = request->piece.length - request->piece_sent;
    size_t now = left < size ? left : size;
    memcpy(to, request->piece.data + request->piece_sent, now);
    request->piece_sent += now;
    net_http_enter(request->connection, HTTP_PHASE_SENDING); /* it took what was there before */
    return (ssize_t)now;
}

void http_request_stream(struct http_request *request, struct http_request_answer *head,
                         const struct http_request_source *source)
{
    enum { BLOCK_BYTES = 16 << 10 };
    http_request_settle(request, head->status);
    request->is_stream = true;
    request->source = *source;
    buf_init(&request->piece, HTTP_REQUEST_PIECE_MAX_BYTES);
    /* The library ends chunks also where it sent none, which a client takes for part of the next answer. */
    bool is_head = strcmp(request->method, MHD_HTTP_METHOD_HEAD) == 0;
    request->response =
        is_head ? MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT)
                : MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, http_request_read, request, NULL);
    if (request->response != NULL)
        http_request_add_headers(request->response, head);
    request->is_gone = request->response == NULL;
    net_http_resume(request);
}

void http_request_wake(struct http_request *request)
{
    if (request->is_stream)
        net_http_resume(request);
}

void net_http_resume(struct http_request *request)
{
    if (!request->is_suspended)
        return; /* within the handler's own call: the library is about to look */
    request->is_suspended = false;
    net_http_enter(request->connection, HTTP_PHASE_SENDING);
    MHD_resume_connection(request->connection->mhd);
    net_http_schedule(request->connection->listener);
}

/* Tells the handler that nobody waits for it any more. */
static void http_request_tell(struct http_request *request)
{
    void (*on_gone)(void *context) = request->on_gone;
    request->on_gone = NULL;
    if (on_gone != NULL)
        on_gone(request->gone_context);
    if (request->is_stream && !request->is_stream_over) {
        request->is_stream_over = true;
        request->source.on_end(request->source.context);
    }
}

void net_http_abandon(struct http_request *request)
{
    request->is_gone = true;
    work_abandon(TAKE(request->compression));
    http_request_tell(request);
    net_http_resume(request);
}

struct http_request *net_http_request_new(struct http_connection *connection, const char *raw_target)
{
    struct http_request *request = calloc(1, sizeof *request);
    char *target = strdup(raw_target);
    if (request == NULL || target == NULL) {
        free(request);
        free(target);
        return NULL;
    }
    request->connection = connection;
    request->raw_target = target;
    request->target.path = "/";
    return request;
}

void net_http_request_free(struct http_request *request)
{
    if (request == NULL)
        return;
    work_abandon(TAKE(request->compression));
    http_request_tell(request);
    if (request->response != NULL)
        MHD_destroy_response(request->response);
    http_target_fini(&request->target);
    buf_fini(&request->body);
    buf_fini(&request->piece);
    free(request->raw_target);
    free(request);
}

const char *http_request_method(const struct http_request *request)
{
    return strcmp(request->method, MHD_HTTP_METHOD_HEAD) == 0 ? MHD_HTTP_METHOD_GET : request->method;
}

const struct http_target *http_request_target(const struct http_request *request)
{
    return &request->target;
}

const char *http_request_raw_target(const struct http_request *request)
{
    return request->raw_target;
}

const char *http_request_header(const struct http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection->mhd, MHD_HEADER_KIND, name);
}

const struct buf *http_request_body(const struct http_request *request)
{
    return &request->body;
}

const struct http_request_peer *http_request_peer(const struct http_request *request)
{
    return &request->connection->peer;
}

void http_request_on_gone(struct http_request *request, void (*on_gone)(void *context), void *context)
{
    request->on_gone = on_gone;
    request->gone_context = context;
}
