/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/table.h"
