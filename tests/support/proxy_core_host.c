/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proxy_core_host: the core of the metric proxy with a UNIX socket and without HTTP, for tests.
 *
 *     proxy_core_host PREFIX SOCKET DUMP [--period-ms N] [--linger-ms N] [--telemetry]
 *
 * SIGUSR1 runs a tick and writes all jobs to DUMP (one JSON text, replaced whole); SIGTERM ends it as a daemon ends.
 * Prints "ready" when clients can connect.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <uv.h>

#include "proxy/proxy.h"
#include "proxy/wire.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"

enum { HOST_BACKLOG = 1024, HOST_READ_BYTES = 1 << 16, HOST_DUMP_MAX_BYTES = 1 << 28 };

struct host;

struct client {
    struct host *host;
    struct wire *wire;
    int fd;
    uv_poll_t poll;
    struct client *next;
};

struct host {
    uv_loop_t loop;
    struct proxy *proxy;
    const char *dump_path;
    int listen_fd;
    uv_poll_t listen_poll;
    uv_signal_t on_dump, on_end;
    struct client *clients;
};

static int64_t wall_ms(void)
{
    return clock_wall_ns() / CLOCK_NS_PER_MS;
}

static void on_client_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void close_client(struct client *client)
{
    struct client **link = &client->host->clients;
    while (*link != client)
        link = &(*link)->next;
    *link = client->next;
    wire_close(client->wire, clock_mono_ns(), wall_ms());
    uv_close((uv_handle_t *)&client->poll, on_client_closed);
    close(client->fd);
}

static ssize_t receive(struct client *client, char *bytes, size_t length)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = bytes, .iov_len = length};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(client->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *rights = got >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (rights != NULL && rights->cmsg_type == SCM_RIGHTS) {
        int fd;
        memcpy(&fd, CMSG_DATA(rights), sizeof fd);
        wire_take_fd(client->wire, fd);
    }
    return got;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct client *client = poll->data;
    static char bytes[HOST_READ_BYTES];
    ssize_t got = receive(client, bytes, sizeof bytes);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    struct error err = {0};
    int rc = got > 0 ? wire_feed(client->wire, bytes, (size_t)got, wall_ms(), &err) : 0;
    if (rc < 0) {
        proxy_stats(client->host->proxy)->connections_cut++;
        log_warn("client cut off: %s", err.text);
    }
    if (got <= 0 || rc < 0)
        close_client(client);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct host *host = poll->data;
    int fd = accept4(host->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct ucred peer = {0};
    socklen_t length = sizeof peer;
    struct client *client = fd >= 0 ? calloc(1, sizeof *client) : NULL;
    if (client == NULL)
        return;
    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
    *client = (struct client){.host = host, .fd = fd, .next = host->clients};
    client->wire = wire_open(proxy_jobs(host->proxy), proxy_segments(host->proxy), peer.uid, peer.pid);
    host->clients = client;
    client->poll.data = client;
    (void)uv_poll_init(&host->loop, &client->poll, fd);
    (void)uv_poll_start(&client->poll, UV_READABLE, on_readable);
}

static void put_job(struct host *host, size_t index, struct buf *out)
{
    const struct job *job = jobs_at(proxy_jobs(host->proxy), index);
    struct job_counts counts = job_counts(job);
    buf_printf(out, "%s{\"shown\":", index > 0 ? "," : "");
    buf_json_string(out, job_shown_id(job));
    buf_text(out, ",\"key\":");
    buf_json_string(out, job_key(job));
    buf_printf(
        out, ",\"ranks\":%llu,\"processes\":%llu,\"contributors_seen\":%llu,\"job\":", (unsigned long long)counts.ranks,
        (unsigned long long)counts.processes, (unsigned long long)counts.contributors_seen);
    profiles_job_to_json(job, true, true, out);
    buf_char(out, '}');
}

static void put_stats(struct host *host, struct buf *out)
{
    struct jobs *jobs = proxy_jobs(host->proxy);
    struct segments_stats segments = segments_stats(proxy_segments(host->proxy));
    const struct jobs_stats *stats = jobs_stats(jobs);
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"segments", segments_count(proxy_segments(host->proxy))},
        {"segments_found", segments.found},
        {"segments_folded", segments.folded},
        {"segments_refused", segments.refused},
        {"names_mapped", stats->names_mapped},
        {"metrics_conflicting", stats->metrics_conflicting},
        {"metrics_refused", stats->metrics_refused},
        {"connections_cut", proxy_stats(host->proxy)->connections_cut},
        {"state_writes", proxy_stats(host->proxy)->state_writes},
        {"ticks", proxy_stats(host->proxy)->ticks},
        {"tick_cpu_ns", (uint64_t)proxy_stats(host->proxy)->tick_cpu_ns},
        {"profiles", profiles_count(proxy_profiles(host->proxy))},
    };
    buf_text(out, "\"stats\":{");
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        buf_printf(out, "%s\"%s\":%llu", i > 0 ? "," : "", rows[i].name, (unsigned long long)rows[i].value);
    buf_char(out, '}');
}

