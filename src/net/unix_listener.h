/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unix_listener: clients of a UNIX stream socket: accepts them, knows who they are, hands on what they send.
 *
 * Owns the connections and their descriptors. Keeps nothing of what was read: what the user does not want to keep, the
 * kernel keeps, up to the sender's buffer. Nothing is ever sent. Loop thread only.
 */
#ifndef NET_UNIX_LISTENER_H
#define NET_UNIX_LISTENER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "util/error.h"

struct unix_listener;
struct unix_connection;

#define UNIX_LISTENER_CONNECTIONS_MAX_DEFAULT 65536
#define UNIX_LISTENER_RESERVE_DEFAULT         64          /* descriptors that clients can't have */
#define UNIX_LISTENER_READ_BYTES              (64u << 10) /* at a time, of one client; then the others have their turn */

/* As the kernel says, at the connection. */
struct unix_listener_peer {
    uid_t uid;
    gid_t gid;
    pid_t pid; /* 0: in a pid name space that we don't see */
    int pidfd; /* of that process, borrowed for the connection's life; -1: unknown */
};

enum unix_listener_end {
    UNIX_LISTENER_END_PEER,    /* it closed, or died */
    UNIX_LISTENER_END_USER,    /* on_bytes or unix_listener_cut() said so */
    UNIX_LISTENER_END_ERROR,   /* reading failed */
    UNIX_LISTENER_END_CLOSING, /* unix_listener_close() */
};

/* Fields of 0 take their defaults. */
struct unix_listener_config {
    uv_loop_t *loop; /* borrowed */
    size_t connections_max;
    unsigned descriptors_reserve;
    /* A client; `*out_of` is handed to the other two. Not 0: refused, and no on_end follows. */
    int (*on_open)(void *context, const struct unix_listener_peer *peer, struct unix_connection *connection,
                   void **out_of);
    /* `length` bytes, at least 1, and `fd` (taken; close-on-exec) or -1. Not 0: the connection is closed. */
    int (*on_bytes)(void *of, const void *bytes, size_t length, int fd);
    void (*on_end)(void *of, enum unix_listener_end end); /* always once */
    void *context;
};

struct unix_listener_stats {
    size_t connections; /* now */
    uint64_t connections_total;
    uint64_t refused_total;   /* over the limit, out of descriptors, or by on_open */
    uint64_t extra_fds_total; /* descriptors that came beside the one that is allowed */
    uint64_t accept_pauses_total;
};

/* Accepts on `fd`, a listening socket that is not blocking (unix_socket.h); takes it, also on failure. */
MUST_CHECK int unix_listener_new(const struct unix_listener_config *config, int fd, struct unix_listener **out_listener,
                                 struct error *err);

/* Ends a connection from outside of its own callbacks. */
void unix_listener_cut(struct unix_connection *connection);

/* All since the listener was made. */
struct unix_listener_stats unix_listener_stats(const struct unix_listener *listener);

/* Ends all; `on_closed` (may be NULL) comes from the loop when all is freed. NULL `listener` is fine: it doesn't. */
void unix_listener_close(struct unix_listener *listener, void (*on_closed)(void *context), void *context);

#endif
