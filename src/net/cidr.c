/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/cidr.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "net/socket_address.h"
#include "util/cursor.h"

enum { CIDR_BITS = 128, CIDR_IPV4_BITS = 32, CIDR_IPV4_OFFSET = CIDR_BITS - CIDR_IPV4_BITS };

/* The address as 16 bytes; false for other families. */
static bool cidr_bytes(const struct sockaddr_storage *address, uint8_t out_bytes[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (address->ss_family == AF_INET6) {
        struct sockaddr_in6 six;
        memcpy(&six, address, sizeof six);
        memcpy(out_bytes, &six.sin6_addr, 16);
        return true;
    }
    if (address->ss_family != AF_INET)
        return false;
    struct sockaddr_in four;
    memcpy(&four, address, sizeof four);
    memcpy(out_bytes, mapped, sizeof mapped);
    memcpy(out_bytes + sizeof mapped, &four.sin_addr, 4);
    return true;
}

static bool cidr_equals(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8;
    unsigned rest = bits % 8;
    if (memcmp(a, b, whole) != 0)
        return false;
    return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

static int cidr_parse_one(struct cursor word, struct cidr_range *range, struct error *err)
{
    static const uint8_t zeros[16];
    char text[SOCKET_ADDRESS_TEXT_MAX_BYTES];
    int bytes = (int)cursor_left(&word);
    struct cursor whole = word;
    while (!cursor_is_empty(&word) && *word.at != '/')
        word.at++;
    size_t address_bytes = (size_t)(word.at - whole.at);
    struct sockaddr_storage address;
    if (address_bytes >= sizeof text)
        return error_set(err, -EINVAL, "'%.*s' is no address", bytes, whole.at);
    memcpy(text, whole.at, address_bytes);
    text[address_bytes] = '\0';
    if (!socket_address_parse(text, 0, &address) || !cidr_bytes(&address, range->bytes))
        return error_set(err, -EINVAL, "'%.*s' is no address", bytes, whole.at);
    unsigned offset = address.ss_family == AF_INET ? CIDR_IPV4_OFFSET : 0;
    uint64_t bits = CIDR_BITS - offset;
    if (cursor_accept(&word, '/') && (!cursor_u64(&word, &bits) || bits > CIDR_BITS - offset))
        return error_set(err, -EINVAL, "'%.*s': the mask is no number of bits", bytes, whole.at);
    if (!cursor_is_empty(&word))
        return error_set(err, -EINVAL, "'%.*s': there is more behind the mask", bytes, whole.at);
    range->bits = (unsigned)bits + offset;
    uint8_t masked[16] = {0};
    for (unsigned bit = range->bits; bit < CIDR_BITS; bit++)
        masked[bit / 8] |= (uint8_t)(range->bytes[bit / 8] & (0x80U >> bit % 8));
    if (memcmp(masked, zeros, sizeof masked) != 0)
        return error_set(err, -EINVAL, "'%.*s' has bits beyond its mask", bytes, whole.at);
    return 0;
}

int cidr_parse(const char *text, struct cidr *out_cidr, struct error *err)
{
    struct cidr cidr = {0};
    struct cursor rest = cursor_of(text, strlen(text));
    for (;;) {
        struct cursor word = {.at = rest.at};
        while (!cursor_is_empty(&rest) && *rest.at != ',')
            rest.at++;
        word.end = rest.at;
        if (cidr.count == CIDR_RANGES_MAX)
            return error_set(err, -E2BIG, "more than %d ranges of addresses", CIDR_RANGES_MAX);
        int rc = cidr_parse_one(word, &cidr.ranges[cidr.count], err);
        if (rc < 0)
            return rc;
        cidr.count++;
        if (!cursor_accept(&rest, ','))
            break;
    }
    *out_cidr = cidr;
    return 0;
}

bool cidr_has(const struct cidr *cidr, const struct sockaddr_storage *address)
{
    uint8_t bytes[16];
    if (!cidr_bytes(address, bytes))
        return false;
    for (size_t i = 0; i < cidr->count; i++) {
        if (cidr_equals(bytes, cidr->ranges[i].bytes, cidr->ranges[i].bits))
            return true;
    }
    return false;
}
