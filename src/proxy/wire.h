/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire: one client of the UNIX socket: what it sends becomes a contributor, or a segment that was found.
 *
 * The first bytes tell which: a client of the JSON protocol, version 1 (values, each followed by a NUL), begins with
 * '{', one that passes a segment's descriptor with SEGMENT_HELLO_MAGIC. Whoever owns the socket hands in bytes and
 * descriptors as they come and closes the connection when told to. Nothing is ever sent back.
 *
 * A counter's values are increments and are summed here; a gauge's are replaced. What makes no sense ends the
 * connection with a reason; what it had counted until then stays. Loop thread only.
 */
#ifndef PROXY_WIRE_H
#define PROXY_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proxy/jobs.h"
#include "proxy/segments.h"
#include "util/error.h"

struct wire;

#define WIRE_MESSAGE_MAX_BYTES (64u << 10) /* of one JSON value */
#define WIRE_NAMES_MAX         10000       /* metrics of one connection */

/* A connection of `uid` from process `pid` (0: unknown), both as SO_PEERCRED gave them. NULL without memory. */
struct wire *wire_open(struct jobs *jobs, struct segments *segments, uint32_t uid, pid_t pid);

/*
 * Takes `bytes`, as they came; a value may be cut anywhere. `now_wall_ms` is when. Fails with the reason, after which
 * nothing more may be fed: -EPROTO (neither protocol), -EBADMSG (no JSON, or not of this protocol), -EMSGSIZE (no NUL
 * in WIRE_MESSAGE_MAX_BYTES), -ENOSPC (WIRE_NAMES_MAX), -ENOMEM.
 */
MUST_CHECK int wire_feed(struct wire *wire, const void *bytes, size_t length, int64_t now_wall_ms, struct error *err);

/* Takes a descriptor that came with the bytes that are fed next; a second one is closed. */
void wire_take_fd(struct wire *wire, int fd);

/* The peer has gone, or is to go: what it counted stays, its gauges go. NULL is fine. */
void wire_close(struct wire *wire, int64_t now_mono_ns, int64_t now_wall_ms);

#endif
