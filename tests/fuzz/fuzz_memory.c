/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/memory.h"

#include "ticks.h"

TICKS_TARGET(memory);
