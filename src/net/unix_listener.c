/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/unix_listener.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5; headers here may be older */
#endif

enum {
    UNIX_LISTENER_FDS_MAX = 16,     /* that one message is looked at for; the kernel closes the rest */
    UNIX_LISTENER_ACCEPTS_MAX = 64, /* in one turn of the loop */
    UNIX_LISTENER_PAUSE_MS = 100,
};

struct unix_connection {
    struct unix_listener *listener;
    uv_poll_t poll;
    int fd;
    struct unix_listener_peer peer;
    void *of;
    bool is_ended;
    struct unix_connection *previous, *next;
};

struct unix_listener {
    struct unix_listener_config config;
    int fd;
    uv_poll_t poll;
    uv_timer_t pause;
    struct unix_connection *connections;
    struct unix_listener_stats stats;
    unsigned handles;
    void (*on_closed)(void *context);
    void *closed_context;
    char bytes[UNIX_LISTENER_READ_BYTES]; /* of one read: nothing lives in it over a callback */
};

static void unix_listener_release(struct unix_listener *listener)
{
    if (--listener->handles > 0)
        return;
    void (*on_closed)(void *context) = listener->on_closed;
    void *context = listener->closed_context;
    free(listener);
    if (on_closed != NULL)
        on_closed(context);
}

static void unix_listener_connection_closed(uv_handle_t *handle)
{
    struct unix_connection *connection = handle->data;
    struct unix_listener *listener = connection->listener;
    free(connection);
    unix_listener_release(listener);
}

static void unix_listener_end(struct unix_connection *connection, enum unix_listener_end end)
{
    struct unix_listener *listener = connection->listener;
    if (connection->is_ended)
        return;
    connection->is_ended = true;
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        listener->connections = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    listener->stats.connections--;
    listener->config.on_end(connection->of, end);
    uv_close((uv_handle_t *)&connection->poll, unix_listener_connection_closed);
    close(connection->fd);
    if (connection->peer.pidfd >= 0)
        close(connection->peer.pidfd);
}

/* The first descriptor of the message; the others are closed. -1: none. */
static int unix_listener_take_fd(struct unix_listener *listener, struct msghdr *message)
{
    int taken = -1;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
            if (taken < 0) {
                taken = fd;
                continue;
            }
            listener->stats.extra_fds_total++;
            close(fd);
        }
    }
    return taken;
}

static void unix_listener_on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status; /* the read tells */
    (void)events;
    struct unix_connection *connection = poll->data;
    struct unix_listener *listener = connection->listener;
    union {
        struct cmsghdr head; /* aligns */
        char bytes[CMSG_SPACE(UNIX_LISTENER_FDS_MAX * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = listener->bytes, .iov_len = sizeof listener->bytes};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(connection->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) {
        if (errno != EAGAIN && errno != EINTR)
            unix_listener_end(connection, errno == ECONNRESET ? UNIX_LISTENER_END_PEER : UNIX_LISTENER_END_ERROR);
        return;
    }
    int fd = unix_listener_take_fd(listener, &message);
    if (got == 0) {
        if (fd >= 0)
            close(fd);
        unix_listener_end(connection, UNIX_LISTENER_END_PEER);
        return;
    }
    if (listener->config.on_bytes(connection->of, listener->bytes, (size_t)got, fd) != 0)
        unix_listener_end(connection, UNIX_LISTENER_END_USER);
}

/* SO_PEERPIDFD can't be the descriptor of another process that got the pid since; pidfd_open() could. */
static int unix_listener_pidfd(int fd, pid_t pid)
{
    int pidfd = -1;
    socklen_t length = sizeof pidfd;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0)
        return pidfd;
    return pid > 0 && errno == ENOPROTOOPT ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

static void unix_listener_identify(int fd, struct unix_listener_peer *out_peer)
{
    struct ucred credentials = {.uid = (uid_t)-1, .gid = (gid_t)-1};
    socklen_t length = sizeof credentials;
    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length); /* stays unknown when it fails */
    *out_peer = (struct unix_listener_peer){.uid = credentials.uid, .gid = credentials.gid, .pid = credentials.pid};
    out_peer->pidfd = unix_listener_pidfd(fd, credentials.pid);
}

/* Descriptors are given out lowest first: one so high means that so many are in use. */
static bool unix_listener_is_scarce(const struct unix_listener *listener, int fd)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return false;
    return (rlim_t)fd + listener->config.descriptors_reserve >= limit.rlim_cur;
}

