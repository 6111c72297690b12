/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frequency: at which frequency each CPU runs, as its driver says.
 *
 * Asking wakes a CPU that sleeps, and waits for it: on many cores that would cost more than all else together.
 * So only `frequency_per_tick` CPUs are asked at each tick, in turn, and a row is known only in the tick in which its
 * CPU was asked. CPUs that come or go are seen when the turn begins anew. Optional: runs only when asked for by name.
 */
#ifndef SAMPLE_FREQUENCY_H
#define SAMPLE_FREQUENCY_H

#include "sample/collector.h"

/* When the configuration says 0. */
#define FREQUENCY_PER_TICK 8

extern const struct collector_ops frequency_collector;

#endif
