/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/scrape_url.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/socket_address.h"
#include "util/cursor.h"

enum { SCRAPE_URL_PORT_HTTP = 80, SCRAPE_URL_PORT_HTTPS = 443 };

static char scrape_url_lower(char character)
{
    return character >= 'A' && character <= 'Z' ? (char)(character - 'A' + 'a') : character;
}

static bool scrape_url_is_host_character(char character)
{
    char lower = scrape_url_lower(character);
    return (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') || lower == '.' || lower == '-' ||
           lower == '_';
}

/* Takes a name, an IPv4 address, or [an IPv6 address]. NULL, or what is wrong. */
static const char *scrape_url_take_host(struct cursor *text, struct scrape_url *url)
{
    bool has_brackets = cursor_accept(text, '[');
    const char *start = text->at;
    while (!cursor_is_empty(text) && (scrape_url_is_host_character(*text->at) || (has_brackets && *text->at == ':')))
        text->at++;
    size_t bytes = (size_t)(text->at - start);
    if (bytes == 0)
        return "it has no host";
    if (bytes > SCRAPE_URL_HOST_MAX_BYTES)
        return "its host is too long";
    for (size_t i = 0; i < bytes; i++)
        url->host[i] = scrape_url_lower(start[i]);
    url->host[bytes] = '\0';
    if (!has_brackets) {
        if (url->host[0] == '.' || strstr(url->host, "..") != NULL)
            return "its host is no name";
        if (url->host[bytes - 1] == '.' && bytes > 1)
            url->host[bytes - 1] = '\0';
        return NULL;
    }
    struct sockaddr_storage address;
    if (!cursor_accept(text, ']') || !socket_address_parse(url->host, 0, &address) || address.ss_family != AF_INET6)
        return "what is in brackets is no IPv6 address";
    char shortest[SOCKET_ADDRESS_TEXT_MAX_BYTES];
    socket_address_text(&address, shortest);
    (void)snprintf(url->host, sizeof url->host, "%s", shortest); /* one form for one address; it fits */
    return NULL;
}

static const char *scrape_url_take_port(struct cursor *text, unsigned usual, struct scrape_url *url)
{
    uint64_t port = usual;
    if (cursor_accept(text, ':')) {
        bool is_digit = !cursor_is_empty(text) && *text->at >= '0' && *text->at <= '9'; /* no blanks before it */
        if (!is_digit || !cursor_u64(text, &port))
            return "its port is no number";
    }
    if (port == 0 || port > UINT16_MAX)
        return "it needs a port from 1 to 65535, as in node7:9100";
    url->port = (uint16_t)port;
    return NULL;
}

static const char *scrape_url_take_path(struct cursor *text, struct scrape_url *url)
{
    if (cursor_is_empty(text))
        return NULL;
    if (*text->at != '/')
        return "something other than a path is behind its port";
    size_t bytes = cursor_left(text);
    if (bytes > SCRAPE_URL_PATH_MAX_BYTES)
        return "its path is too long";
    for (size_t i = 0; i < bytes; i++) {
        if (text->at[i] <= ' ' || text->at[i] >= 0x7f || text->at[i] == '#')
            return "its path has a blank, a '#' or a character that is not ASCII";
    }
    /* What a target has anyway is no path of its own. */
    bool is_proxy = cursor_equals(text, "/") || cursor_equals(text, "/job") || cursor_equals(text, "/job/");
    bool is_usual = cursor_equals(text, "/metrics") || cursor_equals(text, "/metrics/");
    url->is_metrics = !is_proxy;
    if (!is_proxy && !is_usual) {
        memcpy(url->path, text->at, bytes);
        url->path[bytes] = '\0';
    }
    return NULL;
}

int scrape_url_parse(const char *text, struct scrape_url *out_url, struct error *err)
{
    struct scrape_url url = {.port = 0};
    struct cursor rest = cursor_of(text, strlen(text));
    const char *separator = strstr(text, "://");
    struct cursor scheme = cursor_of(text, separator != NULL ? (size_t)(separator - text) : 0);
    bool is_https = cursor_equals_any_case(&scheme, "https");
    if (separator != NULL)
        rest.at = separator + 3;
    const char *fault = NULL;
    if (separator != NULL && !is_https && !cursor_equals_any_case(&scheme, "http"))
        fault = "only http and https are spoken";
    if (fault == NULL)
        fault = scrape_url_take_host(&rest, &url);
    unsigned usual = is_https ? SCRAPE_URL_PORT_HTTPS : SCRAPE_URL_PORT_HTTP;
    if (fault == NULL)
        fault = scrape_url_take_port(&rest, separator != NULL ? usual : 0, &url);
    if (fault == NULL)
        fault = scrape_url_take_path(&rest, &url);
    if (fault != NULL)
        return error_set(err, -EINVAL, "target '%s': %s", text, fault);
    bool is_ipv6 = strchr(url.host, ':') != NULL;
    (void)snprintf(url.origin, sizeof url.origin, "%s://%s%s%s:%u", is_https ? "https" : "http", is_ipv6 ? "[" : "",
                   url.host, is_ipv6 ? "]" : "", url.port); /* their sizes are such that these fit */
    bool is_local = strcmp(url.host, "localhost") == 0;
    (void)snprintf(url.key, sizeof url.key, "%s|%s|%u%s", is_https ? "https" : "http",
                   is_local ? "127.0.0.1" : url.host, url.port, url.path);
    *out_url = url;
    return 0;
}
