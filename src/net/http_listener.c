/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accepts connections, and runs the library in the loop. Accepting is ours: out of descriptors the library would either
 * spin or accept nothing more until one of its own connections closes, which a stream may never do.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http_parts.h"
#include "net/socket_address.h"

enum {
    HTTP_LISTENER_POOL_BYTES = 16 << 10, /* of a connection, as long as it is open: head and the library's own */
    HTTP_LISTENER_BACKLOG = 1024,
    HTTP_LISTENER_ACCEPTS_MAX = 64, /* in one turn of the loop */
    HTTP_LISTENER_PAUSE_MS = 100,   /* when there are no descriptors */
    HTTP_LISTENER_SLACK = 64,       /* the library counts connections a little longer than we do */
};

/* The library */

static void http_listener_run(struct http_listener *listener);

static void http_listener_on_timer(uv_timer_t *timer)
{
    http_listener_run(timer->data);
}

static void http_listener_on_ready(uv_poll_t *poll, int status, int events)
{
    (void)status; /* an error shows in the run, too */
    (void)events;
    http_listener_run(poll->data);
}

static void http_listener_run(struct http_listener *listener)
{
    MHD_UNSIGNED_LONG_LONG wait_ms;
    if (listener->server->is_closing || listener->is_running)
        return;
    listener->is_running = true;
    (void)MHD_run(listener->daemon);
    listener->is_running = false;
    if (MHD_get_timeout(listener->daemon, &wait_ms) == MHD_YES)
        (void)uv_timer_start(&listener->timer, http_listener_on_timer, wait_ms, 0);
    else
        (void)uv_timer_stop(&listener->timer);
}

void net_http_schedule(struct http_listener *listener)
{
    if (!listener->server->is_closing)
        (void)uv_timer_start(&listener->timer, http_listener_on_timer, 0, 0);
}

/* Connections */

static void http_listener_on_connection(uv_poll_t *poll, int status, int events);

static void http_listener_watch(struct http_listener *listener)
{
    if (!listener->server->is_closing)
        (void)uv_poll_start(&listener->accept_poll, UV_READABLE, http_listener_on_connection);
}

static void http_listener_on_pause_over(uv_timer_t *timer)
{
    http_listener_watch(timer->data);
}

/* False: no more now. */
static bool http_listener_accept(struct http_listener *listener)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    if (listener->connection_count >= listener->server->config.connections_max) {
        listener->is_full = true; /* who waits in the kernel's queue costs nothing */
        (void)uv_poll_stop(&listener->accept_poll);
        return false;
    }
    int fd = accept4(listener->fd, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        (void)MHD_add_connection(listener->daemon, fd, (struct sockaddr *)&address,
                                 length); /* closes it, or keeps it */
        return true;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        /* The client stays in the queue, and the queue readable: without a pause this would spin. */
        listener->server->stats.accept_pauses_total++;
        (void)uv_poll_stop(&listener->accept_poll);
        (void)uv_timer_start(&listener->accept_pause, http_listener_on_pause_over, HTTP_LISTENER_PAUSE_MS, 0);
        return false;
    }
    return errno != EAGAIN; /* ECONNABORTED and the like are of that one client */
}

static void http_listener_on_connection(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct http_listener *listener = poll->data;
    for (int i = 0; i < HTTP_LISTENER_ACCEPTS_MAX && http_listener_accept(listener); i++)
        continue;
    net_http_schedule(listener);
}

void net_http_accept_again(struct http_listener *listener)
{
    if (!listener->is_full)
        return;
    listener->is_full = false;
    http_listener_watch(listener);
}

/* Listeners */

/* Leaves targets as they are: http_target decodes. */
static size_t http_listener_unescape(void *context, struct MHD_Connection *mhd, char *text)
{
    (void)context;
    (void)mhd;
    return strlen(text);
}

