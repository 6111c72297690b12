/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/announce.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "client/sys.h"
#include "client/text.h"

/* Where the proxy listens: PROXY_PATH, else the default of this user. False when it doesn't fit a socket's name. */
static bool announce_address(struct sockaddr_un *address)
{
    const char *path = secure_getenv("PROXY_PATH");
    struct text text = text_in(address->sun_path, sizeof address->sun_path - 1);
    if (path != NULL && path[0] != '\0') {
        text_add(&text, path);
    } else {
        text_add(&text, "/tmp/metric-proxy-");
        text_add_u64(&text, (uint64_t)geteuid());
        text_add(&text, ".socket");
    }
    address->sun_family = AF_UNIX;
    (void)text_end(&text);
    return !text.is_cut;
}

/* Is the process behind the socket ours, or the site's? Anybody can put a socket into /tmp. */
static bool announce_is_trusted(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

static void announce_send(int fd, int segment_fd)
{
    struct segment_hello hello = {.magic = SEGMENT_HELLO_MAGIC, .version = SEGMENT_VERSION};
    struct iovec part = {.iov_base = &hello, .iov_len = sizeof hello};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &segment_fd, sizeof segment_fd);
    /* A full queue or a proxy that is just ending loses the greeting; the file is found all the same. */
    (void)sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void announce_segment(struct store *store)
{
    int kept_errno = errno;
    struct sockaddr_un address = {0};
    int segment_fd = store_descriptor(store);
    int fd = segment_fd < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && announce_address(&address) && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
        announce_is_trusted(fd))
        announce_send(fd, segment_fd);
    /*
     * Closed at once: the proxy follows the processes by pidfd, a forked child would keep the socket open, and a
     * program that closes all descriptors would close it for us anyway.
     */
    sys_close(fd);
    errno = kept_errno;
}
