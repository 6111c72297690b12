/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cgroup: CPU, memory, I/O, tasks and pressure of one job, from its cgroup; the same columns from version 1, version 2
 * and both at once. One row, named after the cgroup; its label is the path.
 *
 * The configuration names the cgroup; without it there is nothing to read. When the cgroup is gone, so is the row; it
 * is looked for again every CGROUP_RETRY_NS. Nothing here can hang: these files are the kernel's own memory.
 */
#ifndef SAMPLE_CGROUP_H
#define SAMPLE_CGROUP_H

#include "sample/collector.h"

#define CGROUP_RETRY_NS INT64_C(10000000000)

extern const struct collector_ops cgroup_collector;

#endif
