/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "net/auth.h"
#include "net/cidr.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/resolve.h"
#include "net/unix_listener.h"
#include "net/unix_socket.h"
#include "proxy/alarms_keeper.h"
#include "proxy/endpoints.h"
#include "proxy/own.h"
#include "proxy/ports.h"
#include "proxy/proxy.h"
#include "proxy/queue.h"
#include "proxy/retention.h"
#include "proxy/scrapes.h"
#include "proxy/wire.h"
#include "util/beacon.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"
#include "util/notify.h"

enum {
    DAEMON_SIGNALS = 2,
    DAEMON_PORTS_TRIED = 1000,
    DAEMON_CONNECTIONS_KEPT = 256, /* to targets that are scraped */
    DAEMON_END_MS = 10000,         /* then whatever still hangs is left behind */
    DAEMON_PATH_MAX_BYTES = 2 * PATH_MAX,
    DAEMON_PREFIX_MODE = 0700,
    DAEMON_ROOT_URL_MODE = 0644,
    DAEMON_TRIM_JOBS = 500, /* so many jobs have ended: their memory goes back to the system */
};

#define DAEMON_CUT_REPEAT_NS (10 * CLOCK_NS_PER_SECOND)

static const char daemon_http_suffix[] = ".http";

struct daemon {
    const struct settings *settings;
    char hostname[HOST_NAME_MAX + 1];
    uint16_t port;
    char *http_socket_path;
    struct unix_socket socket;
    struct unix_socket http_socket;
    struct auth *auth;
    struct endpoints endpoints;

    uv_loop_t loop;
    struct resolve *resolve;
    struct http_client *client;
    struct http_server *http;
    struct unix_listener *listener;
    struct proxy *proxy;
    struct own *own;
    struct alarms_keeper *alarms;
    struct scrapes *scrapes;
    struct queue *queue;
    struct retention *retention; /* NULL: no profiles are saved here */
    uv_signal_t signals[DAEMON_SIGNALS];
    uv_timer_t deadline;

    unsigned ends_awaited; /* parts that have not closed yet */
    bool is_ending;
    struct log_repeat cut_repeat;
    uint64_t trimmed_jobs_ended;
    int64_t told_mono_ns; /* --instrumentation: when what ticks cost was told last */
    struct proxy_stats told;
};

/* ---- programs that connect ---- */

struct daemon_client {
    struct daemon *daemon;
    struct wire *wire;
    pid_t pid;
};

static int64_t daemon_wall_ms(void)
{
    return clock_wall_ns() / CLOCK_NS_PER_MS;
}

static int daemon_on_open(void *context, const struct unix_listener_peer *peer, struct unix_connection *connection,
                          void **out_of)
{
    (void)connection; /* ended by what on_bytes returns */
    struct daemon *daemon = context;
    if (peer->uid != getuid() && peer->uid != 0)
        return -EPERM;
    struct daemon_client *client = malloc(sizeof *client);
    struct wire *wire = wire_open(proxy_jobs(daemon->proxy), proxy_segments(daemon->proxy), peer->uid, peer->pid);
    if (client == NULL || wire == NULL) {
        free(client);
        wire_close(wire, clock_mono_ns(), daemon_wall_ms());
        return -ENOMEM;
    }
    *client = (struct daemon_client){.daemon = daemon, .wire = wire, .pid = peer->pid};
    proxy_stats(daemon->proxy)->connections++;
    proxy_stats(daemon->proxy)->connections_total++;
    *out_of = client;
    return 0;
}

static int daemon_on_bytes(void *of, const void *bytes, size_t length, int fd)
{
    struct daemon_client *client = of;
    struct error err = {0};
    if (fd >= 0)
        wire_take_fd(client->wire, fd);
    int rc = wire_feed(client->wire, bytes, length, daemon_wall_ms(), &err);
    if (rc == 0)
        return 0;
    proxy_stats(client->daemon->proxy)->connections_cut++;
    uint64_t held_back = 0;
    if (log_repeat_is_due(&client->daemon->cut_repeat, clock_mono_ns(), DAEMON_CUT_REPEAT_NS, &held_back))
        log_warn("client cut off: pid=%d %s (and %" PRIu64 " others since the last such line)", (int)client->pid,
                 err.text, held_back);
    return rc;
}

