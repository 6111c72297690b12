/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sampler: the collectors of one node, opened together and run one by one.
 *
 * Owns the collectors; leaves timers and threads to its user, who may run different collectors on different threads at
 * once but each on one thread at a time. Keeps what each costs, since users ask what the monitor itself costs.
 */
#ifndef SAMPLE_SAMPLER_H
#define SAMPLE_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "sample/collector.h"
#include "util/buf.h"

struct sampler;

struct sampler_stats {
    uint64_t runs;
    uint64_t failures;
    int64_t cpu_ns;  /* of all runs */
    int64_t last_ns; /* wall time of the last run */
};

/*
 * Opens collectors. `names` is a comma-separated list of collectors, or NULL for all that are not optional; "+name"
 * adds to and "-name" removes from all. `config` is copied; its texts are borrowed for the sampler's life. A collector
 * that this machine lacks is left out, with a line for each appended to `notes` ("power: no /sys/class/powercap").
 * Returns owned through `*out_sampler`, freed by sampler_free(). -EINVAL names an unknown collector and the known ones;
 * -ENOMEM.
 */
MUST_CHECK int sampler_open(const struct sample_config *config, const char *names, struct buf *notes,
                            struct sampler **out_sampler, struct error *err);
void sampler_free(struct sampler *sampler);
DEFINE_CLEANUP(sampler, sampler_free);

/* How many collectors there are, and which one is at `index`, which is below that in all functions here. */
size_t sampler_count(const struct sampler *sampler);
const struct collector_ops *sampler_ops(const struct sampler *sampler, size_t index);

/* Runs collector `index`. A failure is counted and returned; the table then is the previous tick's. */
MUST_CHECK int sampler_run(struct sampler *sampler, size_t index, int64_t now_boot_ns, struct error *err);

/* Did the last run of `index` succeed? */
bool sampler_is_fresh(const struct sampler *sampler, size_t index);

/* What the last run that succeeded read. Borrowed, stable until the next sampler_run() of `index`. */
const struct sample_table *sampler_table(const struct sampler *sampler, size_t index);

/*
 * Appends what collector `index` wants said since the last call, a line each: "filesystem: '/x' (nfs) doesn't answer:
 * left out until it does". What was refused or made no sense in a table is told once. Not while sampler_run() of the
 * same collector runs.
 */
void sampler_take_notes(struct sampler *sampler, size_t index, struct buf *out);

/* What `index` has cost since sampler_open(). */
struct sampler_stats sampler_stats(const struct sampler *sampler, size_t index);

#endif