static struct MHD_Daemon *http_listener_daemon(struct http_listener *listener)
{
    const struct http_server_config *config = &listener->server->config;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET;
    return MHD_start_daemon(flags, 0, NULL, NULL, net_http_on_access, listener, MHD_OPTION_CONNECTION_LIMIT,
                            config->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)HTTP_LISTENER_POOL_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
                            MHD_OPTION_NOTIFY_CONNECTION, net_http_on_connection, listener, MHD_OPTION_NOTIFY_COMPLETED,
                            net_http_on_completed, listener, MHD_OPTION_URI_LOG_CALLBACK, net_http_on_line, listener,
                            MHD_OPTION_UNESCAPE_CALLBACK, http_listener_unescape, listener, MHD_OPTION_END);
}

static int http_listener_init_handles(struct http_listener *listener, struct error *err)
{
    uv_loop_t *loop = listener->server->config.loop;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    int rc = uv_poll_init(loop, &listener->poll, info->epoll_fd);
    if (rc < 0)
        return error_set(err, rc, "watching the HTTP library: %s", uv_strerror(rc));
    listener->poll.data = listener;
    rc = uv_poll_init(loop, &listener->accept_poll, listener->fd);
    if (rc < 0) {
        net_http_close_handle(listener->server, (uv_handle_t *)&listener->poll);
        return error_set(err, rc, "watching an HTTP socket: %s", uv_strerror(rc));
    }
    listener->accept_poll.data = listener;
    (void)uv_timer_init(loop, &listener->timer); /* can't fail */
    (void)uv_timer_init(loop, &listener->accept_pause);
    listener->timer.data = listener;
    listener->accept_pause.data = listener;
    return 0;
}

/* Takes `fd`. */
static int http_listener_add(struct http_server *server, int fd, bool is_unix, struct error *err)
{
    CLEANUP(fd_cleanup) int listen_fd = fd;
    struct http_listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        return error_set(err, -ENOMEM, "HTTP listener");
    *listener = (struct http_listener){.server = server, .fd = listen_fd, .is_unix = is_unix};
    listener->daemon = http_listener_daemon(listener);
    if (listener->daemon == NULL) {
        free(listener);
        return error_set(err, -EIO, "the HTTP library does not start: are there descriptors left?");
    }
    listener->next = server->listeners;
    server->listeners = listener;
    int rc = http_listener_init_handles(listener, err);
    if (rc < 0) { /* stays in the list, where its handle closes with the server's */
        MHD_stop_daemon(TAKE(listener->daemon));
        listener->fd = -1;
        return rc;
    }
    (void)TAKE_FD(listen_fd);
    (void)uv_poll_start(&listener->poll, UV_READABLE, http_listener_on_ready);
    http_listener_watch(listener);
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
    if (bind(fd, (struct sockaddr *)&storage, length) < 0 || listen(fd, HTTP_LISTENER_BACKLOG) < 0)
        return error_errno(err, "listening on %s, port %u", address, port);
    length = sizeof storage;
    if (getsockname(fd, (struct sockaddr *)&storage, &length) < 0)
        return error_errno(err, "the port of %s", address);
    int rc = http_listener_add(server, TAKE_FD(fd), false, err);
    if (rc == 0 && out_port != NULL)
        *out_port = socket_address_port(&storage);
    return rc;
}

int http_server_listen_unix(struct http_server *server, int fd, struct error *err)
{
    return http_listener_add(server, fd, true, err);
}

void net_http_end_listener(struct http_listener *listener)
{
    struct http_server *server = listener->server;
    if (listener->daemon == NULL)
        return; /* it never began */
    for (struct http_connection *connection = listener->oldest; connection != NULL; connection = connection->next)
        if (connection->request != NULL)
            net_http_abandon(connection->request);
    net_http_close_handle(server, (uv_handle_t *)&listener->accept_poll);
    net_http_close_handle(server, (uv_handle_t *)&listener->accept_pause);
    net_http_close_handle(server, (uv_handle_t *)&listener->poll); /* before its descriptor is closed */
    net_http_close_handle(server, (uv_handle_t *)&listener->timer);
    (void)MHD_run(listener->daemon); /* takes up what was suspended: it could not be closed so */
    MHD_stop_daemon(listener->daemon);
    close(listener->fd);
}

void net_http_free_listener(struct http_server *server)
{
    struct http_listener *listener = server->listeners;
    server->listeners = listener->next;
    free(listener);
}
