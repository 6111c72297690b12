/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * affinity: on which CPUs the process may run, on machines of any size. Any thread.
 */
#ifndef SERVICE_AFFINITY_H
#define SERVICE_AFFINITY_H

#include "util/buf.h"
#include "util/error.h"

/* Appends a JSON array of the CPUs' numbers. */
MUST_CHECK int affinity_json(struct buf *out, struct error *err);

#endif
