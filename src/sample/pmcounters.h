/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmcounters: the energy and power of an HPE Cray blade, from /sys/cray/pm_counters.
 *
 * Its controller measures ten times a second; a file says "245 W 1668514395313524 us" or "123456 J 1668514395313524
 * us". "power" and "energy" are the whole node, "cpu_power", "memory_energy", "accel0_power" its parts. One thread at a
 * time.
 */
#ifndef SAMPLE_PMCOUNTERS_H
#define SAMPLE_PMCOUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/procfile.h"
#include "util/cleanup.h"
#include "util/error.h"

struct pmcounters_part {
    char *name;        /* "node", "cpu", "memory", "accel0" */
    const char *group; /* "node", "cpu", "memory", "gpu" */
    struct procfile power;
    struct procfile energy;
};

struct pmcounters {
    size_t count;
    struct pmcounters_part *parts; /* [count] */
};

/*
 * Finds the parts under `sys_path`; there may be none. `*out_counters` is to be freed by pmcounters_fini(). Only
 * -ENOMEM fails, and then it is empty.
 */
MUST_CHECK int pmcounters_init(struct pmcounters *out_counters, const char *sys_path, struct error *err);
void pmcounters_fini(struct pmcounters *counters);

/* Reads a part's power (watts) or energy (joules). False when it has none, or can't be read now. */
MUST_CHECK bool pmcounters_power(struct pmcounters_part *part, uint64_t *out_watts);
MUST_CHECK bool pmcounters_energy(struct pmcounters_part *part, uint64_t *out_joules);

/* Takes the number from a file's text if it is of that unit ("W", "J"). Pure. */
MUST_CHECK bool pmcounters_parse(const char *text, size_t length, const char *unit, uint64_t *out_number);

#endif
