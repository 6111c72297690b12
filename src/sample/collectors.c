/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A collector stands with its kind. Lustre's and NFS's counters (/proc/fs/lustre, /proc/self/mountstats) are files of
 * the kernel, as is what each NUMA node has (/sys/devices/system/node); GPUs are devices: what their driver tells in
 * /sys goes through sample/devices.h, and what only a vendor's library tells through a sample/probe.h of its own.
 */
#include "sample/collector.h"

#include "sample/cgroup.h"
#include "sample/cpu.h"
#include "sample/disk.h"
#include "sample/example.h"
#include "sample/filesystem.h"
#include "sample/frequency.h"
#include "sample/infiniband.h"
#include "sample/load.h"
#include "sample/memory.h"
#include "sample/network.h"
#include "sample/power.h"
#include "sample/pressure.h"
#include "sample/temperature.h"
#include "sample/vm.h"

const struct collector_ops *const collectors[] = {
    /* files of the kernel, which answer at once */
    &cpu_collector,
    &memory_collector,
    &load_collector,
    &pressure_collector,
    &vm_collector,
    &disk_collector,
    &network_collector,
    &frequency_collector,
    &cgroup_collector,
    &example_collector,
    /* mounts and devices, which may not answer */
    &filesystem_collector,
    &temperature_collector,
    &power_collector,
    &infiniband_collector,
    NULL,
};
