/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/socket_address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "util/cursor.h"

static bool socket_address_scope(const char *text, uint32_t *out_scope)
{
    struct cursor cursor = {.at = text, .end = text + strlen(text)};
    uint64_t number;
    if (cursor_u64(&cursor, &number) && cursor_is_empty(&cursor) && number > 0 && number <= UINT32_MAX) {
        *out_scope = (uint32_t)number;
        return true;
    }
    *out_scope = if_nametoindex(text);
    return *out_scope != 0;
}

static bool socket_address_parse_v6(char *text, struct sockaddr_in6 *out_address)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};
    char *scope = strchr(text, '%');
    if (scope != NULL) {
        *scope = '\0';
        if (!socket_address_scope(scope + 1, &address.sin6_scope_id))
            return false;
    }
    if (inet_pton(AF_INET6, text, &address.sin6_addr) != 1)
        return false;
    *out_address = address;
    return true;
}

bool socket_address_parse(const char *text, uint16_t port, struct sockaddr_storage *out_address)
{
    char copy[SOCKET_ADDRESS_TEXT_MAX_BYTES];
    size_t length = strlen(text);
    if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    }
    if (length == 0 || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';

    struct sockaddr_storage address = {0};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6;
    if (inet_pton(AF_INET, copy, &v4.sin_addr) == 1)
        memcpy(&address, &v4, sizeof v4);
    else if (socket_address_parse_v6(copy, &v6))
        memcpy(&address, &v6, sizeof v6);
    else
        return false;
    socket_address_set_port(&address, port);
    *out_address = address;
    return true;
}

static const struct sockaddr_in *socket_address_v4(const struct sockaddr_storage *address)
{
    return (const struct sockaddr_in *)address;
}

static const struct sockaddr_in6 *socket_address_v6(const struct sockaddr_storage *address)
{
    return (const struct sockaddr_in6 *)address;
}

void socket_address_text(const struct sockaddr_storage *address, char out_text[SOCKET_ADDRESS_TEXT_MAX_BYTES])
{
    out_text[0] = '\0';
    if (address->ss_family == AF_INET)
        (void)inet_ntop(AF_INET, &socket_address_v4(address)->sin_addr, out_text, SOCKET_ADDRESS_TEXT_MAX_BYTES);
    else if (address->ss_family == AF_INET6)
        (void)inet_ntop(AF_INET6, &socket_address_v6(address)->sin6_addr, out_text, SOCKET_ADDRESS_TEXT_MAX_BYTES);
}

uint16_t socket_address_port(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return ntohs(socket_address_v4(address)->sin_port);
    return address->ss_family == AF_INET6 ? ntohs(socket_address_v6(address)->sin6_port) : 0;
}

void socket_address_set_port(struct sockaddr_storage *address, uint16_t port)
{
    if (address->ss_family == AF_INET)
        ((struct sockaddr_in *)address)->sin_port = htons(port);
    else if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons(port);
}

socklen_t socket_address_length(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* The 16 bytes of IPv6 that stand for it; false for other families. */
static bool socket_address_mapped(const struct sockaddr_storage *address, uint8_t out_bytes[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (address->ss_family == AF_INET6) {
        memcpy(out_bytes, &socket_address_v6(address)->sin6_addr, 16);
        return true;
    }
    memcpy(out_bytes, mapped, sizeof mapped);
    memcpy(out_bytes + sizeof mapped, &socket_address_v4(address)->sin_addr, 4);
    return address->ss_family == AF_INET;
}

bool socket_address_is_loopback(const struct sockaddr_storage *address)
{
    struct in6_addr bytes;
    if (!socket_address_mapped(address, bytes.s6_addr))
        return false;
    if (IN6_IS_ADDR_V4MAPPED(&bytes))
        return bytes.s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&bytes);
}

bool socket_address_equals(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    uint8_t bytes_a[16], bytes_b[16];
    return socket_address_mapped(a, bytes_a) && socket_address_mapped(b, bytes_b) &&
           memcmp(bytes_a, bytes_b, sizeof bytes_a) == 0 && socket_address_port(a) == socket_address_port(b);
}
