/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * power: the energy and power of packages, memory, GPUs and the whole node, one row a zone, grouped as "cpu", "memory",
 * "gpu" or "node".
 *
 * From RAPL, from the counters of HPE Cray blades, and from hwmon devices that have power or energy sensors, which are
 * asked through sample/devices.h. Where there is only energy, power is what was used since the previous tick, divided
 * by the time. Zones overlap (a package contains its cores, the node all): what a sum means is for the reader to
 * decide.
 */
#ifndef SAMPLE_POWER_H
#define SAMPLE_POWER_H

#include "sample/collector.h"

enum power_column { POWER_ENERGY, POWER_WATTS, POWER_COLUMNS };

extern const struct collector_ops power_collector;

#endif
