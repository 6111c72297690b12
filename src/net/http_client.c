/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/http_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#define HASH_NONFATAL_OOM 1 /* a request fails; uthash would end the process */
#include <uthash.h>

#include "net/socket_address.h"
#include "util/clock.h"

enum { HTTP_CLIENT_HEADERS_MAX_BYTES = 64 << 10, HTTP_CLIENT_URL_MAX_BYTES = 8192, HTTP_CLIENT_HOST_MAX_BYTES = 256 };

struct http_client_call {
    struct http_client *client;
    char *key;
    char *url;
    char host[HTTP_CLIENT_HOST_MAX_BYTES];
    char port[8];
    CURL *easy;
    struct curl_slist *headers;
    struct curl_slist *addresses; /* for CURLOPT_RESOLVE */
    struct resolve_query *query;
    bool is_running; /* libcurl has it */
    bool is_too_large;
    size_t head_bytes;
    struct buf body;
    int64_t start_mono_ns;
    unsigned timeout_ms;
    void (*on_done)(void *context, struct http_client_result *result);
    void *context;
    char words[CURL_ERROR_SIZE];
    UT_hash_handle hh;
};

/* One of libcurl's sockets. */
struct http_client_socket {
    struct http_client *client;
    uv_poll_t poll;
    curl_socket_t fd;
};

struct http_client {
    uv_loop_t *loop;
    struct resolve *resolve;
    CURLM *multi;
    uv_timer_t timer;
    struct http_client_call *calls;
    unsigned handles; /* timer and sockets that have not closed */
    bool is_closing;
    void (*on_closed)(void *context);
    void *closed_context;
};

/* Calls */

static void http_client_call_free(struct http_client_call *call)
{
    if (call == NULL)
        return;
    if (call->easy != NULL)
        curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    curl_slist_free_all(call->addresses);
    buf_fini(&call->body);
    free(call->key);
    free(call->url);
    free(call);
}
DEFINE_CLEANUP(http_client_call, http_client_call_free);

/* Off all lists; nothing comes back to it. */
static void http_client_take_out(struct http_client_call *call)
{
    resolve_cancel(TAKE(call->query));
    if (call->is_running)
        (void)curl_multi_remove_handle(call->client->multi, call->easy);
    call->is_running = false;
    HASH_DEL(call->client->calls, call);
}

static void http_client_finish(struct http_client_call *call, int code, const char *words)
{
    struct http_client_result result = {.code = code, .content_type = "", .body = &call->body};
    http_client_take_out(call);
    result.took_ns = clock_mono_ns() - call->start_mono_ns;
    if (code < 0)
        error_set(&result.err, code, "%s: %s", call->url, words);
    long status = 0;
    char *type = NULL;
    (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(call->easy, CURLINFO_CONTENT_TYPE, &type);
    result.status = status > 0 ? (unsigned)status : 0;
    if (type != NULL)
        result.content_type = type;
    call->on_done(call->context, &result);
    http_client_call_free(call);
}

static int http_client_code(const struct http_client_call *call, CURLcode result)
{
    if (call->is_too_large)
        return -EFBIG;
    switch (result) {
    case CURLE_OK:
        return 0;
    case CURLE_OPERATION_TIMEDOUT:
        return -ETIMEDOUT;
    case CURLE_COULDNT_CONNECT:
        return -ECONNREFUSED;
    case CURLE_OUT_OF_MEMORY:
        return -ENOMEM;
    default:
        return -EIO;
    }
}

/* What libcurl has finished. Called after each time that it has run, never within. */
static void http_client_collect(struct http_client *client)
{
    int left;
    CURLMsg *message;
    while (!client->is_closing && (message = curl_multi_info_read(client->multi, &left)) != NULL) {
        struct http_client_call *call = NULL;
        if (message->msg != CURLMSG_DONE ||
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call) != CURLE_OK)
            continue;
        CURLcode result = message->data.result;
        const char *words = call->words[0] != '\0' ? call->words : curl_easy_strerror(result);
        if (call->is_too_large)
            words = "the answer is larger than allowed";
        http_client_finish(call, http_client_code(call, result), words);
    }
}

static size_t http_client_on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct http_client_call *call = context;
    buf_bytes(&call->body, bytes, size * count); /* libcurl's pieces have at most 16 kB */
    call->is_too_large = call->body.status == -E2BIG;
    return call->body.status == 0 ? size * count : 0;
}

