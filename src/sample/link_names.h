/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_names: notices that a network interface's name has come to mean another interface.
 *
 * /proc/net/dev knows names alone: where two interfaces change names, the counters of one seem to continue the other's.
 * The kernel tells each change to whoever listens (rtnetlink(7), RTMGRP_LINK); listening never
 * waits for a lock that a driver may hold, and a look costs a system call. It is about the network name space that it
 * was opened in. One thread at a time.
 */
#ifndef SAMPLE_LINK_NAMES_H
#define SAMPLE_LINK_NAMES_H

#include <stdbool.h>

#include "util/cleanup.h"
#include "util/error.h"

struct link_names;

/*
 * Listens from now on; who has which name now is read below `sys_path`, borrowed for the life of it. Returns owned
 * through `*out_names`, freed by link_names_free(). Fails where netlink sockets are not allowed, and with -ENOMEM.
 */
MUST_CHECK int link_names_new(const char *sys_path, struct link_names **out_names, struct error *err);
void link_names_free(struct link_names *names);
DEFINE_CLEANUP(link_names, link_names_free);

/*
 * Calls `on_moved` for each name that means another interface than at the last look: in the look that finds it, and in
 * the next once more, as what was read shortly before a look may be of either interface.
 */
void link_names_look(struct link_names *names, void (*on_moved)(void *context, const char *name), void *context);

/* Has the last look found something, so that there must be another? */
bool link_names_is_moving(const struct link_names *names);

#endif
