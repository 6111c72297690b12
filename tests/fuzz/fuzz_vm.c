/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/vm.h"

#include "ticks.h"

TICKS_TARGET(vm);