static void daemon_on_client_end(void *of, enum unix_listener_end end)
{
    (void)end; /* what it counted stays in each case */
    struct daemon_client *client = of;
    proxy_stats(client->daemon->proxy)->connections--;
    wire_close(client->wire, clock_mono_ns(), daemon_wall_ms());
    free(client);
}

/* ---- ticks ---- */

/* What --instrumentation asks for. */
static void daemon_tell_costs(struct daemon *daemon, int64_t now_mono_ns)
{
    int64_t every_ns = (int64_t)daemon->settings->instrumentation_s * CLOCK_NS_PER_SECOND;
    if (every_ns == 0 || now_mono_ns - daemon->told_mono_ns < every_ns)
        return;
    const struct proxy_stats *stats = proxy_stats(daemon->proxy);
    uint64_t ticks = stats->ticks - daemon->told.ticks;
    double cpu_ms = (double)(stats->tick_cpu_ns - daemon->told.tick_cpu_ns) / (double)CLOCK_NS_PER_MS;
    log_info("ticks=%" PRIu64 " cpu_ms_per_tick=%.3f last_ms=%.3f missed=%" PRIu64, ticks,
             ticks > 0 ? cpu_ms / (double)ticks : 0, (double)stats->tick_last_ns / (double)CLOCK_NS_PER_MS,
             stats->ticks_missed - daemon->told.ticks_missed);
    daemon->told = *stats;
    daemon->told_mono_ns = now_mono_ns;
}

/* What jobs have freed lies scattered among what lives, and the allocator would keep it. */
static void daemon_give_memory_back(struct daemon *daemon)
{
    uint64_t jobs_ended = jobs_stats(proxy_jobs(daemon->proxy))->jobs_ended;
    if (jobs_ended - daemon->trimmed_jobs_ended < DAEMON_TRIM_JOBS)
        return;
    daemon->trimmed_jobs_ended = jobs_ended;
    (void)malloc_trim(0); /* there may be nothing to give */
}

static void daemon_on_tick(void *context, int64_t now_wall_ns)
{
    struct daemon *daemon = context;
    int64_t now_mono_ns = clock_mono_ns();
    if (daemon->alarms != NULL)
        alarms_keeper_tick(daemon->alarms, now_mono_ns, now_wall_ns / CLOCK_NS_PER_MS);
    if (daemon->retention != NULL)
        retention_tick(daemon->retention, now_mono_ns, now_wall_ns / CLOCK_NS_PER_MS);
    if (daemon->proxy == NULL)
        return; /* the last tick, made by proxy_close() */
    daemon_give_memory_back(daemon);
    daemon_tell_costs(daemon, now_mono_ns);
}

/* ---- the end ---- */

static void daemon_on_all_closed(void *context)
{
    struct daemon *daemon = context;
    if (--daemon->ends_awaited > 0)
        return;
    own_close(daemon->own);
    uv_close((uv_handle_t *)&daemon->deadline, NULL);
}

/* Nobody comes in any more: now what is behind them. */
static void daemon_on_entrance_closed(void *context)
{
    struct daemon *daemon = context;
    if (--daemon->ends_awaited > 0)
        return;
    daemon->ends_awaited = 2;
    http_client_close(TAKE(daemon->client), daemon_on_all_closed, daemon);
    retention_free(TAKE(daemon->retention));
    queue_free(TAKE(daemon->queue));
    proxy_close(TAKE(daemon->proxy), daemon_on_all_closed, daemon);
    scrapes_free(TAKE(daemon->scrapes)); /* its last tick has seen what they count, and has copied it */
}

static void daemon_on_deadline(uv_timer_t *timer)
{
    (void)timer;
    log_error("a file system or a name server didn't answer for %d ms: ending without it", DAEMON_END_MS);
    _exit(EXIT_FAILURE);
}

static void daemon_leave_places(struct daemon *daemon)
{
    beacon_remove(daemon->settings->socket_path);
    unix_socket_unlink(&daemon->socket, daemon->settings->socket_path);
    unix_socket_unlink(&daemon->http_socket, daemon->http_socket_path);
}

