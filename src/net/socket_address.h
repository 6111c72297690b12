/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socket_address: numeric addresses of IPv4 and IPv6, between text and struct sockaddr. Pure. Any thread.
 */
#ifndef NET_SOCKET_ADDRESS_H
#define NET_SOCKET_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Enough for any address as text, with a scope. */
#define SOCKET_ADDRESS_TEXT_MAX_BYTES 80

/*
 * "127.0.0.1", "::1", "[::1]", "fe80::1%eth0"; nothing is looked up. False, output untouched, when `text` is no
 * address.
 */
bool socket_address_parse(const char *text, uint16_t port, struct sockaddr_storage *out_address);

/* "127.0.0.1" or "::1"; "" for other families. */
void socket_address_text(const struct sockaddr_storage *address, char out_text[SOCKET_ADDRESS_TEXT_MAX_BYTES]);

/* 0 for other families. */
uint16_t socket_address_port(const struct sockaddr_storage *address);

/* Does nothing for other families. */
void socket_address_set_port(struct sockaddr_storage *address, uint16_t port);

/* What bind() and connect() are to be told. */
socklen_t socket_address_length(const struct sockaddr_storage *address);

/* 127.0.0.0/8, ::1, and ::ffff:127.0.0.0/104. */
bool socket_address_is_loopback(const struct sockaddr_storage *address);

/* Same family, address and port; an IPv4 address and its form within IPv6 are the same. */
bool socket_address_equals(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

#endif
