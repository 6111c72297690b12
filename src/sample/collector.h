/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collector: what the file of one collector implements, and the list of all of them.
 *
 * A collector turns some files of /proc and /sys into a sample_table. Files stay open and are read again with pread()
 * into a buffer that is reused; a tick allocates nothing unless something new has appeared. Its parser is a pure
 * function of text, so that tests and fuzzers can call it. The roots of /proc and /sys are parameters: tests give
 * recorded trees. To add one: docs/howto/add-a-collector.md.
 */
#ifndef SAMPLE_COLLECTOR_H
#define SAMPLE_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/table.h"
#include "util/buf.h"
#include "util/error.h"

struct sample_config {
    const char *proc_path;    /* "/proc", or the root of a recorded tree */
    const char *sys_path;     /* "/sys" */
    const char *mount_prefix; /* put before mount points: "" here, the root of a recorded or foreign tree elsewhere */
    const char *cgroup;       /* cgroup of the job to watch: a pid as text, "self", a path, or NULL for none */
    bool has_frequency;       /* CPU frequencies are asked for: reading them wakes CPUs */
    unsigned frequency_per_tick; /* how many CPUs are asked in one tick, in turn */
};

struct collector; /* one collector's own state; each file defines its own and casts nothing: see collector_ops */

struct collector_ops {
    const char *name; /* "cpu" */
    const char *help; /* one line for a person: what it reads and says */
    bool is_optional; /* runs only when asked for by name */

    /*
     * Opens what will be read. `config` is borrowed for the collector's life. Returns owned, for close().
     * -ENODEV: this machine has none of it; `err` says what was looked for; that is said once, and costs nothing after.
     */
    int (*open)(const struct sample_config *config, struct collector **out_collector, struct error *err);

    /*
     * Reads once. Never blocks on anything but the kernel's own memory: what can (a mount, a device) goes through
     * sample/probe.h. On failure the table is as after the previous tick.
     */
    int (*read)(struct collector *collector, int64_t now_boot_ns, struct error *err);

    /* What was read. Borrowed, stable until the next read(). */
    const struct sample_table *(*table)(const struct collector *collector);

    /*
     * NULL for most. Appends what a person should know and hasn't been told, a line each: which mount doesn't answer,
     * that it does again. Each is said once; the caller logs them. Not while read() runs.
     */
    void (*take_notes)(struct collector *collector, struct buf *out);

    void (*close)(struct collector *collector); /* accepts NULL */
};

/* All collectors, in the order in which traces list them. NULL-terminated. */
extern const struct collector_ops *const collectors[];

#endif
