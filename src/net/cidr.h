/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cidr: sets of addresses as people write them: "10.0.0.0/8,fd00::/8,192.168.1.7". Pure. Any thread.
 */
#ifndef NET_CIDR_H
#define NET_CIDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "util/error.h"

#define CIDR_RANGES_MAX 64

struct cidr_range {
    uint8_t bytes[16]; /* IPv4 as ::ffff:a.b.c.d */
    unsigned bits;     /* of them that count, 0 to 128 */
};

struct cidr {
    size_t count;
    struct cidr_range ranges[CIDR_RANGES_MAX];
};

/* -EINVAL names the part that makes no sense; bits beyond the mask, too, since that is a mistake; -E2BIG. */
MUST_CHECK int cidr_parse(const char *text, struct cidr *out_cidr, struct error *err);

/* Is `address` in one of the ranges? An IPv4 address and its form within IPv6 are the same. */
bool cidr_has(const struct cidr *cidr, const struct sockaddr_storage *address);

#endif
