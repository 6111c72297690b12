/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/collector.h"

#include "sample/cpu.h"

const struct collector_ops *const collectors[] = {
    &cpu_collector,
    NULL,
};