static size_t http_client_on_head(char *bytes, size_t size, size_t count, void *context)
{
    (void)bytes;
    struct http_client_call *call = context;
    call->head_bytes += size * count;
    call->is_too_large = call->head_bytes > HTTP_CLIENT_HEADERS_MAX_BYTES;
    return call->is_too_large ? 0 : size * count;
}

/* libcurl in the loop */

static void http_client_act(struct http_client *client, curl_socket_t fd, int events)
{
    int running;
    (void)curl_multi_socket_action(client->multi, fd, events, &running);
    http_client_collect(client);
}

static void http_client_on_ready(uv_poll_t *poll, int status, int events)
{
    struct http_client_socket *of = poll->data;
    int action = (events & UV_READABLE ? CURL_CSELECT_IN : 0) | (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);
    http_client_act(of->client, of->fd, status < 0 ? CURL_CSELECT_ERR : action);
}

static void http_client_on_timer(uv_timer_t *timer)
{
    http_client_act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int http_client_set_timer(CURLM *multi, long timeout_ms, void *context)
{
    (void)multi;
    struct http_client *client = context;
    if (client->is_closing)
        return 0;
    if (timeout_ms < 0)
        (void)uv_timer_stop(&client->timer);
    else /* 0 must not run libcurl from within libcurl: the next turn is soon enough */
        (void)uv_timer_start(&client->timer, http_client_on_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

static void http_client_free_if_over(struct http_client *client)
{
    if (--client->handles > 0)
        return;
    void (*on_closed)(void *context) = client->on_closed;
    void *context = client->closed_context;
    free(client);
    if (on_closed != NULL)
        on_closed(context);
}

static void http_client_socket_closed(uv_handle_t *handle)
{
    struct http_client_socket *of = handle->data;
    struct http_client *client = of->client;
    free(of);
    http_client_free_if_over(client);
}

static struct http_client_socket *http_client_watch(struct http_client *client, curl_socket_t fd)
{
    struct http_client_socket *of = calloc(1, sizeof *of);
    if (of == NULL)
        return NULL;
    *of = (struct http_client_socket){.client = client, .fd = fd};
    of->poll.data = of;
    if (uv_poll_init_socket(client->loop, &of->poll, fd) < 0) {
        free(of);
        return NULL;
    }
    client->handles++;
    (void)curl_multi_assign(client->multi, fd, of);
    return of;
}

static int http_client_set_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context)
{
    (void)easy;
    struct http_client *client = context;
    struct http_client_socket *of = socket_context;
    if (what == CURL_POLL_REMOVE) {
        if (of == NULL)
            return 0;
        (void)uv_poll_stop(&of->poll); /* before libcurl closes the descriptor */
        (void)curl_multi_assign(client->multi, fd, NULL);
        uv_close((uv_handle_t *)&of->poll, http_client_socket_closed);
        return 0;
    }
    if (of == NULL)
        of = http_client_watch(client, fd);
    if (of == NULL)
        return -1;
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    return uv_poll_start(&of->poll, events, http_client_on_ready) < 0 ? -1 : 0;
}

/* Starting a call */

static void http_client_run(struct http_client_call *call, unsigned timeout_ms)
{
    (void)curl_easy_setopt(call->easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    (void)curl_easy_setopt(call->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)timeout_ms);
    if (call->addresses != NULL)
        (void)curl_easy_setopt(call->easy, CURLOPT_RESOLVE, call->addresses);
    call->is_running = curl_multi_add_handle(call->client->multi, call->easy) == CURLM_OK;
}

/* "+host:port:1.2.3.4,[::1]": libcurl tries them side by side; the '+' lets its cache forget them. */
static bool http_client_add_addresses(struct http_client_call *call, const struct resolve_addresses *addresses)
{
    enum { LINE_MAX_BYTES = 1024 };
    CLEANUP(buf_cleanup) struct buf line;
    buf_init(&line, LINE_MAX_BYTES);
    buf_printf(&line, "+%s:%s:", call->host, call->port);
    for (size_t i = 0; i < addresses->count; i++) {
        char text[SOCKET_ADDRESS_TEXT_MAX_BYTES];
        socket_address_text(&addresses->at[i], text);
        bool is_v6 = addresses->at[i].ss_family == AF_INET6;
        buf_printf(&line, "%s%s%s%s", i > 0 ? "," : "", is_v6 ? "[" : "", text, is_v6 ? "]" : "");
    }
    buf_char(&line, '\0');
    if (line.status != 0)
        return false;
    call->addresses = curl_slist_append(NULL, line.data);
    return call->addresses != NULL;
}

static void http_client_resolved(void *context, const struct resolve_addresses *addresses, const struct error *err)
{
    struct http_client_call *call = context;
    call->query = NULL;
    if (addresses == NULL) {
        http_client_finish(call, err->code, err->text);
        return;
    }
    int64_t spent_ms = (clock_mono_ns() - call->start_mono_ns) / CLOCK_NS_PER_MS;
    unsigned left_ms = spent_ms < (int64_t)call->timeout_ms ? call->timeout_ms - (unsigned)spent_ms : 1;
    if (http_client_add_addresses(call, addresses))
        http_client_run(call, left_ms);
    if (!call->is_running)
        http_client_finish(call, -ENOMEM, "no memory for the request");
}

static int http_client_parse_url(struct http_client_call *call, struct error *err)
{
    char *scheme = NULL, *host = NULL, *port = NULL;
    int rc = -EINVAL;
    CURLU *url = curl_url();
    if (url != NULL && strlen(call->url) <= HTTP_CLIENT_URL_MAX_BYTES &&
        curl_url_set(url, CURLUPART_URL, call->url, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
        (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) &&
        curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK && strlen(host) < sizeof call->host &&
        strlen(port) < sizeof call->port) {
        memcpy(call->host, host, strlen(host) + 1);
        memcpy(call->port, port, strlen(port) + 1);
        rc = 0;
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(url);
    return rc < 0 ? error_set(err, rc, "'%s' is no http or https URL", call->url) : 0;
}

static bool http_client_set_headers(struct http_client_call *call, const char *const *headers)
{
    /* Without the answer "100 Continue", which many exporters don't give, libcurl would wait a second. */
    call->headers = curl_slist_append(NULL, "Expect:");
    bool is_good = call->headers != NULL;
    for (size_t i = 0; is_good && headers != NULL && headers[i] != NULL; i++)
        is_good = strpbrk(headers[i], "\r\n") == NULL && curl_slist_append(call->headers, headers[i]) != NULL;
    return is_good && curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers) == CURLE_OK;
}

/* True when libcurl took all. */
static bool http_client_set_options(struct http_client_call *call, const struct http_client_request *request)
{
    CURL *easy = call->easy;
    bool is_good = http_client_set_headers(call, request->headers);
#define SET(option, value) (is_good = is_good && curl_easy_setopt(easy, option, value) == CURLE_OK)
    SET(CURLOPT_URL, call->url);
    SET(CURLOPT_PRIVATE, (void *)call);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_NOPROXY, "*"); /* else the site's http_proxy would catch what is asked of nodes */
    SET(CURLOPT_QUICK_EXIT, 1L);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_USERAGENT, "cicada");
    SET(CURLOPT_ERRORBUFFER, call->words);
    SET(CURLOPT_WRITEFUNCTION, http_client_on_body);
    SET(CURLOPT_WRITEDATA, (void *)call);
    SET(CURLOPT_HEADERFUNCTION, http_client_on_head);
    SET(CURLOPT_HEADERDATA, (void *)call);
    if (request->body != NULL) {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
        SET(CURLOPT_COPYPOSTFIELDS, request->body);
    }
    if (request->method != NULL && strcasecmp(request->method, "HEAD") == 0)
        SET(CURLOPT_NOBODY, 1L);
    else if (request->method != NULL)
        SET(CURLOPT_CUSTOMREQUEST, request->method);
#undef SET
    return is_good;
}

static struct http_client_call *http_client_call_new(struct http_client *client,
                                                     const struct http_client_request *request, struct error *err)
{
    CLEANUP(http_client_call_cleanup) struct http_client_call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        error_set(err, -ENOMEM, "HTTP request");
        return NULL;
    }
    call->client = client;
    call->url = strdup(request->url);
    call->key = strdup(request->key != NULL ? request->key : request->url);
    call->easy = curl_easy_init();
    call->on_done = request->on_done;
    call->context = request->context;
    call->timeout_ms = request->timeout_ms != 0 ? request->timeout_ms : HTTP_CLIENT_TIMEOUT_MS_DEFAULT;
    call->start_mono_ns = clock_mono_ns();
    buf_init(&call->body, request->body_max_bytes != 0 ? request->body_max_bytes : HTTP_CLIENT_BODY_MAX_BYTES);
    if (call->url == NULL || call->key == NULL || call->easy == NULL) {
        error_set(err, -ENOMEM, "HTTP request");
        return NULL;
    }
    if (http_client_parse_url(call, err) < 0)
        return NULL;
    if (!http_client_set_options(call, request)) {
        error_set(err, -EINVAL, "%s: not a request that can be made", call->url);
        return NULL;
    }
    return TAKE(call);
}

