/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/check.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/cleanup.h"

int check_proxy(const char *socket_path, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(socket_path) >= sizeof address.sun_path)
        return error_set(err, -ENAMETOOLONG, "the socket's path '%s' has more than %zu bytes, the kernel's limit",
                         socket_path, sizeof address.sun_path - 1);
    memcpy(address.sun_path, socket_path, strlen(socket_path));
    CLEANUP(fd_cleanup) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_errno(err, "making a socket");
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
        return error_errno(err, "'%s'", socket_path);
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
        return error_errno(err, "'%s'", socket_path);
    if (peer.uid != geteuid() && peer.uid != 0)
        return error_set(err, -EPERM, "'%s' is user %u's: programs of this user don't trust it", socket_path,
                         (unsigned)peer.uid);
    return 0;
}
