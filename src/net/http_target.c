/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/http_target.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* -1 when it is no digit. */
static int http_target_digit(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    if (character >= 'a' && character <= 'f')
        return character - 'a' + 10;
    if (character >= 'A' && character <= 'F')
        return character - 'A' + 10;
    return -1;
}

/* The byte that "%XX" at `text` stands for; -1 when that is no escape. */
static int http_target_escape(const char *text)
{
    int high = text[0] == '%' ? http_target_digit(text[1]) : -1;
    int low = high >= 0 ? http_target_digit(text[2]) : -1;
    return low >= 0 ? high * 16 + low : -1;
}

/*
 * Decodes `text` (which ends with a NUL) in place: what is decoded is never longer. In the query a '+' is a blank and a
 * bad escape stays as it is; in a path it is an error.
 */
static int http_target_decode(char *text, bool is_query, struct error *err)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        int byte = http_target_escape(from);
        if (byte == 0)
            return error_set(err, -EINVAL, "a NUL (%%00) in the request's target");
        if (byte < 0 && *from == '%' && !is_query)
            return error_set(err, -EINVAL, "a '%%' in the path that begins no escape");
        if (byte < 0)
            *to++ = is_query && *from == '+' ? ' ' : *from;
        else
            *to++ = (char)byte;
        from += byte < 0 ? 1 : 3;
    }
    *to = '\0';
    return 0;
}

static int http_target_parse_query(char *query, struct http_target *target, struct error *err)
{
    char *rest = query;
    while (rest != NULL) {
        char *name = rest;
        char *end = strchr(name, '&');
        rest = end != NULL ? end + 1 : NULL;
        if (end != NULL)
            *end = '\0';
        if (*name == '\0')
            continue; /* "a=1&&b=2" */
        if (target->param_count == HTTP_TARGET_PARAMS_MAX)
            return error_set(err, -E2BIG, "more than %d parameters in the query", HTTP_TARGET_PARAMS_MAX);
        char *equals = strchr(name, '=');
        char *value = equals != NULL ? equals + 1 : name + strlen(name);
        if (equals != NULL)
            *equals = '\0';
        int rc = http_target_decode(name, true, err);
        if (rc == 0)
            rc = http_target_decode(value, true, err);
        if (rc < 0)
            return rc;
        target->params[target->param_count++] = (struct http_target_param){.name = name, .value = value};
    }
    return 0;
}

int http_target_parse(const char *raw, struct http_target *out_target, struct error *err)
{
    *out_target = (struct http_target){.path = "/"};
    if (raw[0] != '/')
        return error_set(err, -EINVAL, "the request's target is no path");
    for (const char *at = raw; *at != '\0'; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f)
            return error_set(err, -EINVAL, "a blank or control character in the request's target");
    out_target->memory = strdup(raw);
    if (out_target->memory == NULL)
        return error_set(err, -ENOMEM, "request's target");

    char *path = out_target->memory;
    path[strcspn(path, "#")] = '\0'; /* browsers keep it to themselves, some scripts don't */
    char *query = strchr(path, '?');
    if (query != NULL)
        *query++ = '\0';
    out_target->path = path;
    int rc = http_target_decode(path, false, err);
    if (rc == 0 && query != NULL)
        rc = http_target_parse_query(query, out_target, err);
    return rc;
}

void http_target_fini(struct http_target *target)
{
    free(target->memory);
    *target = (struct http_target){.path = "/"};
}

const char *http_target_param(const struct http_target *target, const char *name)
{
    for (size_t i = 0; i < target->param_count; i++)
        if (strcmp(target->params[i].name, name) == 0)
            return target->params[i].value;
    return NULL;
}
