/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * costs: what the service itself has cost the node, for the trace's last event. Any thread.
 */
#ifndef SERVICE_COSTS_H
#define SERVICE_COSTS_H

#include "sample/sampler.h"
#include "service/ticker.h"
#include "util/buf.h"

/*
 * Appends a JSON object: CPU seconds, largest resident size, ticks taken, skipped and overrun, and each collector's
 * runs, failures and CPU seconds. `sampler` NULL: without the collectors. It also names the layer that made the events,
 * as DFTracer does: "PSUTIL":1.
 */
void costs_json(const struct ticker *ticker, const struct sampler *sampler, struct buf *out);

#endif
