/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/load.h"

#include "ticks.h"

TICKS_TARGET(load);