/* Runs the call if its host's address is known or part of the URL, else asks for it. */
static int http_client_locate(struct http_client_call *call, struct error *err)
{
    struct sockaddr_storage literal;
    struct resolve_addresses addresses;
    bool is_literal = socket_address_parse(call->host, 0, &literal);
    if (!is_literal && resolve_known(call->client->resolve, call->host, &addresses) == 0)
        return resolve_start(call->client->resolve, call->host, call->timeout_ms, http_client_resolved, call,
                             &call->query, err);
    if (is_literal || http_client_add_addresses(call, &addresses))
        http_client_run(call, call->timeout_ms);
    return call->is_running ? 0 : error_set(err, -ENOMEM, "%s: no memory for the request", call->url);
}

int http_client_start(struct http_client *client, const struct http_client_request *request,
                      struct http_client_call **out_call, struct error *err)
{
    struct http_client_call *other = NULL;
    const char *key = request->key != NULL ? request->key : request->url;
    HASH_FIND_STR(client->calls, key, other);
    if (other != NULL)
        return error_set(err, -EALREADY, "%s: the request before is still under way", key);
    if (HASH_COUNT(client->calls) >= HTTP_CLIENT_CALLS_MAX)
        return error_set(err, -EAGAIN, "%s: %d requests are under way already", key, HTTP_CLIENT_CALLS_MAX);
    struct error why = {0};
    struct http_client_call *call = http_client_call_new(client, request, &why);
    if (call == NULL)
        return error_set(err, why.code, "%s", why.text);
    HASH_ADD_KEYPTR(hh, client->calls, call->key, strlen(call->key), call);
    if (call->hh.tbl == NULL) {
        http_client_call_free(call);
        return error_set(err, -ENOMEM, "%s: no memory for the request", request->url);
    }