static void daemon_end(struct daemon *daemon)
{
    if (daemon->is_ending)
        return;
    daemon->is_ending = true;
    (void)notify_send(getenv("NOTIFY_SOCKET"), "STOPPING=1", NULL);                /* it sees the end all the same */
    (void)uv_timer_start(&daemon->deadline, daemon_on_deadline, DAEMON_END_MS, 0); /* fails only without a callback */
    daemon_leave_places(daemon);
    for (size_t i = 0; i < DAEMON_SIGNALS; i++)
        uv_close((uv_handle_t *)&daemon->signals[i], NULL);
    scrapes_stop(daemon->scrapes);
    daemon->endpoints.parts.alarms = NULL;
    daemon->endpoints.parts.scrapes = NULL;
    daemon->ends_awaited = 3;
    unix_listener_close(TAKE(daemon->listener), daemon_on_entrance_closed, daemon);
    http_server_close(TAKE(daemon->http), daemon_on_entrance_closed, daemon);
    alarms_keeper_close(TAKE(daemon->alarms), daemon_on_entrance_closed, daemon);
}

static void daemon_on_signal(uv_signal_t *handle, int number)
{
    struct daemon *daemon = handle->data;
    log_info("ending: signal %d", number);
    daemon_end(daemon);
}

/* ---- the start ---- */

static int daemon_uv(int rc, const char *what, struct error *err)
{
    return rc < 0 ? error_set(err, rc, "%s: %s", what, uv_strerror(rc)) : 0;
}

static int daemon_open_loop(struct daemon *daemon, struct error *err)
{
    static const int numbers[DAEMON_SIGNALS] = {SIGTERM, SIGINT};
    int rc = daemon_uv(uv_timer_init(&daemon->loop, &daemon->deadline), "making a timer", err);
    for (size_t i = 0; rc == 0 && i < DAEMON_SIGNALS; i++) {
        rc = daemon_uv(uv_signal_init(&daemon->loop, &daemon->signals[i]), "watching a signal", err);
        daemon->signals[i].data = daemon;
        if (rc == 0)
            rc =
                daemon_uv(uv_signal_start(&daemon->signals[i], daemon_on_signal, numbers[i]), "watching a signal", err);
    }
    if (rc < 0)
        return rc;
    daemon->resolve = resolve_new(&daemon->loop);
    if (daemon->resolve == NULL)
        return error_set(err, -ENOMEM, "no memory to look names up");
    rc = http_client_new(&daemon->loop, daemon->resolve, DAEMON_CONNECTIONS_KEPT, &daemon->client, err);
    return rc < 0 ? rc : own_new(&daemon->loop, &daemon->own, err);
}

/* One proxy serves a socket. */
static int daemon_check_socket(const struct settings *settings, struct error *err)
{
    if (unix_socket_is_live(settings->socket_path) != 1)
        return 0;
    struct beacon beacon = {0};
    int rc = beacon_read(settings->socket_path, &beacon, NULL);
    return error_set(err, -EADDRINUSE, "a proxy serves '%s' already%s%s; stop it, or choose another with --unix",
                     settings->socket_path, rc == 0 ? ", at " : "", rc == 0 ? beacon.address : "");
}

/* The prefix is where profiles are saved: that it can't be written must not come out at the end of a job. */
static int daemon_check_prefix(const struct settings *settings, struct error *err)
{
    int rc = file_make_directories(settings->prefix, DAEMON_PREFIX_MODE, err);
    if (rc < 0)
        return error_wrap(err, rc, "--target-prefix '%s'", settings->prefix);
    if (access(settings->prefix, W_OK | X_OK) < 0)
        return error_errno(err, "--target-prefix '%s' can't be written", settings->prefix);
    return 0;
}

