/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/network.h"

#include "ticks.h"

TICKS_TARGET(network);
