/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http_check.h"
#include "net/http_parts.h"
#include "net/socket_address.h"

enum {
    HTTP_SERVER_POOL_BYTES = 16 << 10, /* of a connection, as long as it is open: head and the library's own */
    HTTP_SERVER_BACKLOG = 1024,
    HTTP_SERVER_ROOM = 8,                    /* connections below the limit at which the oldest idle ones go */
    HTTP_SERVER_DISCARD_MAX_BYTES = 1 << 20, /* read of a body that is too long, so that the client reads why */
    HTTP_SERVER_IDLE_RUNS_MAX = 50,
    HTTP_SERVER_PAUSE_MS = 100,
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
    listener->idle_runs = 0;
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
    http_sweep_enter(connection, HTTP_PHASE_IDLE);
    struct http_server *server = listener->server;
    server->stats.connections++;
    server->stats.connections_total++;
    listener->connection_count++;
    if (listener->connection_count + HTTP_SERVER_ROOM > server->config.connections_max)
        http_sweep_make_room(listener);
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
    http_request_free(connection->request);
    free(connection);
}

static void http_server_on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                                      enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        http_server_opened(context, mhd, socket_context);
    else
        http_server_closed(context, *socket_context);
}

/* Requests */

/* A first line: the request is born. Its text is raw, since our "unescape" leaves everything as it is. */
static void *http_server_on_line(void *context, const char *uri, struct MHD_Connection *mhd)
{
    (void)context;
    struct http_connection *connection = http_server_connection(mhd);
    if (connection == NULL)
        return NULL;
    http_sweep_enter(connection, HTTP_PHASE_HEAD);
    http_request_free(connection->request);
    connection->request = http_request_new(connection, uri);
    return connection->request;
}

static size_t http_server_unescape(void *context, struct MHD_Connection *mhd, char *text)
{
    (void)context;
    (void)mhd;
    return strlen(text);
}

static void http_server_on_completed(void *context, struct MHD_Connection *mhd, void **request_context,
                                     enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)code;
    struct http_connection *connection = http_server_connection(mhd);
    *request_context = NULL;
    if (connection == NULL)
        return;
    http_request_free(TAKE(connection->request));
    connection->has_served = true;
    http_sweep_enter(connection, HTTP_PHASE_IDLE);
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
    http_sweep_enter(request->connection, HTTP_PHASE_SENDING);
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
    uint64_t length = strtoull(value, NULL, 10); /* digits only, at most 18: http_check */
    return length > (uint64_t)request->body.max + HTTP_SERVER_DISCARD_MAX_BYTES;
}

/* The head is complete. */
static enum MHD_Result http_server_begin(struct http_request *request, const char *method, const char *version)
{
    struct http_connection *connection = request->connection;
    const struct http_server_config *config = &connection->listener->server->config;
    request->is_head_seen = true;
    http_sweep_enter(connection, HTTP_PHASE_BODY);
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
    http_sweep_enter(request->connection, HTTP_PHASE_HELD);
    MHD_suspend_connection(request->connection->mhd);
    return MHD_YES;
}

static enum MHD_Result http_server_on_access(void *context, struct MHD_Connection *mhd, const char *url,
                                             const char *method, const char *version, const char *upload,
                                             size_t *upload_length, void **request_context)
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

/* The library in the loop */

static void http_server_run(struct http_listener *listener);

static void http_server_on_timer(uv_timer_t *timer)
{
    struct http_listener *listener = timer->data;
    listener->is_paused = false;
    http_server_run(listener);
}

static void http_server_on_ready(uv_poll_t *poll, int status, int events)
{
    (void)status; /* an error shows in the run, too */
    (void)events;
    http_server_run(poll->data);
}

static void http_server_pause(struct http_listener *listener)
{
    listener->is_paused = true;
    listener->idle_runs = 0;
    listener->server->stats.accept_pauses_total++;
    (void)uv_poll_stop(&listener->poll);
    (void)uv_timer_start(&listener->timer, http_server_on_timer, HTTP_SERVER_PAUSE_MS, 0);
}

static void http_server_run(struct http_listener *listener)
{
    if (listener->server->is_closing || listener->is_paused || listener->is_running)
        return;
    listener->is_running = true;
    (void)MHD_run(listener->daemon);
    listener->is_running = false;

    /* Out of descriptors and without a connection whose end would tell it to try again, the library spins. */
    listener->idle_runs = listener->connection_count == 0 ? listener->idle_runs + 1 : 0;
    if (listener->idle_runs > HTTP_SERVER_IDLE_RUNS_MAX) {
        http_server_pause(listener);
        return;
    }
    MHD_UNSIGNED_LONG_LONG wait_ms;
    if (MHD_get_timeout(listener->daemon, &wait_ms) == MHD_YES)
        (void)uv_timer_start(&listener->timer, http_server_on_timer, wait_ms, 0);
    else
        (void)uv_timer_stop(&listener->timer);
    (void)uv_poll_start(&listener->poll, UV_READABLE,
                        http_server_on_ready); /* after a pause; else it changes nothing */
}

void http_server_schedule(struct http_listener *listener)
{
    if (!listener->server->is_closing && !listener->is_paused)
        (void)uv_timer_start(&listener->timer, http_server_on_timer, 0, 0);
}