static int daemon_open_auth(struct daemon *daemon, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, DAEMON_PATH_MAX_BYTES);
    const struct settings *settings = daemon->settings;
    if (settings->token_file != NULL)
        buf_text(&path, settings->token_file);
    else
        buf_printf(&path, "%s/root.token", settings->root_url_dir);
    struct auth_token token = {0};
    int rc = auth_token_read_or_create(buf_string(&path), &token, err);
    if (rc < 0)
        return error_wrap(err, rc, "the token");
    rc = auth_new(&token, getuid(), &daemon->auth, err);
    if (rc < 0)
        return rc;
    if (auth_add_host(daemon->auth, daemon->hostname, err) < 0)
        log_warn("'%s' is no name that a request can have as its Host", daemon->hostname);
    daemon->endpoints.auth = daemon->auth;
    daemon->endpoints.mode = settings->auth;
    return 0;
}

/* Why the port can't be had, when no other will do; 0: the next one may. */
static int daemon_judge_port(const struct daemon *daemon, uint16_t port, struct error *err)
{
    uid_t owner = 0;
    bool is_known = ports_owner(port, &owner, NULL) == 0;
    if (is_known && owner == getuid())
        return error_set(err, -EADDRINUSE,
                         "port %u is in use by a program of this user, perhaps another proxy (see 'cicada jobs'); "
                         "choose one with --port",
                         port);
    if (daemon->settings->has_port)
        return error_set(err, -EADDRINUSE, "port %u is in use by another user's program; choose another with --port",
                         port);
    log_warn("port %u is another user's: trying the next one", port);
    return 0;
}

static int daemon_listen_at(struct daemon *daemon, const char *address, struct error *err)
{
    uint16_t port = daemon->settings->port;
    for (unsigned tried = 0; tried < DAEMON_PORTS_TRIED && port + tried <= UINT16_MAX; tried++) {
        int rc = http_server_listen_tcp(daemon->http, address, (uint16_t)(port + tried), &daemon->port, err);
        if (rc != -EADDRINUSE)
            return rc;
        rc = daemon_judge_port(daemon, (uint16_t)(port + tried), err);
        if (rc < 0)
            return rc;
    }
    return error_set(err, -EADDRINUSE, "no port from %u on is free", port);
}

static int daemon_listen_http(struct daemon *daemon, struct error *err)
{
    const struct http_server_config config = {
        .loop = &daemon->loop, .on_request = endpoints_handle, .context = &daemon->endpoints};
    int rc = http_server_new(&config, &daemon->http, err);
    if (rc < 0)
        return rc;
    if (daemon->settings->listen != NULL)
        return daemon_listen_at(daemon, daemon->settings->listen, err);
    rc = daemon_listen_at(daemon, "::", err);
    return rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL ? daemon_listen_at(daemon, "0.0.0.0", err) : rc;
}

static int daemon_open_proxy(struct daemon *daemon, struct error *err)
{
    const struct settings *settings = daemon->settings;
    const struct proxy_config config = {
        .loop = &daemon->loop,
        .prefix = settings->prefix,
        .segments_path = settings->segments_path,
        .period_ms = settings->period_ms,
        .linger_ms = settings->linger_ms,
        .jobs_max = settings->jobs_max,
        .metrics_max = settings->metrics_max,
        .metrics_per_job_max = settings->metrics_per_job_max,
        .is_without_profiles = settings->is_without_profiles,
        .is_without_telemetry = settings->is_without_telemetry,
        .is_without_legacy = settings->is_without_legacy,
        .is_without_cicada = settings->is_without_cicada,
        .on_tick = daemon_on_tick,
        .context = daemon,
    };
    int rc = proxy_open(&config, &daemon->proxy, err);
    if (rc < 0)
        return rc;
    const struct alarms_keeper_config alarms = {
        .loop = &daemon->loop,
        .jobs = proxy_jobs(daemon->proxy),
        .client = daemon->client,
        .prefix = settings->prefix,
        .hostname = proxy_hostname(daemon->proxy),
        .command = settings->alarm_command,
        .webhook = settings->alarm_webhook,
    };
    rc = alarms_keeper_open(&alarms, &daemon->alarms, err);
    if (rc < 0)
        return rc;
    daemon->endpoints.parts = (struct endpoint_parts){
        .loop = &daemon->loop,
        .proxy = daemon->proxy,
        .own = daemon->own,
        .alarms = alarms_keeper_alarms(daemon->alarms),
    };
    return 0;
}

