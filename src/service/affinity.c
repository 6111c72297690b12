/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/affinity.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* A cpu_set_t holds 1,024 CPUs, and the kernel refuses a set that is smaller than its own: this bounds the growth. */
enum { AFFINITY_CPUS_FIRST = 1024, AFFINITY_CPUS_MAX = 1 << 20 };

static void affinity_set_cleanup(cpu_set_t **set)
{
    CPU_FREE(*set);
}

int affinity_json(struct buf *out, struct error *err)
{
    for (size_t cpus = AFFINITY_CPUS_FIRST; cpus <= AFFINITY_CPUS_MAX; cpus *= 2) {
        CLEANUP(affinity_set_cleanup) cpu_set_t *set = CPU_ALLOC(cpus);
        if (set == NULL)
            return error_set(err, -ENOMEM, "no memory for a set of %zu CPUs", cpus);
        size_t bytes = CPU_ALLOC_SIZE(cpus);
        if (sched_getaffinity(0, bytes, set) < 0) {
            if (errno == EINVAL)
                continue; /* the kernel knows more CPUs */
            return error_errno(err, "asking for the process's CPUs");
        }
        bool is_first = true;
        buf_char(out, '[');
        for (size_t cpu = 0; cpu < cpus; cpu++) {
            if (!CPU_ISSET_S(cpu, bytes, set))
                continue;
            buf_printf(out, "%s%zu", is_first ? "" : ",", cpu);
            is_first = false;
        }
        buf_char(out, ']');
        return buf_status(out, err);
    }
    return error_set(err, -E2BIG, "the kernel knows more than %d CPUs", AFFINITY_CPUS_MAX);
}
