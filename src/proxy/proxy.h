/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proxy: the core of the metric proxy: everything that one node counts, put together.
 *
 * Owns jobs, segments, connections of clients, the node's telemetry, profiles and the state file, and runs the ticks.
 * Leaves sockets, HTTP and the tree to others: they hand in clients' bytes (wire.h) and read jobs (jobs.h), profiles
 * (profiles.h) and the counts here. Loop thread only.
 */
#ifndef PROXY_PROXY_H
#define PROXY_PROXY_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "proxy/jobs.h"
#include "proxy/profiles.h"
#include "proxy/segments.h"
#include "sample/sampler.h"
#include "util/error.h"

struct proxy;

#define PROXY_PERIOD_MS_DEFAULT           1000
#define PROXY_PERIOD_MS_MIN               10
#define PROXY_PERIOD_MS_MAX               3600000
#define PROXY_LINGER_MS_DEFAULT           3000
#define PROXY_JOBS_MAX_DEFAULT            10000
#define PROXY_METRICS_PER_JOB_MAX_DEFAULT 100000
#define PROXY_METRICS_MAX_DEFAULT         1000000

/* Fields of 0 or NULL take their defaults. Texts are copied. */
struct proxy_config {
    uv_loop_t *loop;           /* borrowed for the proxy's life */
    const char *hostname;      /* default: gethostname() up to its first dot */
    const char *prefix;        /* where `profiles` is; required */
    const char *segments_path; /* default: /dev/shm/cicada-<uid> */
    const char *state_path;    /* directory on this node; default: file_node_directory() */
    unsigned period_ms;
    unsigned linger_ms;
    size_t jobs_max;
    size_t metrics_per_job_max;
    size_t metrics_max;
    bool is_without_profiles;    /* -i: the root saves them */
    bool is_without_telemetry;   /* no samples of the node */
    bool is_without_legacy;      /* --names cicada */
    bool is_without_cicada;      /* --names legacy */
    struct sample_config sample; /* zeroed: this machine. Borrowed for the proxy's life */
    /* Called at the end of each tick, when all values are new: for traces, alarms, streams. May be NULL. */
    void (*on_tick)(void *context, int64_t now_wall_ns);
    void *context;
};

/*
 * Reads the state that an earlier proxy left, adopts segments, and is ready to tick. -EADDRINUSE: a live proxy of this
 * user has the state; -EINVAL names the field; -ENOMEM; what directories and files give. Nothing runs yet.
 */
MUST_CHECK int proxy_open(const struct proxy_config *config, struct proxy **out_proxy, struct error *err);

/* Ticks from now on; the first one at once. */
MUST_CHECK int proxy_start(struct proxy *proxy, struct error *err);

/*
 * The end (SIGTERM): a last tick, profiles of running jobs, the state for a successor; then `on_closed` on the loop
 * after handles have closed and work has come back. Clients must have been closed (wire_close).
 */
void proxy_close(struct proxy *proxy, void (*on_closed)(void *context), void *context);

/* One tick now, between those of the timer: /set and the like show at once without it. */
void proxy_tick(struct proxy *proxy);

/* The parts, borrowed for the proxy's life; never NULL. */
struct jobs *proxy_jobs(struct proxy *proxy);
struct segments *proxy_segments(struct proxy *proxy);
struct profiles *proxy_profiles(struct proxy *proxy);

/* What it was told, or found out. */
unsigned proxy_period_ms(const struct proxy *proxy);
const char *proxy_hostname(const struct proxy *proxy);

/* Of the whole proxy: what is in JOB_MAIN's counts. */
struct job_counts proxy_counts(struct proxy *proxy);

/*
 * Metrics of `main` that are set by hand; what they do is seen at once and lasts over restarts. proxy_push() declares a
 * counter `name` with `doc` and adds `value` (often 0). proxy_set() and proxy_accumulate() fail with -ENOENT when
 * nobody has declared it, -EINVAL for a value that isn't finite (accumulate: or below 0 for a counter).
 */
MUST_CHECK int proxy_push(struct proxy *proxy, const char *name, double value, const char *doc, struct error *err);
MUST_CHECK int proxy_set(struct proxy *proxy, const char *name, double value, struct error *err);
MUST_CHECK int proxy_accumulate(struct proxy *proxy, const char *name, double value, struct error *err);

/* What ticks cost and what was refused; for the proxy's own metrics beside jobs_stats() and segments_stats(). */
struct proxy_stats {
    uint64_t ticks;
    uint64_t ticks_missed; /* periods that passed without one */
    int64_t tick_last_ns;
    int64_t tick_cpu_ns; /* of all */
    uint64_t state_writes;
    uint64_t state_failures;
    uint64_t connections; /* JSON and hello, open now */
    uint64_t connections_total;
    uint64_t connections_cut; /* ended by us, with a reason in the log */
};
struct proxy_stats *proxy_stats(struct proxy *proxy);

#endif
