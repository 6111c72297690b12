/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ports: who listens on a TCP port of this machine. Reads /proc/net/tcp and tcp6: milliseconds, for the start only.
 */
#ifndef PROXY_PORTS_H
#define PROXY_PORTS_H

#include <stdint.h>
#include <sys/types.h>

#include "util/cursor.h"
#include "util/error.h"

/* The user of the socket that listens there; -ENOENT: none that can be seen. */
MUST_CHECK int ports_owner(uint16_t port, uid_t *out_uid, struct error *err);

/* The same of one of those files: pure. */
MUST_CHECK int ports_find(struct cursor text, uint16_t port, uid_t *out_uid);

#endif
