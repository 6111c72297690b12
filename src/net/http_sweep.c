/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's timeouts are for inactivity, which a byte now and then defeats. Here each phase of a connection has an
 * end that no byte moves. Connections past it are shut down, which the library then notices as if the peer had gone.
 */
#include <poll.h>
#include <sys/socket.h>

#include "net/http_parts.h"

/* An answer of so many bytes has the time of one request; a longer one as much more: 17 kB/s with 60 s. */
#define HTTP_SWEEP_BYTES_PER_TIMEOUT (1u << 20)

static int64_t http_sweep_now_ms(const struct http_server *server)
{
    return (int64_t)uv_now(server->config.loop);
}

static int64_t http_sweep_sending_ms(const struct http_connection *connection)
{
    const struct http_request *request = connection->request;
    int64_t timeout_ms = connection->listener->server->config.request_timeout_ms;
    uint64_t shares = request != NULL ? request->answer_bytes / HTTP_SWEEP_BYTES_PER_TIMEOUT : 0;
    return timeout_ms + timeout_ms * (int64_t)shares;
}

void net_http_enter(struct http_connection *connection, enum http_phase phase)
{
    const struct http_server *server = connection->listener->server;
    int64_t now_ms = http_sweep_now_ms(server);
    connection->phase = phase;
    switch (phase) {
    case HTTP_PHASE_IDLE:
        connection->deadline_ms =
            now_ms + (connection->has_served ? server->config.idle_timeout_ms : server->config.header_timeout_ms);
        break;
    case HTTP_PHASE_HEAD:
        if (connection->has_served) /* else since the connection was opened */
            connection->deadline_ms = now_ms + server->config.header_timeout_ms;
        break;
    case HTTP_PHASE_BODY:
        connection->deadline_ms = now_ms + server->config.request_timeout_ms;
        break;
    case HTTP_PHASE_HELD:
        connection->deadline_ms = HTTP_PARTS_NEVER; /* the handler's own deadline holds */
        break;
    case HTTP_PHASE_SENDING:
        connection->deadline_ms = now_ms + http_sweep_sending_ms(connection);
        break;
    }
}

static void http_sweep_shut(struct http_connection *connection)
{
    connection->is_shut = true;
    (void)shutdown(connection->fd, SHUT_RDWR); /* fails when the peer has gone, which is as good */
}

/* The library doesn't watch a connection that it has suspended. */
static bool http_sweep_has_left(const struct http_connection *connection)
{
    struct pollfd ask = {.fd = connection->fd, .events = POLLRDHUP};
    return poll(&ask, 1, 0) > 0 && (ask.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static void http_sweep_listener(struct http_listener *listener)
{
    struct http_server *server = listener->server;
    int64_t now_ms = http_sweep_now_ms(server);
    for (struct http_connection *connection = listener->oldest; connection != NULL; connection = connection->next) {
        if (connection->is_shut)
            continue;
        if (connection->phase == HTTP_PHASE_HELD) {
            if (connection->request != NULL && http_sweep_has_left(connection))
                net_http_abandon(connection->request);
        } else if (now_ms >= connection->deadline_ms) {
            if (connection->phase != HTTP_PHASE_IDLE || !connection->has_served)
                server->stats.timed_out_total++;
            http_sweep_shut(connection);
        }
    }
}

void net_http_sweep(struct http_server *server)
{
    for (struct http_listener *listener = server->listeners; listener != NULL; listener = listener->next)
        http_sweep_listener(listener);
}

void net_http_make_room(struct http_listener *listener)
{
    for (struct http_connection *connection = listener->oldest; connection != NULL; connection = connection->next) {
        bool is_idle = connection->phase == HTTP_PHASE_IDLE || connection->phase == HTTP_PHASE_HEAD;
        if (!is_idle || connection->is_shut || connection->next == NULL)
            continue;
        listener->server->stats.evicted_total++;
        http_sweep_shut(connection);
        return;
    }
}
