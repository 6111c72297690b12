/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer: which user has the other end of a TCP connection within this machine. By one exact question to the kernel
 * (NETLINK_SOCK_DIAG, some 4 us); /proc/net/tcp would take milliseconds. Any thread.
 *
 * What can't be told for certain is unknown: an end that has been closed (the kernel then says user 0), a listener that
 * the kernel shows for want of a match, addresses that are not both of the loopback. Whoever forwards connections
 * (ssh -L, a proxy, a browser) is himself the peer: see auth.h for what follows.
 */
#ifndef NET_PEER_H
#define NET_PEER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * The user of the socket at `peer` that is connected to `local`, our end. Ask right before it matters, not at accept.
 * -EADDRNOTAVAIL: not loopback; -ENOENT: not known for certain; or what the kernel says, -EPERM under seccomp.
 */
MUST_CHECK int peer_uid(const struct sockaddr_storage *local, const struct sockaddr_storage *peer, uid_t *out_uid,
                        struct error *err);

/* The rules, for an answer of the kernel as it came: pure. -EBADMSG: no whole answer. */
MUST_CHECK int peer_judge(const void *answer, size_t length, const struct sockaddr_storage *local,
                          const struct sockaddr_storage *peer, uid_t *out_uid, struct error *err);

#endif
