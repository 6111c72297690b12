/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/notify.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int notify_send(const char *socket_path, const char *text, struct error *err)
{
    if (socket_path == NULL)
        return 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(socket_path);
    bool is_abstract = socket_path[0] == '@';
    if ((socket_path[0] != '/' && !is_abstract) || length < 2 || length >= sizeof address.sun_path)
        return error_set(err, -EINVAL, "NOTIFY_SOCKET='%s' is neither a path nor an abstract name", socket_path);
    memcpy(address.sun_path, socket_path, length);
    if (is_abstract)
        address.sun_path[0] = '\0';

    CLEANUP(fd_cleanup) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_errno(err, "making a socket for NOTIFY_SOCKET");
    socklen_t address_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&address, address_length) < 0)
        return error_errno(err, "writing to NOTIFY_SOCKET '%s'", socket_path);
    return 0;
}