static int daemon_open_retention(struct daemon *daemon, struct error *err)
{
    const struct settings *settings = daemon->settings;
    if (settings->is_without_profiles)
        return 0; /* the root keeps them, and lets them go */
    const struct retention_config config = {
        .loop = &daemon->loop,
        .jobs = proxy_jobs(daemon->proxy),
        .profiles = proxy_profiles(daemon->proxy),
        .prefix = settings->prefix,
        .days = settings->keep_days,
        .mb = settings->keep_mb,
    };
    return retention_open(&config, &daemon->retention, err);
}

/* Whom we ask: those of -s now, others as they are named. */
static int daemon_open_scrapes(struct daemon *daemon, struct error *err)
{
    const struct settings *settings = daemon->settings;
    struct cidr legacy_peers = {0};
    int rc = settings->legacy_peers != NULL ? cidr_parse(settings->legacy_peers, &legacy_peers, err) : 0;
    if (rc < 0)
        return error_wrap(err, rc, "--legacy-peers");
    const struct scrapes_config config = {
        .loop = &daemon->loop,
        .jobs = proxy_jobs(daemon->proxy),
        .client = daemon->client,
        .resolve = daemon->resolve,
        .period_ms = proxy_period_ms(daemon->proxy),
        .port = daemon->port,
        .legacy_peers = &legacy_peers,
        .is_open = settings->auth == SETTINGS_AUTH_NONE,
    };
    daemon->scrapes = scrapes_new(&config);
    if (daemon->scrapes == NULL)
        return error_set(err, -ENOMEM, "no memory for targets");
    daemon->queue = queue_new(&daemon->loop);
    if (daemon->queue == NULL)
        return error_set(err, -ENOMEM, "no memory for the queue");
    daemon->endpoints.parts.scrapes = daemon->scrapes;
    daemon->endpoints.parts.queue = daemon->queue;
    rc = settings->targets != NULL ? scrapes_join_list(daemon->scrapes, settings->targets, err) : 0;
    return rc < 0 ? error_wrap(err, rc, "-s '%s'", settings->targets) : 0;
}

/* The sockets of programs and of HTTP as this user. */
static int daemon_listen_unix(struct daemon *daemon, struct error *err)
{
    const char *path = daemon->settings->socket_path;
    if (asprintf(&daemon->http_socket_path, "%s%s", path, daemon_http_suffix) < 0) {
        daemon->http_socket_path = NULL;
        return error_set(err, -ENOMEM, "no memory for a path");
    }
    int rc = unix_socket_open(path, &daemon->socket, err);
    if (rc == 0)
        rc = unix_socket_open(daemon->http_socket_path, &daemon->http_socket, err);
    if (rc < 0)
        return error_wrap(err, rc, "the socket for programs");
    const struct unix_listener_config config = {
        .loop = &daemon->loop,
        .on_open = daemon_on_open,
        .on_bytes = daemon_on_bytes,
        .on_end = daemon_on_client_end,
        .context = daemon,
    };
    rc = unix_listener_new(&config, daemon->socket.fd, &daemon->listener, err);
    return rc < 0 ? rc : http_server_listen_unix(daemon->http, daemon->http_socket.fd, err);
}

/* Says where it is: beside the socket, and for other nodes. */
static int daemon_announce(struct daemon *daemon, struct error *err)
{
    const struct settings *settings = daemon->settings;
    const char *address = settings->listen != NULL ? settings->listen : "127.0.0.1";
    bool is_any = strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
    bool needs_brackets = !is_any && strchr(address, ':') != NULL;
    struct beacon beacon = {.pid = getpid()};
    (void)snprintf(beacon.address, sizeof beacon.address, "%s%s%s:%u", needs_brackets ? "[" : "",
                   is_any ? "127.0.0.1" : address, needs_brackets ? "]" : "", daemon->port);
    (void)snprintf(beacon.http_socket, sizeof beacon.http_socket, "%s", daemon->http_socket_path);
    if (settings->token_file != NULL)
        (void)snprintf(beacon.token_file, sizeof beacon.token_file, "%s", settings->token_file);
    else
        (void)snprintf(beacon.token_file, sizeof beacon.token_file, "%s/root.token", settings->root_url_dir);
    int rc = beacon_write(settings->socket_path, &beacon, err);
    if (rc < 0 || settings->root != NULL || settings->waits_for_root)
        return rc;
    CLEANUP(buf_cleanup) struct buf path;
    CLEANUP(buf_cleanup) struct buf url;
    buf_init(&path, DAEMON_PATH_MAX_BYTES);
    buf_init(&url, DAEMON_PATH_MAX_BYTES);
    buf_printf(&path, "%s/root.url", settings->root_url_dir);
    buf_printf(&url, "%s:%u\n", daemon->hostname, daemon->port);
    struct error why = {0};
    if (file_replace(buf_string(&path), url.data, url.length, DAEMON_ROOT_URL_MODE, &why) < 0)
        log_warn("other nodes can't find this proxy: %s", why.text);
    return 0;
}

