/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unix_socket: a listening UNIX socket at a path, which is never taken from a living program. Blocks on the file
 * system, shortly: paths are local. Any thread.
 */
#ifndef NET_UNIX_SOCKET_H
#define NET_UNIX_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

#include "util/error.h"

struct unix_socket {
    int fd;    /* listening, not blocking; -1: none */
    dev_t dev; /* of the file, by which it is known again */
    ino_t inode;
};

/*
 * Binds and listens; the file appears with mode 0600 and when it can be connected to. A socket that is there is
 * replaced only if nobody listens on it (ECONNREFUSED) and it is ours. `*out_socket` owns the descriptor.
 * -EADDRINUSE: somebody listens; -EEXIST: the path is something else than a socket; -EPERM: a dead socket of another
 * user; -ENAMETOOLONG: over 107 bytes, the kernel's limit; or what the file system says.
 */
MUST_CHECK int unix_socket_open(const char *path, struct unix_socket *out_socket, struct error *err);

/* Does somebody listen at `path`? 1, 0, or -errno when that can't be told. Doesn't wait. */
int unix_socket_is_live(const char *path);

/* Removes the file at `path` if it is still this socket's. */
void unix_socket_unlink(const struct unix_socket *of, const char *path);

#endif
