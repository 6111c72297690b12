/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_server: src/net as a daemon uses it, for tests that drive it by raw sockets.
 *
 *     net_server [--http-socket PATH] [--socket PATH] [--token PATH] [--connections N] [--header-ms N] [--request-ms N]
 *                [--idle-ms N] [--sweep-ms N] [--address A] [--port N]
 *
 * Prints its port when it listens; SIGTERM ends it as a daemon ends. /stats tells what happened.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "net/auth.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/resolve.h"
#include "net/unix_listener.h"
#include "net/unix_socket.h"
#include "util/clock.h"

enum { ANSWER_MAX_BYTES = 256 << 20, UPLOAD_MAX_BYTES = 4 << 20, CALLS_KEPT = 16, PARTS = 3 };

struct host {
    uv_loop_t loop;
    uv_signal_t on_term;
    struct http_server *server;
    struct http_client *client;
    struct resolve *resolve;
    struct unix_listener *listener;
    struct auth *auth;
    struct unix_socket http_socket, socket;
    const char *http_socket_path, *socket_path, *token_path, *address;
    uint16_t port;
    struct http_server_config config;
    unsigned parts_open, lookups_left;
    uint64_t marks, gone, streams_ended, loop_turns;
    uint64_t client_bytes, client_fds, client_fds_without_cloexec, client_ends[4];
    uint64_t client_uid, client_pid;
    int client_pidfd_good;
    uv_prepare_t turn;
};

/* A request that is answered later, a stream, or a request to somebody else. */
struct job {
    struct host *host;
    struct http_request *request;
    struct http_client_call *call;
    uv_timer_t timer;
    uint64_t left;
    uint64_t period_ms;
    int is_endless;
};

