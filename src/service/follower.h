/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * follower: reads a file that grows, on a thread of its own, since the file may lie on a file system that stops to
 * answer. Its user gets what has been read when he asks, and never waits.
 *
 * What a line means is the reader's business (omnistat.h); this one knows where the file ends now, when it is another
 * one or begins anew, and what to say about it, once. Loop thread.
 */
#ifndef SERVICE_FOLLOWER_H
#define SERVICE_FOLLOWER_H

#include <stdbool.h>
#include <stdint.h>

#include "service/omnistat.h"
#include "util/buf.h"
#include "util/error.h"

struct follower;

/*
 * Follows the file `path` (copied) from its beginning. Takes `omnistat`, even on failure. What that one borrows must
 * stay until follower_close() returns. -ENOMEM, -EAGAIN (no thread).
 */
MUST_CHECK int follower_open(const char *path, struct omnistat *omnistat, struct follower **out_follower,
                             struct error *err);

/* Moves the events that are there into `out`, returns how many, and asks for more. */
uint64_t follower_take(struct follower *follower, struct buf *out);

/*
 * The same, but waits until what was asked for has been read, or until `deadline_mono_ns`. `*out_has_more`: the end of
 * the file was not reached, and there is time left.
 */
uint64_t follower_drain(struct follower *follower, int64_t deadline_mono_ns, struct buf *out, bool *out_has_more);

/* Ends the thread. One that hangs is left behind with all that it uses. Accepts NULL. */
void follower_close(struct follower *follower);

#endif
