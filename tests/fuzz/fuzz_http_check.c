/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines "name:value" as header lines, as Accept-Encoding, as Host, as an address, as X-Cicada-Auth. */
#include "net/http_check.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "net/auth_mac.h"
#include "net/socket_address.h"
#include "util/cursor.h"

static void as_values(const char *text)
{
    struct http_check_host host;
    struct sockaddr_storage address;
    struct auth_mac mac;
    (void)http_check_accepts_gzip(text);
    if (http_check_split_host(text, strlen(text), &host) && (host.name[0] == '\0' || host.port > UINT16_MAX))
        abort();
    (void)http_check_is_loopback_name(text);
    (void)socket_address_parse(text, 0, &address);
    if (auth_mac_parse(text, &mac, NULL) == 0 && mac.time_wall_ms < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_check check = {0};
    struct cursor text = {.at = (const char *)data, .end = (const char *)data + size};
    struct cursor line;
    while (cursor_line(&text, &line)) {
        const char *colon = memchr(line.at, ':', cursor_left(&line));
        const char *value = colon != NULL ? colon + 1 : line.end;
        size_t name_length = colon != NULL ? (size_t)(colon - line.at) : cursor_left(&line);
        http_check_header(&check, line.at, name_length, value, (size_t)(line.end - value));
        char *copy = strndup(value, (size_t)(line.end - value));
        if (copy != NULL)
            as_values(copy);
        free(copy);
    }
    (void)http_check_verdict(&check, false);
    return 0;
}
