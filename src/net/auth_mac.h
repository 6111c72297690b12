/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth_mac: proof that a request comes from somebody who has the key, without sending the key.
 *
 *     X-Cicada-Auth: v1 <time> <nonce> <mac>
 *
 * time: unix milliseconds, decimal. nonce: 32 hexadecimal digits, never used before. mac: 64 hexadecimal digits:
 * HMAC-SHA256, under the key, over six lines, each ended by a newline:
 *
 *     v1
 *     POST                            the method
 *     /join?to=n7:1337                the target as sent: path and query, nothing decoded
 *     e3b0c44298fc1c14…               SHA-256 of the body, hexadecimal, also when it is empty
 *     1764572700000                   time, as in the header
 *     00112233445566778899aabbccddeeff
 *
 * Pure but for auth_mac_sign()'s nonce. Any thread.
 */
#ifndef NET_AUTH_MAC_H
#define NET_AUTH_MAC_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

#define AUTH_MAC_HEADER           "X-Cicada-Auth"
#define AUTH_MAC_NONCE_BYTES      16
#define AUTH_MAC_BYTES            32
#define AUTH_MAC_HEADER_MAX_BYTES 160 /* the value, with its NUL */

/* What is signed. */
struct auth_mac_request {
    const char *method;
    const char *target;
    const void *body;
    size_t body_length;
};

struct auth_mac {
    int64_t time_wall_ms;
    uint8_t nonce[AUTH_MAC_NONCE_BYTES];
    uint8_t mac[AUTH_MAC_BYTES];
};

/* The header's value for `request`, with a new nonce. -EIO: no random bytes, or libcrypto fails. */
MUST_CHECK int auth_mac_sign(const void *key, size_t key_length, const struct auth_mac_request *request,
                             int64_t now_wall_ms, char out_value[AUTH_MAC_HEADER_MAX_BYTES], struct error *err);

/* Reads a header's value. -EBADMSG: not of this form, to the letter. */
MUST_CHECK int auth_mac_parse(const char *value, struct auth_mac *out_mac, struct error *err);

/* Is it of this request and this key? 0, -EACCES, -EIO. In constant time; whether it is new, others must tell. */
MUST_CHECK int auth_mac_verify(const struct auth_mac *mac, const void *key, size_t key_length,
                               const struct auth_mac_request *request, struct error *err);

#endif
