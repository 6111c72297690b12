/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alarms_event: one raising or clearing of an alarm, kept until it has been told.
 *
 * A value with texts of its own, in a queue of bounded length. Loop thread only.
 */
#ifndef PROXY_ALARMS_EVENT_H
#define PROXY_ALARMS_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/alarms.h"
#include "util/buf.h"

struct alarms_event {
    struct alarms_event *next;
    char *name, *target, *metric, *pretty;
    enum alarm_operator comparison;
    double value, current;
    bool is_active;
    int64_t raised_wall_ms, cleared_wall_ms;
};

struct alarms_event_queue {
    struct alarms_event *first, *last;
    size_t count;
};

/* A copy, or NULL without memory. */
struct alarms_event *alarms_event_new(const struct alarm_view *alarm);
void alarms_event_free(struct alarms_event *event);

/* Takes `event`; past `max` the oldest is dropped, and true is returned. */
bool alarms_event_push(struct alarms_event_queue *queue, struct alarms_event *event, size_t max);

/* The oldest, the caller's from now on; NULL: none. */
struct alarms_event *alarms_event_pop(struct alarms_event_queue *queue);
void alarms_event_clear(struct alarms_event_queue *queue);

/*
 * Appends one alert of Alertmanager's v2 interface (its openapi.yaml, postableAlert): labels, annotations, startsAt,
 * and endsAt when it is cleared.
 */
void alarms_event_to_alert(const struct alarms_event *event, const char *hostname, struct buf *out);

#endif