static void daemon_warn(const struct settings *settings)
{
    if (settings->root != NULL || settings->waits_for_root)
        log_warn("this version sums up one node: its totals do not reach %s",
                 settings->root != NULL ? settings->root : "the root");
}

static int daemon_open(struct daemon *daemon, struct error *err)
{
    int rc = daemon_open_loop(daemon, err);
    if (rc == 0)
        rc = daemon_open_auth(daemon, err);
    if (rc == 0)
        rc = daemon_listen_http(daemon, err);
    if (rc == 0)
        rc = daemon_open_proxy(daemon, err);
    if (rc == 0)
        rc = daemon_open_scrapes(daemon, err);
    if (rc == 0)
        rc = daemon_open_retention(daemon, err);
    if (rc == 0)
        rc = daemon_listen_unix(daemon, err);
    if (rc == 0)
        rc = daemon_announce(daemon, err);
    if (rc < 0)
        return rc;
    *own_sources(daemon->own) = (struct own_sources){
        .proxy = daemon->proxy,
        .http = daemon->http,
        .clients = daemon->listener,
        .refused_requests = &daemon->endpoints.refused,
    };
    daemon_warn(daemon->settings);
    return proxy_start(daemon->proxy, err);
}

/* Clients have descriptors, and so have segments: as many as we may have. Asked for before anybody counts them. */
static void daemon_raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* fails: fewer clients at once */
}

/* What a start that failed has opened goes with the process; only names in the file system must not stay. */
static int daemon_give_up(struct daemon *daemon, int rc)
{
    if (daemon->socket.fd >= 0)
        daemon_leave_places(daemon);
    return rc;
}

int daemon_run(const struct settings *settings, struct error *err)
{
    int rc = daemon_check_socket(settings, err);
    if (rc == 0)
        rc = daemon_check_prefix(settings, err);
    if (rc < 0)
        return rc;
    daemon_raise_descriptors();
    struct daemon *daemon = calloc(1, sizeof *daemon);
    if (daemon == NULL)
        return error_set(err, -ENOMEM, "no memory for a proxy");
    daemon->settings = settings;
    daemon->socket.fd = daemon->http_socket.fd = -1;
    if (gethostname(daemon->hostname, sizeof daemon->hostname) < 0 || daemon->hostname[0] == '\0')
        (void)snprintf(daemon->hostname, sizeof daemon->hostname, "localhost");
    rc = daemon_uv(uv_loop_init(&daemon->loop), "making the event loop", err);
    if (rc < 0) {
        free(daemon);
        return rc;
    }
    rc = daemon_open(daemon, err);
    if (rc < 0)
        return daemon_give_up(daemon, rc);
    log_info("ready: port=%u socket=%s prefix=%s pid=%d", daemon->port, settings->socket_path, settings->prefix,
             (int)getpid());
    (void)notify_send(getenv("NOTIFY_SOCKET"), "READY=1", NULL); /* nobody listens: nobody waits */
    (void)uv_run(&daemon->loop, UV_RUN_DEFAULT);                 /* until all has closed */
    if (resolve_close(daemon->resolve) > 0)
        _exit(EXIT_SUCCESS);
    (void)uv_run(&daemon->loop, UV_RUN_DEFAULT); /* what that closed */
    (void)uv_loop_close(&daemon->loop);
    auth_free(daemon->auth);
    own_free(daemon->own);
    free(daemon->http_socket_path);
    free(daemon);
    return 0;
}
