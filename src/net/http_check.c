/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/http_check.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "util/cursor.h"

/* RFC 9110, 5.6.2: what a name may consist of. */
static bool http_check_is_token(const char *text, size_t length)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        bool is_alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_alphanumeric && (c == '\0' || strchr(marks, c) == NULL))
            return false;
    }
    return length > 0;
}

static bool http_check_has_control(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
            return true;
    return false;
}

static bool http_check_is_length(const char *text, size_t length)
{
    enum { DIGITS_MAX = 18 }; /* fits into 63 bits */
    for (size_t i = 0; i < length; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return length > 0 && length <= DIGITS_MAX;
}

static bool http_check_is(const char *text, size_t length, const char *word)
{
    return length == strlen(word) && strncasecmp(text, word, length) == 0;
}

void http_check_header(struct http_check *check, const char *name, size_t name_length, const char *value,
                       size_t value_length)
{
    const char *reason = NULL;
    if (!http_check_is_token(name, name_length)) {
        reason = "a header's name has a blank or another character that names can't have";
    } else if (http_check_has_control(value, value_length)) {
        reason = "a header has a control character";
    } else if (http_check_is(name, name_length, "host")) {
        check->hosts++;
    } else if (http_check_is(name, name_length, "content-length")) {
        check->lengths++;
        if (!http_check_is_length(value, value_length))
            reason = "Content-Length is no number";
    } else if (http_check_is(name, name_length, "transfer-encoding")) {
        check->encodings++;
        if (!http_check_is(value, value_length, "chunked"))
            reason = "Transfer-Encoding is not 'chunked'";
    }
    if (check->reason == NULL)
        check->reason = reason;
}

const char *http_check_verdict(const struct http_check *check, bool is_http_1_0)
{
    if (check->reason != NULL)
        return check->reason;
    if (check->hosts > 1)
        return "more than one Host";
    if (check->hosts == 0 && !is_http_1_0)
        return "no Host";
    if (check->lengths > 1)
        return "more than one Content-Length";
    if (check->encodings > 1)
        return "more than one Transfer-Encoding";
    if (check->lengths > 0 && check->encodings > 0)
        return "both Content-Length and Transfer-Encoding";
    if (check->encodings > 0 && is_http_1_0)
        return "Transfer-Encoding in HTTP/1.0";
    return NULL;
}

/* "q=0", "q=0.000": everything else is more than nothing. */
static bool http_check_is_q_zero(const char *params, size_t length)
{
    while (length > 0 && strchr("; \t", *params) != NULL) {
        params++;
        length--;
    }
    if (length < 3 || strncasecmp(params, "q=0", 3) != 0)
        return false;
    for (size_t i = 3; i < length; i++)
        if (params[i] != '0' && params[i] != '.' && params[i] != ' ')
            return false;
    return true;
}

bool http_check_accepts_gzip(const char *value)
{
    bool is_any = false;
    const char *at = value != NULL ? value : "";
    while (*at != '\0') {
        size_t skip = strspn(at, ", \t");
        at += skip;
        size_t item = strcspn(at, ",");
        size_t word = strcspn(at, ",; \t");
        bool is_allowed = !http_check_is_q_zero(at + word, item - word);
        if (http_check_is(at, word, "gzip") || http_check_is(at, word, "x-gzip"))
            return is_allowed;
        if (http_check_is(at, word, "*"))
            is_any = is_allowed;
        at += item;
    }
    return is_any;
}

/* Where the name ends: at the bracket of "[::1]", at a colon, at the end. NULL: a bracket without its other one. */
static const char *http_check_host_end(const char *value, size_t length, const char **out_name)
{
    *out_name = value;
    if (length > 0 && value[0] == '[') {
        *out_name = value + 1;
        return memchr(value, ']', length);
    }
    const char *colon = memchr(value, ':', length);
    return colon != NULL ? colon : value + length;
}

bool http_check_split_host(const char *value, size_t length, struct http_check_host *out_host)
{
    struct http_check_host host = {0};
    const char *name;
    const char *end = http_check_host_end(value, length, &name);
    if (end == NULL)
        return false;
    bool is_bracketed = name != value;
    size_t name_length = (size_t)(end - name);
    struct cursor rest = {.at = end + (is_bracketed ? 1 : 0), .end = value + length};
    if (name_length > 1 && name[name_length - 1] == '.')
        name_length--;
    if (name_length == 0 || name_length >= sizeof host.name)
        return false;
    for (size_t i = 0; i < name_length; i++) {
        char c = name[i];
        char lower = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
        bool is_plain = (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
        if (!is_plain && !(is_bracketed && (c == ':' || c == '%')))
            return false;
        host.name[i] = lower;
    }
    uint64_t port = 0;
    if (!cursor_is_empty(&rest)) {
        bool has_port = cursor_accept(&rest, ':') && !cursor_is_empty(&rest) && *rest.at >= '0' && *rest.at <= '9';
        if (!has_port || !cursor_u64(&rest, &port) || port > UINT16_MAX || !cursor_is_empty(&rest))
            return false;
    }
    host.port = (uint32_t)port;
    *out_host = host;
    return true;
}

bool http_check_is_loopback_name(const char *name)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (strcmp(name, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, name, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    return inet_pton(AF_INET6, name, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}
