/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/remote.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "net/http_client.h"
#include "net/resolve.h"
#include "util/beacon.h"

enum {
    REMOTE_URL_MAX_BYTES = 4096,
    REMOTE_CONNECTIONS_KEPT = 1,
    HTTP_OK = 200,
    HTTP_CLIENT_FAULT = 400,
    HTTP_SERVER_FAULT = 500,
};

struct remote {
    uv_loop_t loop;
    bool has_loop;
    struct resolve *resolve;
    struct http_client *client;
    struct buf url;
};

/* One answer that is waited for. */
struct remote_wait {
    bool is_done;
    int rc;
    unsigned status;
    struct buf *out;
    struct error *err;
};

static int remote_find(struct buf *url, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, BEACON_TEXT_MAX_BYTES);
    beacon_socket_path(&path);
    struct beacon beacon;
    int rc = beacon_read(buf_string(&path), &beacon, err);
    if (rc == -ENOENT)
        return error_set(err, -ENOENT,
                         "no proxy of this user is on this node (none has left '%s.beacon'); start proxy_v2, "
                         "or name one with --proxy HOST:PORT",
                         buf_string(&path));
    if (rc < 0)
        return error_wrap(err, rc, "finding the proxy");
    buf_printf(url, "http://%s", beacon.address);
    return 0;
}

static int remote_set_url(struct remote *remote, const char *address, struct error *err)
{
    if (address == NULL)
        return remote_find(&remote->url, err);
    bool is_url = strncmp(address, "http://", 7) == 0 || strncmp(address, "https://", 8) == 0;
    size_t length = strlen(address);
    while (length > 0 && address[length - 1] == '/')
        length--;
    if (length == 0 || length > REMOTE_URL_MAX_BYTES / 2 || strpbrk(address, " \t\r\n?#") != NULL)
        return error_set(err, -EINVAL, "'%s' is no address of a proxy: HOST:PORT or http://HOST:PORT", address);
    if (!is_url)
        buf_text(&remote->url, "http://");
    buf_bytes(&remote->url, address, length);
    return 0;
}

int remote_open(const char *address, struct remote **out_remote, struct error *err)
{
    CLEANUP(remote_cleanup) struct remote *remote = calloc(1, sizeof *remote);
    if (remote == NULL)
        return error_set(err, -ENOMEM, "no memory to ask the proxy");
    buf_init(&remote->url, REMOTE_URL_MAX_BYTES);
    int rc = remote_set_url(remote, address, err);
    if (rc == 0)
        rc = buf_status(&remote->url, err);
    if (rc < 0)
        return rc;
    (void)buf_string(&remote->url); /* ends the text with a NUL */
    rc = uv_loop_init(&remote->loop);
    if (rc < 0)
        return error_set(err, rc, "no event loop to ask the proxy");
    remote->has_loop = true;
    remote->resolve = resolve_new(&remote->loop);
    if (remote->resolve == NULL)
        return error_set(err, -ENOMEM, "no memory to ask the proxy");
    rc = http_client_new(&remote->loop, remote->resolve, REMOTE_CONNECTIONS_KEPT, &remote->client, err);
    if (rc < 0)
        return rc;
    *out_remote = TAKE(remote);
    return 0;
}

static void remote_closed(void *context)
{
    bool *is_closed = context;
    *is_closed = true;
}

void remote_close(struct remote *remote)
{
    if (remote == NULL)
        return;
    bool is_closed = remote->client == NULL;
    http_client_close(remote->client, remote_closed, &is_closed);
    while (!is_closed)
        (void)uv_run(&remote->loop, UV_RUN_ONCE);
    unsigned look_ups = resolve_close(remote->resolve);
    if (remote->has_loop && look_ups == 0) {
        (void)uv_run(&remote->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&remote->loop); /* all handles have closed by now */
    }
    buf_fini(&remote->url);
    free(remote);
}

const char *remote_url(const struct remote *remote)
{
    return remote->url.data; /* ended by remote_open() */
}

static void remote_done(void *context, struct http_client_result *result)
{
    struct remote_wait *wait = context;
    wait->is_done = true;
    wait->rc = result->code;
    wait->status = result->status;
    if (result->code < 0)
        (void)error_set(wait->err, result->code, "%s", result->err.text);
    else
        buf_bytes(wait->out, result->body->data, result->body->length);
}

/* The words of an answer that says no. */
static int remote_refused(const char *path, const struct buf *answer, unsigned status, struct error *err)
{
    json_t *object = json_loadb(answer->data != NULL ? answer->data : "", answer->length, 0, NULL);
    const char *why = json_string_value(json_object_get(object, "operation"));
    int code = status >= HTTP_CLIENT_FAULT && status < HTTP_SERVER_FAULT ? -ESRCH : -EPROTO;
    int rc = why != NULL ? error_set(err, code, "the proxy says: %s", why)
                         : error_set(err, code, "the proxy answers %s with status %u", path, status);
    json_decref(object);
    return rc;
}

int remote_get(struct remote *remote, const char *path, struct buf *out, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf url;
    CLEANUP(buf_cleanup) struct buf answer;
    buf_init(&url, REMOTE_URL_MAX_BYTES);
    buf_init(&answer, REMOTE_ANSWER_MAX_BYTES);
    buf_printf(&url, "%s%s", remote_url(remote), path);
    struct remote_wait wait = {.out = &answer, .err = err};
    const struct http_client_request request = {
        .url = buf_string(&url),
        .timeout_ms = REMOTE_TIMEOUT_MS,
        .body_max_bytes = REMOTE_ANSWER_MAX_BYTES,
        .on_done = remote_done,
        .context = &wait,
    };
    int rc = buf_status(&url, err);
    if (rc == 0)
        rc = http_client_start(remote->client, &request, NULL, err);
    if (rc < 0)
        return rc;
    while (!wait.is_done)
        (void)uv_run(&remote->loop, UV_RUN_ONCE); /* the call's deadline ends this */
    if (wait.rc == 0)
        wait.rc = buf_status(&answer, err);
    if (wait.rc < 0)
        return wait.rc;
    if (wait.status != HTTP_OK)
        return remote_refused(path, &answer, wait.status, err);
    buf_bytes(out, answer.data, answer.length);
    return buf_status(out, err);
}

int remote_get_json(struct remote *remote, const char *path, json_t **out_answer, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf answer;
    buf_init(&answer, REMOTE_ANSWER_MAX_BYTES);
    int rc = remote_get(remote, path, &answer, err);
    if (rc < 0)
        return rc;
    json_error_t fault;
    json_t *parsed = json_loadb(buf_string(&answer), answer.length, JSON_REJECT_DUPLICATES, &fault);
    if (parsed == NULL)
        return error_set(err, -EPROTO, "%s%s is no JSON: %s", remote_url(remote), path, fault.text);
    *out_answer = parsed;
    return 0;
}

void remote_query_text(struct buf *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    for (; *text != '\0'; text++) {
        if (strchr(plain, *text) != NULL)
            buf_char(out, *text);
        else
            buf_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
    }
}
