/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: does a proxy of this user answer at a UNIX socket? Never waits. Any thread.
 */
#ifndef RUN_CHECK_H
#define RUN_CHECK_H

#include "util/error.h"

/*
 * 0: one does. -ENOENT, -ECONNREFUSED: none; -EPERM: the socket is another user's, which programs don't trust;
 * -ENAMETOOLONG; what connect() says.
 */
MUST_CHECK int check_proxy(const char *socket_path, struct error *err);

#endif
