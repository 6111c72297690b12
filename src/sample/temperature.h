/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * temperature: what the temperature sensors say, one row a sensor.
 *
 * From hwmon, or from the thermal zones where there is no hwmon with temperatures (some aarch64 machines). Sensors are
 * devices that may be slow: they are asked through sample/devices.h, and a tick shows what the tick before asked for.
 */
#ifndef SAMPLE_TEMPERATURE_H
#define SAMPLE_TEMPERATURE_H

#include "sample/collector.h"

extern const struct collector_ops temperature_collector;

#endif
