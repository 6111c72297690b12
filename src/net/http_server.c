/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/http_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/http_check.h"
#include "net/http_parts.h"
#include "util/cursor.h"

enum {
    HTTP_SERVER_ROOM = 8,                    /* connections below the limit at which the oldest idle ones go */
    HTTP_SERVER_DISCARD_MAX_BYTES = 1 << 20, /* read of a body that is too long, so that the client reads why */
    HTTP_SERVER_STATUS_BAD = 400,
    HTTP_SERVER_STATUS_TOO_LARGE = 413,
};

/* Connections */

static struct http_connection *http_server_connection(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static void http_server_identify(struct http_connection *connection)
{
    struct http_request_peer *peer = &connection->peer;
    *peer = (struct http_request_peer){.is_unix = connection->listener->is_unix, .uid = (uid_t)-1};
    if (peer->is_unix) {
        struct ucred credentials;
        socklen_t length = sizeof credentials;
        if (getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0) {
            peer->uid = credentials.uid;
            peer->pid = credentials.pid;
        }
        return;
    }
    socklen_t length = sizeof peer->peer;
    if (getpeername(connection->fd, (struct sockaddr *)&peer->peer, &length) < 0)
        peer->peer.ss_family = AF_UNSPEC;
    length = sizeof peer->local;
    if (getsockname(connection->fd, (struct sockaddr *)&peer->local, &length) < 0)
        peer->local.ss_family = AF_UNSPEC;
}

static void http_server_opened(struct http_listener *listener, struct MHD_Connection *mhd, void **socket_context)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct http_connection *connection = info != NULL ? calloc(1, sizeof *connection) : NULL;
    *socket_context = connection;
    if (connection == NULL)
        return; /* its requests are refused */
    *connection = (struct http_connection){
        .listener = listener, .mhd = mhd, .fd = info->connect_fd, .previous = listener->newest};
    if (listener->newest != NULL)
        listener->newest->next = connection;
    else
        listener->oldest = connection;
    listener->newest = connection;
    http_server_identify(connection);
    net_http_enter(connection, HTTP_PHASE_IDLE);
    struct http_server *server = listener->server;
    server->stats.connections++;
    server->stats.connections_total++;
    listener->connection_count++;
    if (listener->connection_count + HTTP_SERVER_ROOM > server->config.connections_max)
        net_http_make_room(listener);
}

static void http_server_closed(struct http_listener *listener, struct http_connection *connection)
{
    if (connection == NULL)
        return;
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        listener->oldest = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    else
        listener->newest = connection->previous;
    listener->server->stats.connections--;
    listener->connection_count--;
    net_http_request_free(connection->request);
    free(connection);
    net_http_accept_again(listener);
}

void net_http_on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                            enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        http_server_opened(context, mhd, socket_context);
    else
        http_server_closed(context, *socket_context);
}

/* Requests */

/* A first line: the request is born. Its text is raw, since our "unescape" leaves everything as it is. */
void *net_http_on_line(void *context, const char *uri, struct MHD_Connection *mhd)
{
    (void)context;
    struct http_connection *connection = http_server_connection(mhd);
    if (connection == NULL)
        return NULL;
    net_http_enter(connection, HTTP_PHASE_HEAD);
    net_http_request_free(connection->request);
    connection->request = net_http_request_new(connection, uri);
    return connection->request;
}

void net_http_on_completed(void *context, struct MHD_Connection *mhd, void **request_context,
                           enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)code;
    struct http_connection *connection = http_server_connection(mhd);
    *request_context = NULL;
    if (connection == NULL)
        return;
    net_http_request_free(TAKE(connection->request));
    connection->has_served = true;
    net_http_enter(connection, HTTP_PHASE_IDLE);
}

static enum MHD_Result http_server_check_header(void *context, enum MHD_ValueKind kind, const char *name,
                                                size_t name_length, const char *value, size_t value_length)
{
    (void)kind;
    http_check_header(context, name, name_length, value != NULL ? value : "", value_length);
    return MHD_YES;
}

static enum MHD_Result http_server_queue(struct http_request *request)
{
    struct MHD_Response *response = TAKE(request->response);
    net_http_enter(request->connection, HTTP_PHASE_SENDING);
    enum MHD_Result result = MHD_queue_response(request->connection->mhd, request->status, response);
    MHD_destroy_response(response); /* the library counts its own use */
    return result;
}

static enum MHD_Result http_server_refuse(struct http_request *request, unsigned status, const char *why)
{
    request->is_refused = true;
    request->connection->listener->server->stats.refused_total++;
    http_request_fail(request, status, why);
    return request->is_gone ? MHD_NO : http_server_queue(request);
}

/* More than the limit by what its head says? A little more is read and thrown away: see HTTP_SERVER_DISCARD_MAX_BYTES.
 */
static bool http_server_is_hopeless(const struct http_request *request)
{
    const char *value = http_request_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (value == NULL)
        return false;
    struct cursor digits = cursor_of(value, strlen(value));
    uint64_t length;
    return cursor_u64(&digits, &length) && length > (uint64_t)request->body.max + HTTP_SERVER_DISCARD_MAX_BYTES;
}

/* The head is complete. */
static enum MHD_Result http_server_begin(struct http_request *request, const char *method, const char *version)
{
    struct http_connection *connection = request->connection;
    const struct http_server_config *config = &connection->listener->server->config;
    request->is_head_seen = true;
    net_http_enter(connection, HTTP_PHASE_BODY);
    struct http_check check = {0};
    (void)MHD_get_connection_values_n(connection->mhd, MHD_HEADER_KIND, http_server_check_header, &check);
    const char *reason = http_check_verdict(&check, strcmp(version, MHD_HTTP_VERSION_1_0) == 0);
    if (reason == NULL && strlen(method) >= sizeof request->method)
        reason = "no such method";
    if (reason != NULL)
        return http_server_refuse(request, HTTP_SERVER_STATUS_BAD, reason);
    memcpy(request->method, method, strlen(method) + 1);