static void on_dump(uv_signal_t *handle, int number)
{
    (void)number;
    struct host *host = handle->data;
    proxy_tick(host->proxy);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, HOST_DUMP_MAX_BYTES);
    buf_text(&text, "{\"jobs\":[");
    for (size_t i = 0; i < jobs_count(proxy_jobs(host->proxy)); i++)
        put_job(host, i, &text);
    buf_text(&text, "],");
    put_stats(host, &text);
    buf_char(&text, '}');
    struct error err = {0};
    if (file_replace(host->dump_path, text.data, text.length, 0600, &err) < 0)
        log_error("%s", err.text);
}

static void on_closed(void *context)
{
    (void)context;
}

static void on_end(uv_signal_t *handle, int number)
{
    (void)number;
    struct host *host = handle->data;
    while (host->clients != NULL)
        close_client(host->clients);
    uv_close((uv_handle_t *)&host->listen_poll, NULL);
    uv_close((uv_handle_t *)&host->on_dump, NULL);
    uv_close((uv_handle_t *)&host->on_end, NULL);
    proxy_close(host->proxy, on_closed, host);
}

static bool listen_at(struct host *host, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    (void)unlink(path);
    host->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(host->listen_fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(host->listen_fd, HOST_BACKLOG) < 0)
        return false;
    host->listen_poll.data = host;
    return uv_poll_init(&host->loop, &host->listen_poll, host->listen_fd) == 0 &&
           uv_poll_start(&host->listen_poll, UV_READABLE, on_connection) == 0;
}

static void take_options(int argc, char **argv, struct proxy_config *config)
{
    config->is_without_telemetry = true;
    for (int i = 4; i < argc; i++) {
        if (strcmp(argv[i], "--telemetry") == 0)
            config->is_without_telemetry = false;
        else if (strcmp(argv[i], "--period-ms") == 0 && i + 1 < argc)
            config->period_ms = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--linger-ms") == 0 && i + 1 < argc)
            config->linger_ms = (unsigned)strtoul(argv[++i], NULL, 10);
    }
}

static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        (void)fprintf(stderr, "usage: %s PREFIX SOCKET DUMP [options]\n", argv[0]);
        return 2;
    }
    raise_descriptors();
    static struct host host;
    host.dump_path = argv[3];
    log_open(2, LOG_LEVEL_INFO);
    (void)uv_loop_init(&host.loop);
    struct proxy_config config = {.loop = &host.loop, .prefix = argv[1]};
    take_options(argc, argv, &config);
    struct error err = {0};
    if (proxy_open(&config, &host.proxy, &err) < 0 || proxy_start(host.proxy, &err) < 0) {
        log_error("%s", err.text);
        return 1;
    }
    if (!listen_at(&host, argv[2])) {
        log_error("'%s': %s", argv[2], strerrordesc_np(errno));
        return 1;
    }
    host.on_dump.data = host.on_end.data = &host;
    (void)uv_signal_init(&host.loop, &host.on_dump);
    (void)uv_signal_init(&host.loop, &host.on_end);
    (void)uv_signal_start(&host.on_dump, on_dump, SIGUSR1);
    (void)uv_signal_start(&host.on_end, on_end, SIGTERM);
    (void)printf("ready\n");
    (void)fflush(stdout);
    (void)uv_run(&host.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&host.loop);
    close(host.listen_fd);
    return 0;
}
