/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit: in which unit a trace's time stamps are.
 *
 * A trace tells it itself: time_metric in the arguments or in the settings (cfg) of its start or end event, or a
 * metadata event (CM, PR) of that name. Where it does not, the size of its first time stamp tells: seconds,
 * milliseconds, microseconds and nanoseconds since 1970 lie a thousand times apart for all dates from 1973 to 5138. A
 * first stamp below 10^8 is no date but counts from some start; DFTracer's default and Chrome's only unit for those are
 * microseconds. Pure; any thread.
 */
#ifndef PFW_UNIT_H
#define PFW_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include "pfw/line.h"

enum pfw_unit { PFW_UNIT_UNKNOWN, PFW_UNIT_SEC, PFW_UNIT_MS, PFW_UNIT_US, PFW_UNIT_NS };

/* "SEC", "MS", "US", "NS"; "" when unknown. */
const char *pfw_unit_name(enum pfw_unit unit);

/* Any case; PFW_UNIT_UNKNOWN when `text` is no string or names none. */
enum pfw_unit pfw_unit_parse(const struct pfw_json *text);

/* By the rule above; never unknown. */
enum pfw_unit pfw_unit_guess(int64_t ts);

/* Nanoseconds; beyond 64 bits the nearest that fits. An unknown unit counts as microseconds. */
int64_t pfw_unit_to_ns(enum pfw_unit unit, int64_t ts);

/* What is known so far while a trace is read. Zero-initialise it to begin. */
struct pfw_unit_of_trace {
    enum pfw_unit unit;
    bool is_told; /* by the trace itself */
};

/* Looks at the next line. */
void pfw_unit_observe(struct pfw_unit_of_trace *state, const struct pfw_line *line);

#endif
