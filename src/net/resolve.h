/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resolve: names to addresses without ever making the loop wait.
 *
 * Look-ups run on libuv's pool, at most RESOLVE_IN_FLIGHT_MAX at once, since a dead name server holds a thread for
 * long; whoever waits has a deadline of his own. Answers are kept, failures as well. Loop thread only.
 */
#ifndef NET_RESOLVE_H
#define NET_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <uv.h>

#include "util/error.h"

struct resolve;
struct resolve_query;

#define RESOLVE_IN_FLIGHT_MAX 2
#define RESOLVE_NAMES_MAX     4096 /* known or asked for at a time */
#define RESOLVE_KEEP_MS       60000
#define RESOLVE_KEEP_NOT_MS   30000 /* a failure */
#define RESOLVE_ADDRESSES_MAX 4

struct resolve_addresses {
    size_t count;
    struct sockaddr_storage at[RESOLVE_ADDRESSES_MAX]; /* [count], port 0, in the order of getaddrinfo() */
};

/* `loop` is borrowed. NULL without memory. */
struct resolve *resolve_new(uv_loop_t *loop);

/*
 * All queries are cancelled. Look-ups that a name server keeps are left to themselves: memory goes when they return, if
 * the loop still runs then. Returns how many there are: if any, the process must end by _exit(), since libuv waits for
 * its threads at exit(). NULL is fine.
 */
unsigned resolve_close(struct resolve *resolve);

/* 1: an address as text, or a name that is known; 0: ask with resolve_start(). Never waits. */
int resolve_known(struct resolve *resolve, const char *host, struct resolve_addresses *out_addresses);

/*
 * Asks for a name. `on_done` comes once, from the loop: with addresses, or with NULL and why. `*out_query` is borrowed
 * until then. -EINVAL: no name (RFC 1123, at most 253 bytes); -EAGAIN: RESOLVE_NAMES_MAX are being looked up; -ENOMEM.
 */
typedef void resolve_done(void *context, const struct resolve_addresses *addresses, const struct error *err);
MUST_CHECK int resolve_start(struct resolve *resolve, const char *host, unsigned timeout_ms, resolve_done *on_done,
                             void *context, struct resolve_query **out_query, struct error *err);

/* `on_done` won't come. NULL is fine. */
void resolve_cancel(struct resolve_query *query);

#endif
