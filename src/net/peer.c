/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/time.h>

#include "net/socket_address.h"

enum {
    PEER_ANSWER_MAX_BYTES = 8192,
    PEER_ERRNO_MAX = 4095,     /* the kernel's MAX_ERRNO */
    PEER_SEQUENCE = 1,         /* a socket has one question */
    PEER_UID_UNMAPPED = 65534, /* the kernel's overflowuid unless somebody changed it: nobody in particular */
};

struct peer_question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

/* An IPv4 address within IPv6 is asked for as IPv4: its other end may be of either family. */
static struct sockaddr_storage peer_plain(const struct sockaddr_storage *address)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        return *address;
    struct sockaddr_storage plain = {0};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = v6->sin6_port};
    memcpy(&v4.sin_addr, v6->sin6_addr.s6_addr + 12, sizeof v4.sin_addr);
    memcpy(&plain, &v4, sizeof v4);
    return plain;
}

static void peer_put(const struct sockaddr_storage *address, __be32 out_bytes[4], __be16 *out_port)
{
    *out_port = htons(socket_address_port(address));
    if (address->ss_family == AF_INET)
        memcpy(out_bytes, &((const struct sockaddr_in *)address)->sin_addr, sizeof(struct in_addr));
    else
        memcpy(out_bytes, &((const struct sockaddr_in6 *)address)->sin6_addr, sizeof(struct in6_addr));
}

static bool peer_is(const struct sockaddr_storage *address, uint8_t family, const __be32 bytes[4], __be16 port)
{
    struct sockaddr_storage other = {0};
    if (family == AF_INET) {
        struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = port};
        memcpy(&v4.sin_addr, bytes, sizeof v4.sin_addr);
        memcpy(&other, &v4, sizeof v4);
    } else if (family == AF_INET6) {
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = port};
        memcpy(&v6.sin6_addr, bytes, sizeof v6.sin6_addr);
        memcpy(&other, &v6, sizeof v6);
    }
    return socket_address_equals(address, &other);
}

int peer_judge(const void *answer, size_t length, const struct sockaddr_storage *local,
               const struct sockaddr_storage *peer, uid_t *out_uid, struct error *err)
{
    struct nlmsghdr head;
    struct inet_diag_msg found;
    if (length < sizeof head)
        return error_set(err, -EBADMSG, "the kernel's answer about the peer is cut");
    memcpy(&head, answer, sizeof head);
    if (head.nlmsg_type == NLMSG_ERROR) {
        struct nlmsgerr failure;
        if (length < NLMSG_HDRLEN + sizeof failure)
            return error_set(err, -EBADMSG, "the kernel's answer about the peer is cut");
        memcpy(&failure, (const char *)answer + NLMSG_HDRLEN, sizeof failure);
        bool is_errno = failure.error < 0 && failure.error >= -PEER_ERRNO_MAX;
        errno = is_errno ? -failure.error : EBADMSG;
        return error_errno(err, "the kernel knows no such peer");
    }
    if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || head.nlmsg_len > length ||
        head.nlmsg_len < NLMSG_HDRLEN + sizeof found)
        return error_set(err, -EBADMSG, "the kernel's answer about the peer is of another kind");
    memcpy(&found, (const char *)answer + NLMSG_HDRLEN, sizeof found);

    if (found.idiag_state != TCP_ESTABLISHED || found.idiag_inode == 0)
        return error_set(err, -ENOENT, "the peer's socket is not open any more");
    if (!peer_is(peer, found.idiag_family, found.id.idiag_src, found.id.idiag_sport) ||
        !peer_is(local, found.idiag_family, found.id.idiag_dst, found.id.idiag_dport))
        return error_set(err, -ENOENT, "the kernel's answer is about another socket");
    if (found.idiag_uid == PEER_UID_UNMAPPED)
        return error_set(err, -ENOENT, "the peer's user has no name here");
    *out_uid = found.idiag_uid;
    return 0;
}

/* The answer's length, or -1 and errno. The kernel answers within the call that asks; the time-out is for what should
 * not be. */
static ssize_t peer_ask(const struct peer_question *question, char *answer, size_t size)
{
    const struct timeval patience = {.tv_usec = 100000};
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    CLEANUP(fd_cleanup) int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0)
        return -1;
    if (sendto(fd, question, sizeof *question, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0)
        return -1;
    return recv(fd, answer, size, 0);
}

int peer_uid(const struct sockaddr_storage *local, const struct sockaddr_storage *peer, uid_t *out_uid,
             struct error *err)
{
    if (!socket_address_is_loopback(local) || !socket_address_is_loopback(peer))
        return error_set(err, -EADDRNOTAVAIL, "the peer is not on this machine's loopback");
    struct sockaddr_storage from = peer_plain(peer), to = peer_plain(local);
    struct peer_question question = {
        .head = {.nlmsg_len = sizeof question,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST,
                 .nlmsg_seq = PEER_SEQUENCE},
        .body = {.sdiag_family = (uint8_t)from.ss_family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0U},
    };
    question.body.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
    question.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    peer_put(&from, question.body.id.idiag_src, &question.body.id.idiag_sport);
    peer_put(&to, question.body.id.idiag_dst, &question.body.id.idiag_dport);

    char answer[PEER_ANSWER_MAX_BYTES];
    ssize_t got = peer_ask(&question, answer, sizeof answer);
    if (got < 0)
        return error_errno(err, "asking the kernel about the peer");
    return peer_judge(answer, (size_t)got, local, peer, out_uid, err);
}
