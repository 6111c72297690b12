/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/collector.h"

#include "sample/cpu.h"
#include "sample/disk.h"
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
    &cpu_collector,
    &memory_collector,
    &load_collector,
    &pressure_collector,
    &vm_collector,
    &disk_collector,
    &filesystem_collector,
    &network_collector,
    &temperature_collector,
    &power_collector,
    &infiniband_collector,
    &frequency_collector,
    NULL,
};
