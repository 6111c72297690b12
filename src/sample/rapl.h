/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rapl: the energy counters of CPU packages and their parts, from /sys/class/powercap (Intel, and AMD since Linux 5.8).
 *
 * Finds the zones, and turns their counters into ones that never wrap. One thread at a time.
 *
 * A counter starts at 0 again past the range that the kernel tells (262 kJ, a quarter of an hour of a busy package). So
 * a smaller value is a wrap, and the missing part is added; but not when the zone would have needed more than any has,
 * then the counter was reset (a suspended machine), and goes on from where it was. A period longer than the range lasts
 * loses whole turns, which nobody can see.
 */
#ifndef SAMPLE_RAPL_H
#define SAMPLE_RAPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/procfile.h"
#include "util/cleanup.h"
#include "util/error.h"

struct rapl_counter {
    uint64_t range_uj; /* the highest value before it wraps; 0: unknown, no step back is a wrap */
    uint64_t base_uj;  /* what past turns add to the raw value */
    uint64_t last_uj;  /* raw */
    int64_t last_boot_ns;
    bool is_started;
};

/* More than any zone takes, package or whole node, in watts: a wrap that needs more is a reset. */
#define RAPL_POWER_MAX_WATTS 20000

/* The counter's value without wraps, from a raw one that was read at `now_boot_ns`. Pure. */
uint64_t rapl_counter_step(struct rapl_counter *counter, uint64_t raw_uj, int64_t now_boot_ns);

struct rapl_zone {
    char *name;        /* "package-0", "dram-0": unique on this node */
    const char *group; /* "cpu", "memory", "gpu", "node" */
    struct procfile energy;
    struct rapl_counter counter;
};

struct rapl {
    size_t count;
    size_t denied;           /* zones that we may not read */
    struct rapl_zone *zones; /* [count] */
};

/*
 * Finds the zones under `sys_path`; there may be none. `*out_rapl` is to be freed by rapl_fini(). Only -ENOMEM fails,
 * and then it is empty.
 */
MUST_CHECK int rapl_init(struct rapl *out_rapl, const char *sys_path, struct error *err);
void rapl_fini(struct rapl *rapl);

/* Reads a zone's energy since some time in the past. False when it can't be read now. */
MUST_CHECK bool rapl_zone_read(struct rapl_zone *zone, int64_t now_boot_ns, uint64_t *out_energy_uj);

#endif
