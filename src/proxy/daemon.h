/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon: the metric proxy as a process: sockets, HTTP, signals, and everything that answers around proxy.h.
 *
 * Starts in this order: HTTP port, state, UNIX socket; so a second proxy of this user harms nothing of the first. Ends
 * in the opposite one. Loop thread only.
 */
#ifndef PROXY_DAEMON_H
#define PROXY_DAEMON_H

#include "proxy/settings.h"
#include "util/error.h"

/*
 * Runs until SIGTERM or SIGINT. Returns 0 after a graceful end; else why it could not begin: -EADDRINUSE (a live proxy
 * of this user, or the port), -ENAMETOOLONG and the like (the socket's path), -EACCES and the like (the prefix). Ends
 * the process itself, with _exit(), when a thread hangs in a name server or a file system.
 */
MUST_CHECK int daemon_run(const struct settings *settings, struct error *err);

#endif
