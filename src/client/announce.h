/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * announce: tells a proxy that runs already that a segment is here, and passes its descriptor on.
 *
 * A proxy finds segments in /dev/shm by itself; this serves programs whose /dev/shm is private (containers), whose
 * segment is a memfd, and makes a proxy see a new process at once.
 */
#ifndef CLIENT_ANNOUNCE_H
#define CLIENT_ANNOUNCE_H

#include "client/store.h"

/* Never waits and never fails: without a proxy, or with one of another user, nothing happens. */
void announce_segment(struct store *store);

#endif