static uint64_t number_of(const struct http_request *request, const char *name, uint64_t otherwise)
{
    const char *text = http_target_param(http_request_target(request), name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void answer_text(struct http_request *request, struct buf *body)
{
    struct http_request_answer answer = {.body = body};
    http_request_answer(request, &answer);
}

static void answer_hello(struct host *host, struct http_request *request)
{
    (void)host;
    struct buf body;
    buf_init(&body, ANSWER_MAX_BYTES);
    buf_text(&body, "{\"hello\":true}");
    answer_text(request, &body);
}

static void answer_mark(struct host *host, struct http_request *request)
{
    host->marks++;
    answer_hello(host, request);
}

static void answer_echo(struct host *host, struct http_request *request)
{
    (void)host;
    const struct http_target *target = http_request_target(request);
    const struct buf *upload = http_request_body(request);
    const struct http_request_peer *peer = http_request_peer(request);
    const char *probe = http_request_header(request, "x-probe");
    struct buf body;
    buf_init(&body, ANSWER_MAX_BYTES);
    buf_text(&body, "{\"method\":");
    buf_json_string(&body, http_request_method(request));
    buf_text(&body, ",\"path\":");
    buf_json_string(&body, target->path);
    buf_text(&body, ",\"params\":[");
    for (size_t i = 0; i < target->param_count; i++) {
        buf_text(&body, i > 0 ? ",[" : "[");
        buf_json_string(&body, target->params[i].name);
        buf_char(&body, ',');
        buf_json_string(&body, target->params[i].value);
        buf_char(&body, ']');
    }
    buf_text(&body, "],\"probe\":");
    buf_json_string(&body, probe != NULL ? probe : "");
    buf_printf(&body, ",\"unix\":%s,\"uid\":%" PRIi64 ",\"length\":%zu,\"body\":", peer->is_unix ? "true" : "false",
               peer->uid == (uid_t)-1 ? -1 : (int64_t)peer->uid, upload->length);
    buf_json_bytes(&body, upload->data, upload->length < 1000 ? upload->length : 1000);
    buf_char(&body, '}');
    answer_text(request, &body);
}

static void answer_big(struct host *host, struct http_request *request)
{
    (void)host;
    uint64_t length = number_of(request, "bytes", 1000);
    struct buf body;
    buf_init(&body, ANSWER_MAX_BYTES);
    for (uint64_t i = 0; body.length < length && body.status == 0; i++)
        buf_printf(&body, "line %" PRIu64 "\n", i);
    buf_truncate(&body, length);
    struct http_request_answer answer = {.content_type = "text/plain", .body = &body};
    http_request_answer(request, &answer);
}

static void on_job_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static struct job *job_new(struct host *host, struct http_request *request)
{
    struct job *job = calloc(1, sizeof *job);
    if (job == NULL)
        abort();
    *job = (struct job){.host = host, .request = request};
    (void)uv_timer_init(&host->loop, &job->timer);
    job->timer.data = job;
    return job;
}

static void job_free(struct job *job)
{
    uv_close((uv_handle_t *)&job->timer, on_job_closed);
}

static void on_gone(void *context)
{
    struct job *job = context;
    job->host->gone++;
    http_client_cancel(job->call);
    job_free(job);
}

static void on_later(uv_timer_t *timer)
{
    struct job *job = timer->data;
    answer_hello(job->host, job->request);
    job_free(job);
}

static void answer_later(struct host *host, struct http_request *request)
{
    struct job *job = job_new(host, request);
    http_request_on_gone(request, on_gone, job);
    (void)uv_timer_start(&job->timer, on_later, number_of(request, "ms", 10), 0);
}

static void on_event(uv_timer_t *timer)
{
    struct job *job = timer->data;
    http_request_wake(job->request);
}

static enum http_request_more produce(void *context, struct buf *out)
{
    struct job *job = context;
    if (job->is_endless) {
        for (int i = 0; i < 1000; i++)
            buf_text(out, "data: all the same, for ever and ever\n\n");
        return HTTP_REQUEST_MORE;
    }
    if (uv_is_active((uv_handle_t *)&job->timer) != 0)
        return HTTP_REQUEST_WAIT;
    buf_printf(out, "data: %" PRIu64 "\n\n", job->left);
    if (--job->left == 0)
        return HTTP_REQUEST_END;
    (void)uv_timer_start(&job->timer, on_event, job->period_ms, 0);
    return HTTP_REQUEST_MORE;
}

static void on_stream_end(void *context)
{
    struct job *job = context;
    job->host->streams_ended++;
    job_free(job);
}

static void answer_stream(struct host *host, struct http_request *request)
{
    struct job *job = job_new(host, request);
    job->left = number_of(request, "n", 3);
    job->period_ms = number_of(request, "ms", 10);
    job->is_endless = job->left == 0;
    struct http_request_answer head = {.content_type = "text/event-stream"};
    const struct http_request_source source = {.produce = produce, .on_end = on_stream_end, .context = job};
    http_request_stream(request, &head, &source);
}

static void on_fetched(void *context, struct http_client_result *result)
{
    struct job *job = context;
    struct buf body;
    buf_init(&body, ANSWER_MAX_BYTES);
    buf_printf(&body, "{\"code\":%d,\"status\":%u,\"length\":%zu,\"took_ms\":%" PRIi64 ",\"why\":", result->code,
               result->status, result->body->length, result->took_ns / CLOCK_NS_PER_MS);
    buf_json_string(&body, result->err.text);
    buf_text(&body, ",\"type\":");
    buf_json_string(&body, result->content_type);
    buf_char(&body, '}');
    answer_text(job->request, &body);
    job_free(job);
}

static void answer_fetch(struct host *host, struct http_request *request)
{
    struct error err = {0};
    const char *url = http_target_param(http_request_target(request), "url");
    struct job *job = job_new(host, request);
    const struct http_client_request fetch = {
        .url = url != NULL ? url : "",
        .timeout_ms = (unsigned)number_of(request, "timeout", 5000),
        .body_max_bytes = number_of(request, "max", 1 << 20),
        .on_done = on_fetched,
        .context = job,
    };
    if (http_client_start(host->client, &fetch, &job->call, &err) < 0) {
        http_request_fail(request, 502, err.text);
        job_free(job);
        return;
    }
    http_request_on_gone(request, on_gone, job);
}

static void answer_change(struct host *host, struct http_request *request)
{
    struct error err = {0};
    struct auth_facts facts;
    auth_gather(request, &facts);
    if (auth_may_change(host->auth, &facts, clock_wall_ns() / CLOCK_NS_PER_MS, &err) < 0)
        http_request_fail(request, 403, err.text);
    else
        answer_hello(host, request);
}

static void answer_stats(struct host *host, struct http_request *request)
{
    struct http_server_stats stats = http_server_stats(host->server);
    struct unix_listener_stats clients = {0};
    if (host->listener != NULL)
        clients = unix_listener_stats(host->listener);
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"connections", stats.connections},
        {"connections_total", stats.connections_total},
        {"requests", stats.requests_total},
        {"refused", stats.refused_total},
        {"timed_out", stats.timed_out_total},
        {"evicted", stats.evicted_total},
        {"accept_pauses", stats.accept_pauses_total},
        {"marks", host->marks},
        {"gone", host->gone},
        {"streams_ended", host->streams_ended},
        {"loop_turns", host->loop_turns},
        {"clients", clients.connections},
        {"clients_total", clients.connections_total},
        {"clients_refused", clients.refused_total},
        {"clients_pauses", clients.accept_pauses_total},
        {"clients_extra_fds", clients.extra_fds_total},
        {"client_bytes", host->client_bytes},
        {"client_fds", host->client_fds},
        {"client_fds_without_cloexec", host->client_fds_without_cloexec},
        {"client_uid", host->client_uid},
        {"client_pid", host->client_pid},
        {"client_pidfd_good", (uint64_t)host->client_pidfd_good},
        {"ended_by_peer", host->client_ends[UNIX_LISTENER_END_PEER]},
        {"ended_by_user", host->client_ends[UNIX_LISTENER_END_USER]},
        {"ended_by_error", host->client_ends[UNIX_LISTENER_END_ERROR]},
    };
    struct buf body;
    buf_init(&body, ANSWER_MAX_BYTES);
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        buf_printf(&body, "%s\"%s\":%" PRIu64, i > 0 ? "," : "{", rows[i].name, rows[i].value);
    buf_char(&body, '}');
    answer_text(request, &body);
}

