/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth_nonces: which nonces were used lately, so that a request that somebody has listened to can't be sent again.
 *
 * A request is accepted if its time is at most `window_ms` from ours, and its nonce is not known; a nonce is kept
 * until its request would be too old. When there is no room nothing more is accepted: forgetting one would allow it
 * again. Put only what carries a valid mac: then only who has the key can fill it. Pure. Loop thread only.
 */
#ifndef NET_AUTH_NONCES_H
#define NET_AUTH_NONCES_H

#include <stddef.h>
#include <stdint.h>

#include "net/auth_mac.h"
#include "util/error.h"

struct auth_nonces;

#define AUTH_NONCES_WINDOW_MS 60000
#define AUTH_NONCES_MAX       65536

/* NULL without memory. */
struct auth_nonces *auth_nonces_new(int64_t window_ms, size_t nonces_max);
void auth_nonces_free(struct auth_nonces *nonces);
DEFINE_CLEANUP(auth_nonces, auth_nonces_free);

/*
 * Is a request of `time_wall_ms` with `nonce` new? Then it is not any more. -EACCES: its time is too far from ours, or
 * it was here before; -ENOSPC: too many within the window; -ENOMEM. `now_wall_ms` may jump; a jump back accepts nothing
 * twice.
 */
MUST_CHECK int auth_nonces_use(struct auth_nonces *nonces, const uint8_t nonce[AUTH_MAC_NONCE_BYTES],
                               int64_t time_wall_ms, int64_t now_wall_ms, struct error *err);

/* Kept now. */
size_t auth_nonces_count(const struct auth_nonces *nonces);

#endif
