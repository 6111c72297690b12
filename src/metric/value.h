/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * value: what a metric is at one moment, and how two of them become one.
 *
 * A counter only grows, and counters add. A gauge is four numbers: the least and greatest value of its contributors,
 * how many they are, and the sum of their values; what people see is total / hits. Merging is associative and
 * commutative (but for the rounding of sums), so it doesn't matter in which order nodes arrive.
 *
 * No value here is ever NaN or infinite: whatever isn't finite is taken as 0 at the door. Pure; any thread.
 */
#ifndef METRIC_VALUE_H
#define METRIC_VALUE_H

#include <stdbool.h>
#include <stdint.h>

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE };

struct metric_gauge {
    double min;
    double max;
    double hits; /* contributors; 0: nobody has set it, and the rest means nothing */
    double total;
};

struct metric_value {
    enum metric_kind kind;
    int64_t wall_us; /* when the freshest part was measured, in microseconds since 1970; 0: unknown */
    union {
        double counter;
        struct metric_gauge gauge;
    };
};

/* The sum of two finite numbers; one that would overflow stays at the greatest double, or its opposite. */
double metric_sum(double a, double b);

/* A counter of `counter`, a gauge that one contributor has set; not finite: 0. A counter below 0 is 0, too. */
struct metric_value metric_counter(double counter, int64_t wall_us);
struct metric_value metric_gauge(double value, int64_t wall_us);

/* A gauge of four numbers from outside: not finite, or hits below 0, makes it a gauge that nobody has set. */
struct metric_value metric_gauge_of(struct metric_gauge gauge, int64_t wall_us);

/* Nothing yet: 0, or a gauge that nobody has set. */
struct metric_value metric_zero(enum metric_kind kind);

/*
 * Adds the contribution `from` to `into`: counters add, gauges merge, the stamp is the freshest. False, `into`
 * untouched, when they are of different kinds. A sum that would overflow stays at the greatest double.
 */
bool metric_merge(struct metric_value *into, const struct metric_value *from);

/* The one number that people see, always finite: the counter, or the gauge's mean; 0 of a gauge that nobody has set. */
double metric_shown(const struct metric_value *value);

/* Is it what metric_zero() gives, or a gauge all of whose numbers are 0? Answers leave it out. */
bool metric_is_zero(const struct metric_value *value);

#endif
