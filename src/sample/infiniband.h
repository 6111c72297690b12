/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * infiniband: the counters of InfiniBand, RoCE and Omni-Path ports, one row a port: "mlx5_0/1".
 *
 * From /sys/class/infiniband/<device>/ports/<port>/, whose files ask the device's firmware: read through
 * sample/devices.h. The label tells the port's state and rate. Data is counted by the hardware in words of four bytes;
 * here they are bytes.
 */
#ifndef SAMPLE_INFINIBAND_H
#define SAMPLE_INFINIBAND_H

#include "sample/collector.h"

extern const struct collector_ops infiniband_collector;

#endif
