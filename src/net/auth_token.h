/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth_token: the secret by which a user's programs know each other, in a file that only the user can read.
 *
 * Blocks on the file system: before the loop runs. Any thread.
 */
#ifndef NET_AUTH_TOKEN_H
#define NET_AUTH_TOKEN_H

#include <stddef.h>

#include "util/error.h"

#define AUTH_TOKEN_MIN_BYTES 16
#define AUTH_TOKEN_MAX_BYTES 256

struct auth_token {
    char text[AUTH_TOKEN_MAX_BYTES + 1]; /* printable ASCII without blanks; the key of MACs, too */
    size_t length;
};

/*
 * Reads the token; one newline at the end is fine. -ENOENT; -EPERM: another user's file (but root's), or others may
 * read or write it; -EINVAL: no regular file, too short, too long, other characters.
 */
MUST_CHECK int auth_token_read(const char *path, struct auth_token *out_token, struct error *err);

/*
 * The same; a file that is not there is made, with 256 random bits. Of several that make it at once all get the same
 * token.
 */
MUST_CHECK int auth_token_read_or_create(const char *path, struct auth_token *out_token, struct error *err);

#endif
