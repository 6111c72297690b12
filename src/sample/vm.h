/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm: what the virtual memory did, from /proc/vmstat as one row "vm": page faults, paging, swapping, reclaim, huge
 * pages, OOM kills. A choice of the kernel's counters under the kernel's names; one that it lacks is unknown
 * ("oom_kill" before 4.13; the reclaim ones before 4.8, which had them by zone).
 */
#ifndef SAMPLE_VM_H
#define SAMPLE_VM_H

#include <stddef.h>

#include "sample/collector.h"

extern const struct collector_ops vm_collector;

/* A table with these columns and no rows yet, for sample_table_fini(). -ENOMEM. */
MUST_CHECK int vm_table_init(struct sample_table *table, struct error *err);

/* Parses the text of /proc/vmstat: see proctable_parse. */
MUST_CHECK int vm_parse(const char *text, size_t length, struct sample_table *table, struct error *err);

#endif
