/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node: the node's telemetry as metrics: of the node, of `main`, and of each job for as long as it lives.
 *
 * Collectors run on libuv's pool, since some of them are slow; what they read becomes values on the loop, when the next
 * tick asks. Each quantity has its name of the existing proxy (`proxy_…`) and one that follows Prometheus' rules
 * (`cicada_node_…`, base units); which of them are shown is chosen at the start. What a collector costs, and whether
 * its last run succeeded, are metrics too. Loop thread only.
 */
#ifndef PROXY_NODE_H
#define PROXY_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "proxy/jobs.h"
#include "sample/sampler.h"
#include "util/error.h"

struct node;

struct node_config {
    uv_loop_t *loop; /* NULL: samples are taken at once (tests) */
    struct jobs *jobs;
    struct sample_config sample; /* borrowed for the node's life */
    bool has_legacy;             /* proxy_… */
    bool has_cicada;             /* cicada_node_… */
};

/* -ENOMEM. Collectors that this machine lacks are left out. */
MUST_CHECK int node_new(const struct node_config *config, struct node **out_node, struct error *err);

/* Begins a sample, unless one still runs. */
void node_sample(struct node *node);
bool node_is_busy(const struct node *node);

/* What the last sample read becomes values, and jobs that are new get their telemetry. Before jobs_begin(). */
void node_apply(struct node *node, int64_t now_wall_us);

/* Not while it is busy. Its counters go into the bases. */
void node_free(struct node *node, int64_t now_mono_ns, int64_t now_wall_ms);

#endif
