/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoints_self: /, /healthz, /readyz, and the page by which proxies know each other. */
#include "cicada_version.h"
#include "proxy/endpoint.h"

enum { SELF_TEXT_MAX_BYTES = 1 << 16 };

static const char self_html[] = "text/html; charset=utf-8";

static void self_answer(struct http_request *request, const char *content_type, const char *text)
{
    struct buf body;
    buf_init(&body, SELF_TEXT_MAX_BYTES);
    buf_text(&body, text);
    http_request_answer(request, &(struct http_request_answer){.content_type = content_type, .body = &body});
}

static void self_handle_health(const struct endpoint_parts *parts, struct http_request *request)
{
    (void)parts; /* the loop turns, or nobody would answer */
    self_answer(request, "text/plain; charset=utf-8", "ok\n");
}

static void self_handle_ready(const struct endpoint_parts *parts, struct http_request *request)
{
    if (proxy_stats(parts->proxy)->ticks > 0)
        self_answer(request, "text/plain; charset=utf-8", "ready\n");
    else
        http_request_fail(request, 503, "no tick yet");
}

static void self_handle_mark(const struct endpoint_parts *parts, struct http_request *request)
{
    (void)parts;
    self_answer(request, self_html, "<!doctype html><title>metric proxy</title><p>A metric proxy answers here.\n");
}

static void self_handle_root(const struct endpoint_parts *parts, struct http_request *request)
{
    static const char *const paths[] = {"/metrics",   "/job/list", "/job",    "/ranks",   "/profiles", "/alarms",
                                        "/join/list", "/topo",     "/period", "/healthz", "/readyz"};
    struct buf body;
    buf_init(&body, SELF_TEXT_MAX_BYTES);
    buf_text(&body, "<!doctype html><meta charset=utf-8><title>Cicada</title><h1>Cicada's metric proxy " CICADA_VERSION
                    "</h1><p>On ");
    for (const char *at = proxy_hostname(parts->proxy); *at != '\0'; at++) {
        if (*at != '<' && *at != '&')
            buf_char(&body, *at);
    }
    buf_text(&body, ".<ul>");
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++)
        buf_printf(&body, "<li><a href=\"%s\">%s</a>", paths[i], paths[i]);
    buf_text(&body, "</ul><p>In a terminal: <code>cicada jobs</code>, <code>cicada top</code>.\n");
    http_request_answer(request, &(struct http_request_answer){.content_type = self_html, .body = &body});
}

const struct endpoint endpoints_self[] = {
    {"/", ENDPOINT_GET, false, self_handle_root},
    {"/healthz", ENDPOINT_GET, false, self_handle_health},
    {"/readyz", ENDPOINT_GET, false, self_handle_ready},
    {"/is_admire_proxy.html", ENDPOINT_GET, false, self_handle_mark},
    {0},
};