/* Listeners */

static struct MHD_Daemon *http_server_daemon(struct http_listener *listener, int fd)
{
    const struct http_server_config *config = &listener->server->config;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    return MHD_start_daemon(flags, 0, NULL, NULL, http_server_on_access, listener, MHD_OPTION_LISTEN_SOCKET, fd,
                            MHD_OPTION_CONNECTION_LIMIT, config->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)HTTP_SERVER_POOL_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
                            MHD_OPTION_NOTIFY_CONNECTION, http_server_on_connection, listener,
                            MHD_OPTION_NOTIFY_COMPLETED, http_server_on_completed, listener,
                            MHD_OPTION_URI_LOG_CALLBACK, http_server_on_line, listener, MHD_OPTION_UNESCAPE_CALLBACK,
                            http_server_unescape, listener, MHD_OPTION_END);
}

/* Takes `fd`. */
static int http_server_add(struct http_server *server, int fd, bool is_unix, struct error *err)
{
    CLEANUP(fd_cleanup) int listen_fd = fd;
    struct http_listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        return error_set(err, -ENOMEM, "HTTP listener");
    *listener = (struct http_listener){.server = server, .is_unix = is_unix};
    listener->daemon = http_server_daemon(listener, listen_fd);
    if (listener->daemon == NULL) {
        free(listener);
        return error_set(err, -EIO, "the HTTP library does not start: are there descriptors left?");
    }
    (void)TAKE_FD(listen_fd);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    int rc = uv_poll_init(server->config.loop, &listener->poll, info->epoll_fd);
    if (rc < 0) {
        MHD_stop_daemon(listener->daemon);
        free(listener);
        return error_set(err, rc, "watching the HTTP library: %s", uv_strerror(rc));
    }
    (void)uv_timer_init(server->config.loop, &listener->timer); /* can't fail */
    listener->poll.data = listener;
    listener->timer.data = listener;
    listener->handles = 2;
    listener->next = server->listeners;
    server->listeners = listener;
    http_server_schedule(listener);
    return 0;
}

int http_server_listen_tcp(struct http_server *server, const char *address, uint16_t port, uint16_t *out_port,
                           struct error *err)
{
    const int on = 1, off = 0;
    struct sockaddr_storage storage;
    if (!socket_address_parse(address, port, &storage))
        return error_set(err, -EINVAL, "'%s' is not a numeric address to listen on", address);
    CLEANUP(fd_cleanup) int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_errno(err, "a socket for %s", address);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* without it a restart waits for TIME_WAIT */
    if (storage.ss_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    socklen_t length = socket_address_length(&storage);
    if (bind(fd, (struct sockaddr *)&storage, length) < 0 || listen(fd, HTTP_SERVER_BACKLOG) < 0)
        return error_errno(err, "listening on %s, port %u", address, port);
    length = sizeof storage;
    if (getsockname(fd, (struct sockaddr *)&storage, &length) < 0)
        return error_errno(err, "the port of %s", address);
    int rc = http_server_add(server, TAKE_FD(fd), false, err);
    if (rc == 0 && out_port != NULL)
        *out_port = socket_address_port(&storage);
    return rc;
}

int http_server_listen_unix(struct http_server *server, int fd, struct error *err)
{
    return http_server_add(server, fd, true, err);
}

/* The server */

static void http_server_on_sweep(uv_timer_t *timer)
{
    http_sweep_all(timer->data);
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
    server->handles = 1;
    *out_server = server;
    return 0;
}

struct http_server_stats http_server_stats(const struct http_server *server)
{
    return server->stats;
}

static void http_server_on_handle_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->data;
    if (--server->handles > 0)
        return;
    while (server->listeners != NULL) {
        struct http_listener *listener = server->listeners;
        server->listeners = listener->next;
        free(listener);
    }
    void (*on_closed)(void *context) = server->on_closed;
    void *context = server->closed_context;
    free(server);
    if (on_closed != NULL)
        on_closed(context);
}

static void http_server_close_handle(struct http_server *server, uv_handle_t *handle)
{
    handle->data = server;
    uv_close(handle, http_server_on_handle_closed);
}

static void http_server_end(struct http_listener *listener)
{
    for (struct http_connection *connection = listener->oldest; connection != NULL; connection = connection->next)
        if (connection->request != NULL)
            http_request_abandon(connection->request);
    (void)uv_poll_stop(&listener->poll); /* before its descriptor is closed */
    (void)MHD_run(listener->daemon);     /* takes up what was suspended: it could not be closed so */
    MHD_stop_daemon(listener->daemon);
    http_server_close_handle(listener->server, (uv_handle_t *)&listener->poll);
    http_server_close_handle(listener->server, (uv_handle_t *)&listener->timer);
}

void http_server_close(struct http_server *server, void (*on_closed)(void *context), void *context)
{
    if (server == NULL)
        return;
    server->is_closing = true;
    server->on_closed = on_closed;
    server->closed_context = context;
    for (struct http_listener *listener = server->listeners; listener != NULL; listener = listener->next)
        server->handles += listener->handles;
    for (struct http_listener *listener = server->listeners; listener != NULL; listener = listener->next)
        http_server_end(listener);
    http_server_close_handle(server, (uv_handle_t *)&server->sweep);
}