    struct error err = {0};
    if (http_target_parse(request->raw_target, &request->target, &err) < 0)
        return http_server_refuse(request, HTTP_SERVER_STATUS_BAD, err.text);
    size_t max_bytes = HTTP_SERVER_BODY_MAX_BYTES_DEFAULT;
    if (config->body_max_bytes != NULL)
        max_bytes = config->body_max_bytes(config->context, http_request_method(request), request->target.path);
    buf_init(&request->body, max_bytes);
    if (http_server_is_hopeless(request))
        return http_server_refuse(request, HTTP_SERVER_STATUS_TOO_LARGE, "the body is too large");
    return MHD_YES;
}

static enum MHD_Result http_server_take_body(struct http_request *request, const char *bytes, size_t *length)
{
    if (!request->is_body_too_long)
        buf_bytes(&request->body, bytes, *length);
    if (request->body.status == -ENOMEM)
        return MHD_NO;
    request->is_body_too_long = request->body.status != 0;
    if (request->is_body_too_long)
        request->discarded_bytes += *length;
    *length = 0;
    return request->discarded_bytes <= HTTP_SERVER_DISCARD_MAX_BYTES ? MHD_YES : MHD_NO;
}

/* All of it is here, or its answer is. */
static enum MHD_Result http_server_finish(struct http_request *request)
{
    struct http_server *server = request->connection->listener->server;
    if (!request->is_dispatched && request->is_body_too_long)
        return http_server_refuse(request, HTTP_SERVER_STATUS_TOO_LARGE, "the body is too large");
    if (!request->is_dispatched) {
        request->is_dispatched = true;
        server->stats.requests_total++;
        server->config.on_request(server->config.context, request);
    }
    if (request->is_gone || server->is_closing)
        return MHD_NO;
    if (request->response != NULL)
        return http_server_queue(request);
    request->is_suspended = true;
    net_http_enter(request->connection, HTTP_PHASE_HELD);
    MHD_suspend_connection(request->connection->mhd);
    return MHD_YES;
}

enum MHD_Result net_http_on_access(void *context, struct MHD_Connection *mhd, const char *url, const char *method,
                                   const char *version, const char *upload, size_t *upload_length,
                                   void **request_context)
{
    (void)context;
    (void)mhd;
    (void)url;
    struct http_request *request = *request_context;
    if (request == NULL)
        return MHD_NO; /* there was no memory for it */
    if (!request->is_head_seen)
        return http_server_begin(request, method, version);
    if (*upload_length > 0)
        return http_server_take_body(request, upload, upload_length);
    return http_server_finish(request);
}

/* The server */

static void http_server_on_sweep(uv_timer_t *timer)
{
    net_http_sweep(timer->data);
}

static void http_server_default(unsigned *value, unsigned otherwise)
{
    if (*value == 0)
        *value = otherwise;
}

int http_server_new(const struct http_server_config *config, struct http_server **out_server, struct error *err)
{
    if (config->loop == NULL || config->on_request == NULL)
        return error_set(err, -EINVAL, "an HTTP server needs a loop and a handler");
    struct http_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return error_set(err, -ENOMEM, "HTTP server");
    server->config = *config;
    http_server_default(&server->config.connections_max, HTTP_SERVER_CONNECTIONS_MAX_DEFAULT);
    http_server_default(&server->config.header_timeout_ms, HTTP_SERVER_HEADER_TIMEOUT_MS_DEFAULT);
    http_server_default(&server->config.request_timeout_ms, HTTP_SERVER_REQUEST_TIMEOUT_MS_DEFAULT);
    http_server_default(&server->config.idle_timeout_ms, HTTP_SERVER_IDLE_TIMEOUT_MS_DEFAULT);
    http_server_default(&server->config.sweep_ms, HTTP_SERVER_SWEEP_MS_DEFAULT);
    (void)uv_timer_init(config->loop, &server->sweep); /* can't fail */
    server->sweep.data = server;
    (void)uv_timer_start(&server->sweep, http_server_on_sweep, server->config.sweep_ms, server->config.sweep_ms);
    *out_server = server;
    return 0;
}

struct http_server_stats http_server_stats(const struct http_server *server)
{
    return server->stats;
}

void net_http_release(struct http_server *server)
{
    server->handles--;
    if (server->handles > 0 || !server->is_closing)
        return;
    while (server->listeners != NULL)
        net_http_free_listener(server);
    void (*on_closed)(void *context) = server->on_closed;
    void *context = server->closed_context;
    free(server);
    if (on_closed != NULL)
        on_closed(context);
}

static void http_server_on_handle_closed(uv_handle_t *handle)
{
    net_http_release(handle->data);
}

void net_http_close_handle(struct http_server *server, uv_handle_t *handle)
{
    handle->data = server;
    server->handles++;
    uv_close(handle, http_server_on_handle_closed);
}

void http_server_close(struct http_server *server, void (*on_closed)(void *context), void *context)
{
    if (server == NULL)
        return;
    server->is_closing = true;
    server->on_closed = on_closed;
    server->closed_context = context;
    for (struct http_listener *listener = server->listeners; listener != NULL; listener = listener->next)
        net_http_end_listener(listener);
    net_http_close_handle(server, (uv_handle_t *)&server->sweep);
}
