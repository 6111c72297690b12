/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify: tells systemd, or whoever set NOTIFY_SOCKET, how a daemon fares (sd_notify(3)'s protocol: one datagram of
 * lines "READY=1", "STATUS=words"). Never waits. Any thread.
 */
#ifndef UTIL_NOTIFY_H
#define UTIL_NOTIFY_H

#include "util/error.h"

/* Nothing to tell, and 0, when `socket_path` is NULL. A path, or '@' and a name in the abstract name space. */
int notify_send(const char *socket_path, const char *text, struct error *err);

#endif