/* Takes `fd`. False: refused. */
static bool unix_listener_add(struct unix_listener *listener, int fd)
{
    CLEANUP(fd_cleanup) int client_fd = fd;
    if (listener->stats.connections >= listener->config.connections_max || unix_listener_is_scarce(listener, fd))
        return false;
    struct unix_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        return false;
    *connection = (struct unix_connection){.listener = listener, .fd = client_fd};
    unix_listener_identify(client_fd, &connection->peer);
    bool is_good = uv_poll_init(listener->config.loop, &connection->poll, client_fd) == 0;
    bool is_open = is_good && listener->config.on_open(listener->config.context, &connection->peer, connection,
                                                       &connection->of) == 0;
    if (is_good) {
        connection->poll.data = connection;
        listener->handles++;
    }
    if (!is_open) {
        if (connection->peer.pidfd >= 0)
            close(connection->peer.pidfd);
        if (is_good)
            uv_close((uv_handle_t *)&connection->poll, unix_listener_connection_closed);
        else
            free(connection);
        return false;
    }
    connection->next = listener->connections;
    if (listener->connections != NULL)
        listener->connections->previous = connection;
    listener->connections = connection;
    listener->stats.connections++;
    listener->stats.connections_total++;
    (void)TAKE_FD(client_fd);
    (void)uv_poll_start(&connection->poll, UV_READABLE, unix_listener_on_readable);
    return true;
}

static void unix_listener_on_connection(uv_poll_t *poll, int status, int events);

static void unix_listener_on_pause_over(uv_timer_t *timer)
{
    struct unix_listener *listener = timer->data;
    (void)uv_poll_start(&listener->poll, UV_READABLE, unix_listener_on_connection);
}

static void unix_listener_on_connection(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct unix_listener *listener = poll->data;
    for (int i = 0; i < UNIX_LISTENER_ACCEPTS_MAX; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            if (!unix_listener_add(listener, fd))
                listener->stats.refused_total++;
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* The client stays in the queue, and the queue readable: without a pause this would spin. */
            listener->stats.accept_pauses_total++;
            (void)uv_poll_stop(&listener->poll);
            (void)uv_timer_start(&listener->pause, unix_listener_on_pause_over, UNIX_LISTENER_PAUSE_MS, 0);
        }
        return;
    }
}

int unix_listener_new(const struct unix_listener_config *config, int fd, struct unix_listener **out_listener,
                      struct error *err)
{
    CLEANUP(fd_cleanup) int listen_fd = fd;
    struct unix_listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        return error_set(err, -ENOMEM, "UNIX listener");
    listener->config = *config;
    if (listener->config.connections_max == 0)
        listener->config.connections_max = UNIX_LISTENER_CONNECTIONS_MAX_DEFAULT;
    if (listener->config.descriptors_reserve == 0)
        listener->config.descriptors_reserve = UNIX_LISTENER_RESERVE_DEFAULT;
    int rc = uv_poll_init(config->loop, &listener->poll, listen_fd);
    if (rc < 0) {
        free(listener);
        return error_set(err, rc, "UNIX listener: %s", uv_strerror(rc));
    }
    (void)uv_timer_init(config->loop, &listener->pause); /* can't fail */
    listener->fd = TAKE_FD(listen_fd);
    listener->poll.data = listener;
    listener->pause.data = listener;
    listener->handles = 2;
    (void)uv_poll_start(&listener->poll, UV_READABLE, unix_listener_on_connection);
    *out_listener = listener;
    return 0;
}

void unix_listener_cut(struct unix_connection *connection)
{
    unix_listener_end(connection, UNIX_LISTENER_END_USER);
}

struct unix_listener_stats unix_listener_stats(const struct unix_listener *listener)
{
    return listener->stats;
}

static void unix_listener_handle_closed(uv_handle_t *handle)
{
    unix_listener_release(handle->data);
}

void unix_listener_close(struct unix_listener *listener, void (*on_closed)(void *context), void *context)
{
    if (listener == NULL)
        return;
    listener->on_closed = on_closed;
    listener->closed_context = context;
    while (listener->connections != NULL)
        unix_listener_end(listener->connections, UNIX_LISTENER_END_CLOSING);
    uv_close((uv_handle_t *)&listener->poll, unix_listener_handle_closed);
    uv_close((uv_handle_t *)&listener->pause, unix_listener_handle_closed);
    close(listener->fd);
}
