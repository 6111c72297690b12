/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_check: does a request's head mean the same to everybody who reads it? And small questions to header values.
 *
 * A request that two programs read differently (two lengths, a length and chunks, blanks in a name) lets one request
 * hide in another. libmicrohttpd accepts most of these forms; this refuses them (RFC 9112, 3.2, 5.1, 6.1, 6.3).
 * Pure. Any thread.
 */
#ifndef NET_HTTP_CHECK_H
#define NET_HTTP_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised; fed with every header line by http_check_header(), then asked. */
struct http_check {
    unsigned hosts, lengths, encodings;
    const char *reason; /* of the first line that is bad by itself; static */
};

/* One line. Borrows both texts, which need no NUL. */
void http_check_header(struct http_check *check, const char *name, size_t name_length, const char *value,
                       size_t value_length);

/* NULL: fine. Else why not, in words; static. `is_http_1_0`: then Host may be missing. */
const char *http_check_verdict(const struct http_check *check, bool is_http_1_0);

/* Does this Accept-Encoding (may be NULL) allow gzip? "gzip;q=0" doesn't. */
bool http_check_accepts_gzip(const char *value);

/* "localhost:1337", "[::1]:1337", "node7". */
#define HTTP_CHECK_HOST_MAX_BYTES 256
struct http_check_host {
    char name[HTTP_CHECK_HOST_MAX_BYTES]; /* lower case, without brackets and without a final dot */
    uint32_t port;                        /* 0: none given */
};

/* Splits the value of Host, or what follows "http://" in an Origin. False when it is neither name nor address. */
bool http_check_split_host(const char *value, size_t length, struct http_check_host *out_host);

/* "localhost", 127.0.0.0/8, ::1. */
bool http_check_is_loopback_name(const char *name);

#endif