static void on_request(void *context, struct http_request *request)
{
    static const struct {
        const char *path;
        void (*answer)(struct host *host, struct http_request *request);
    } routes[] = {
        {"/hello", answer_hello}, {"/mark", answer_mark},     {"/echo", answer_echo},
        {"/big", answer_big},     {"/later", answer_later},   {"/stream", answer_stream},
        {"/fetch", answer_fetch}, {"/change", answer_change}, {"/stats", answer_stats},
    };
    const char *path = http_request_target(request)->path;
    for (size_t i = 0; i < ARRAY_LENGTH(routes); i++) {
        if (strncmp(path, routes[i].path, strlen(routes[i].path)) == 0) {
            routes[i].answer(context, request);
            return;
        }
    }
    http_request_fail(request, 404, "no such path");
}

static size_t body_max_bytes(void *context, const char *method, const char *path)
{
    (void)context;
    (void)method;
    return strcmp(path, "/echo/large") == 0 ? UPLOAD_MAX_BYTES : HTTP_SERVER_BODY_MAX_BYTES_DEFAULT;
}

/* Clients of the other socket: "cut" ends them. */

static int on_open(void *context, const struct unix_listener_peer *peer, struct unix_connection *connection,
                   void **out_of)
{
    (void)connection;
    struct host *host = context;
    *out_of = host;
    host->client_uid = peer->uid;
    host->client_pid = (uint64_t)peer->pid;
    host->client_pidfd_good = peer->pidfd >= 0 && (fcntl(peer->pidfd, F_GETFD) & FD_CLOEXEC) != 0;
    return 0;
}