    int rc = http_client_locate(call, err);
    if (rc < 0) {
        http_client_cancel(call);
        return rc;
    }
    if (out_call != NULL)
        *out_call = call;
    return 0;
}

void http_client_cancel(struct http_client_call *call)
{
    if (call == NULL)
        return;
    http_client_take_out(call);
    http_client_call_free(call);
}

size_t http_client_count(const struct http_client *client)
{
    return HASH_COUNT(client->calls);
}

/* The client */

int http_client_new(uv_loop_t *loop, struct resolve *resolve, size_t connections_kept, struct http_client **out_client,
                    struct error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return error_set(err, -ENOMEM, "the HTTP client's library does not start");
    struct http_client *client = calloc(1, sizeof *client);
    CURLM *multi = client != NULL ? curl_multi_init() : NULL;
    if (multi == NULL) {
        free(client);
        curl_global_cleanup();
        return error_set(err, -ENOMEM, "HTTP client");
    }
    if (connections_kept < HTTP_CLIENT_CONNECTIONS_KEPT_MIN)
        connections_kept = HTTP_CLIENT_CONNECTIONS_KEPT_MIN;
    *client = (struct http_client){.loop = loop, .resolve = resolve, .multi = multi, .handles = 1};
    (void)curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, http_client_set_socket);
    (void)curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, (void *)client);
    (void)curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, http_client_set_timer);
    (void)curl_multi_setopt(multi, CURLMOPT_TIMERDATA, (void *)client);
    (void)curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)connections_kept);
    (void)uv_timer_init(loop, &client->timer); /* can't fail */
    client->timer.data = client;
    *out_client = client;
    return 0;
}

static void http_client_timer_closed(uv_handle_t *handle)
{
    http_client_free_if_over(handle->data);
}

void http_client_close(struct http_client *client, void (*on_closed)(void *context), void *context)
{
    if (client == NULL)
        return;
    client->is_closing = true;
    client->on_closed = on_closed;
    client->closed_context = context;
    while (client->calls != NULL)
        http_client_cancel(client->calls);
    (void)curl_multi_cleanup(client->multi); /* tells of each socket that it is to be let go */
    curl_global_cleanup();
    uv_close((uv_handle_t *)&client->timer, http_client_timer_closed);
}
