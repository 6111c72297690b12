/* SPDX-License-Identifier: BSD-3-Clause */
#include "metric/value.h"

#include <float.h>
#include <math.h>

double metric_sum(double a, double b)
{
    double sum = a + b;
    if (sum > DBL_MAX)
        return DBL_MAX;
    return sum < -DBL_MAX ? -DBL_MAX : sum;
}

struct metric_value metric_zero(enum metric_kind kind)
{
    return (struct metric_value){.kind = kind};
}

struct metric_value metric_counter(double counter, int64_t wall_us)
{
    bool is_usable = isfinite(counter) && counter > 0;
    return (struct metric_value){.kind = METRIC_COUNTER, .wall_us = wall_us, .counter = is_usable ? counter : 0};
}

struct metric_value metric_gauge(double value, int64_t wall_us)
{
    double usable = isfinite(value) ? value : 0;
    struct metric_gauge gauge = {.min = usable, .max = usable, .hits = 1, .total = usable};
    return (struct metric_value){.kind = METRIC_GAUGE, .wall_us = wall_us, .gauge = gauge};
}

struct metric_value metric_gauge_of(struct metric_gauge gauge, int64_t wall_us)
{
    struct metric_value value = {.kind = METRIC_GAUGE, .wall_us = wall_us};
    bool is_usable = isfinite(gauge.min) && isfinite(gauge.max) && isfinite(gauge.total) && isfinite(gauge.hits) &&
                     gauge.hits > 0 && gauge.min <= gauge.max;
    if (is_usable)
        value.gauge = gauge;
    return value;
}

static void value_merge_gauge(struct metric_gauge *into, const struct metric_gauge *from)
{
    if (from->hits == 0)
        return;
    if (into->hits == 0) {
        *into = *from;
        return;
    }
    into->min = fmin(into->min, from->min);
    into->max = fmax(into->max, from->max);
    into->hits = metric_sum(into->hits, from->hits);
    into->total = metric_sum(into->total, from->total);
}

bool metric_merge(struct metric_value *into, const struct metric_value *from)
{
    if (into->kind != from->kind)
        return false;
    if (into->kind == METRIC_COUNTER)
        into->counter = metric_sum(into->counter, from->counter);
    else
        value_merge_gauge(&into->gauge, &from->gauge);
    if (from->wall_us > into->wall_us)
        into->wall_us = from->wall_us;
    return true;
}

double metric_shown(const struct metric_value *value)
{
    if (value->kind == METRIC_COUNTER)
        return value->counter;
    /* Clients of the JSON protocol choose the hits themselves: 1e-300 of them make a mean that is no double. */
    return value->gauge.hits > 0 ? metric_sum(value->gauge.total / value->gauge.hits, 0) : 0;
}

bool metric_is_zero(const struct metric_value *value)
{
    if (value->kind == METRIC_COUNTER)
        return value->counter == 0;
    const struct metric_gauge *gauge = &value->gauge;
    return gauge->hits == 0 || (gauge->min == 0 && gauge->max == 0 && gauge->total == 0);
}