static int on_bytes(void *of, const void *bytes, size_t length, int fd)
{
    struct host *host = of;
    host->client_bytes += length;
    if (fd >= 0) {
        host->client_fds++;
        host->client_fds_without_cloexec += (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0;
        close(fd);
    }
    return length == 3 && memcmp(bytes, "cut", 3) == 0 ? -1 : 0;
}

static void on_end(void *of, enum unix_listener_end end)
{
    struct host *host = of;
    host->client_ends[end]++;
}

/* The end */

static void on_part_closed(void *context)
{
    struct host *host = context;
    if (--host->parts_open == 0)
        uv_stop(&host->loop); /* a name server that hangs would keep the loop */
}

static void on_term(uv_signal_t *handle, int number)
{
    (void)number;
    struct host *host = handle->data;
    host->parts_open = host->listener != NULL ? PARTS : PARTS - 1;
    uv_close((uv_handle_t *)&host->on_term, NULL);
    uv_close((uv_handle_t *)&host->turn, NULL);
    http_server_close(host->server, on_part_closed, host);
    http_client_close(host->client, on_part_closed, host);
    unix_listener_close(host->listener, on_part_closed, host);
    host->lookups_left = resolve_close(host->resolve);
    unix_socket_unlink(&host->socket, host->socket_path);
    unix_socket_unlink(&host->http_socket, host->http_socket_path);
}

static void on_turn(uv_prepare_t *handle)
{
    struct host *host = handle->data;
    host->loop_turns++;
}

static int open_auth(struct host *host, struct error *err)
{
    struct auth_token token = {0};
    int rc = host->token_path[0] != '\0' ? auth_token_read_or_create(host->token_path, &token, err) : 0;
    if (rc == 0)
        rc = auth_new(host->token_path[0] != '\0' ? &token : NULL, geteuid(), &host->auth, err);
    return rc == 0 ? auth_add_host(host->auth, "node7.cluster", err) : rc;
}

static int open_host(struct host *host, struct error *err)
{
    host->config.loop = &host->loop;
    host->config.on_request = on_request;
    host->config.body_max_bytes = body_max_bytes;
    host->config.context = host;
    const struct unix_listener_config clients = {
        .loop = &host->loop, .on_open = on_open, .on_bytes = on_bytes, .on_end = on_end, .context = host};
    host->resolve = resolve_new(&host->loop);
    int rc = open_auth(host, err);
    if (rc == 0)
        rc = http_server_new(&host->config, &host->server, err);
    if (rc == 0)
        rc = http_client_new(&host->loop, host->resolve, CALLS_KEPT, &host->client, err);
    if (rc == 0)
        rc = http_server_listen_tcp(host->server, host->address, host->port, &host->port, err);
    if (rc == 0 && host->http_socket_path[0] != '\0') {
        rc = unix_socket_open(host->http_socket_path, &host->http_socket, err);
        if (rc == 0)
            rc = http_server_listen_unix(host->server, host->http_socket.fd, err);
    }
    if (rc == 0 && host->socket_path[0] != '\0') {
        rc = unix_socket_open(host->socket_path, &host->socket, err);
        if (rc == 0)
            rc = unix_listener_new(&clients, host->socket.fd, &host->listener, err);
    }
    return rc;
}

static int parse_options(struct host *host, int argc, char **argv)
{
    static const struct option options[] = {
        {"http-socket", required_argument, NULL, 'H'},
        {"socket", required_argument, NULL, 's'},
        {"token", required_argument, NULL, 't'},
        {"connections", required_argument, NULL, 'c'},
        {"header-ms", required_argument, NULL, 'h'},
        {"request-ms", required_argument, NULL, 'r'},
        {"idle-ms", required_argument, NULL, 'i'},
        {"sweep-ms", required_argument, NULL, 'w'},
        {"address", required_argument, NULL, 'a'},
        {"port", required_argument, NULL, 'p'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        unsigned number = optarg != NULL ? (unsigned)strtoul(optarg, NULL, 10) : 0;
        switch (option) {
        case 'H':
            host->http_socket_path = optarg;
            break;
        case 's':
            host->socket_path = optarg;
            break;
        case 't':
            host->token_path = optarg;
            break;
        case 'c':
            host->config.connections_max = number;
            break;
        case 'h':
            host->config.header_timeout_ms = number;
            break;
        case 'r':
            host->config.request_timeout_ms = number;
            break;
        case 'i':
            host->config.idle_timeout_ms = number;
            break;
        case 'w':
            host->config.sweep_ms = number;
            break;
        case 'a':
            host->address = optarg;
            break;
        case 'p':
            host->port = (uint16_t)number;
            break;
        default:
            return -1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct host host = {.http_socket_path = "", .socket_path = "", .token_path = "", .address = "127.0.0.1"};
    struct error err = {0};
    (void)signal(SIGPIPE, SIG_IGN);
    if (parse_options(&host, argc, argv) < 0 || uv_loop_init(&host.loop) < 0)
        return 2;
    (void)uv_signal_init(&host.loop, &host.on_term);
    (void)uv_prepare_init(&host.loop, &host.turn);
    host.on_term.data = &host;
    host.turn.data = &host;
    (void)uv_signal_start(&host.on_term, on_term, SIGTERM);
    (void)uv_prepare_start(&host.turn, on_turn);
    if (open_host(&host, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    (void)printf("%u\n", host.port);
    (void)fflush(stdout);
    (void)uv_run(&host.loop, UV_RUN_DEFAULT);
    (void)uv_run(&host.loop, UV_RUN_NOWAIT); /* handles that were closed last */
    auth_free(host.auth);
    if (host.lookups_left > 0)
        _exit(0);
    return uv_loop_close(&host.loop) == 0 ? 0 : 3; /* something of ours still lives */
}
