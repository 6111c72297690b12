/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * beacon: how programs of a user find the metric proxy of this node: the path of its UNIX socket, and a small file
 * beside it that tells the rest.
 *
 * The file is "<socket>.beacon", mode 0644, lines of key=value, so that a shell script can read it:
 *
 *     pid=4711
 *     address=127.0.0.1:1338
 *     http_socket=/tmp/metric-proxy-1000.socket.http
 *     token_file=/scratch/ann/.proxyprofiles/root.token
 *
 * Keys that a reader doesn't know are passed over; what is missing is empty. It may outlive a proxy that was killed:
 * whoever reads it still has to ask. Blocks on local files. Any thread.
 */
#ifndef UTIL_BEACON_H
#define UTIL_BEACON_H

#include <stdint.h>
#include <sys/types.h>

#include "util/buf.h"
#include "util/error.h"

#define BEACON_TEXT_MAX_BYTES 4096
#define BEACON_FIELD_BYTES    1024

struct beacon {
    pid_t pid;
    char address[BEACON_FIELD_BYTES];     /* of its HTTP, "host:port" to connect to */
    char http_socket[BEACON_FIELD_BYTES]; /* the UNIX socket of the same interface */
    char token_file[BEACON_FIELD_BYTES];
};

/* Appends the path of the proxy's UNIX socket: PROXY_PATH, else /tmp/metric-proxy-<uid>.socket. */
void beacon_socket_path(struct buf *out);

/* Writes it for the proxy at `socket_path`. -EINVAL: a field with a newline, named in `err`; file_replace()'s. */
MUST_CHECK int beacon_write(const char *socket_path, const struct beacon *beacon, struct error *err);

/*
 * Reads what the proxy at `socket_path` wrote. -ENOENT: none; -EPERM: the file is neither ours nor root's, and isn't to
 * be trusted; -EINVAL: it is no beacon; -E2BIG; open()'s.
 */
MUST_CHECK int beacon_read(const char *socket_path, struct beacon *out_beacon, struct error *err);

/* Removes it, if there is one. */
void beacon_remove(const char *socket_path);

#endif
