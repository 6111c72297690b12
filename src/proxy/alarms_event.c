/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/alarms_event.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proxy/alarms_text.h"

void alarms_event_free(struct alarms_event *event)
{
    if (event == NULL)
        return;
    free(event->name);
    free(event->target);
    free(event->metric);
    free(event->pretty);
    free(event);
}

struct alarms_event *alarms_event_new(const struct alarm_view *alarm)
{
    CLEANUP(buf_cleanup) struct buf pretty;
    buf_init(&pretty, ALARMS_TEXT_FILE_MAX_BYTES);
    alarms_text_pretty(alarm, &pretty);
    const char *pretty_text = buf_string(&pretty);
    struct alarms_event *event = calloc(1, sizeof *event);
    if (event == NULL)
        return NULL;
    *event = (struct alarms_event){.name = strdup(alarm->rule.name),
                                   .target = strdup(alarm->rule.target),
                                   .metric = strdup(alarm->rule.metric),
                                   .pretty = strdup(pretty_text),
                                   .comparison = alarm->rule.comparison,
                                   .value = alarm->rule.value,
                                   .current = metric_shown(&alarm->now),
                                   .is_active = alarm->is_active,
                                   .raised_wall_ms = alarm->raised_wall_ms,
                                   .cleared_wall_ms = alarm->cleared_wall_ms};
    if (event->name != NULL && event->target != NULL && event->metric != NULL && event->pretty != NULL)
        return event;
    alarms_event_free(event);
    return NULL;
}

struct alarms_event *alarms_event_pop(struct alarms_event_queue *queue)
{
    struct alarms_event *event = queue->first;
    if (event == NULL)
        return NULL;
    queue->first = event->next;
    if (queue->first == NULL)
        queue->last = NULL;
    queue->count--;
    event->next = NULL;
    return event;
}

bool alarms_event_push(struct alarms_event_queue *queue, struct alarms_event *event, size_t max)
{
    event->next = NULL;
    if (queue->last != NULL)
        queue->last->next = event;
    else
        queue->first = event;
    queue->last = event;
    queue->count++;
    if (queue->count <= max)
        return false;
    alarms_event_free(alarms_event_pop(queue));
    return true;
}

void alarms_event_clear(struct alarms_event_queue *queue)
{
    while (queue->first != NULL)
        alarms_event_free(alarms_event_pop(queue));
}

/* "2026-12-01T04:16:14.123Z" with its quotes. */
static void alarms_event_put_time(int64_t wall_ms, struct buf *out)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm parts;
    if (gmtime_r(&seconds, &parts) == NULL)
        parts = (struct tm){.tm_year = 70, .tm_mday = 1};
    buf_printf(out, "\"%04d-%02d-%02dT%02d:%02d:%02d.%03dZ\"", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
               parts.tm_hour, parts.tm_min, parts.tm_sec, (int)(wall_ms % 1000));
}

void alarms_event_to_alert(const struct alarms_event *event, const char *hostname, struct buf *out)
{
    buf_text(out, "{\"labels\":{\"alertname\":");
    buf_json_string(out, event->name);
    buf_text(out, ",\"instance\":");
    buf_json_string(out, hostname);
    buf_text(out, ",\"job\":");
    buf_json_string(out, event->target);
    buf_text(out, ",\"metric\":");
    buf_json_string(out, event->metric);
    buf_text(out, "},\"annotations\":{\"summary\":");
    buf_json_string(out, event->pretty);
    buf_text(out, "},\"startsAt\":");
    alarms_event_put_time(event->raised_wall_ms, out);
    if (!event->is_active) {
        buf_text(out, ",\"endsAt\":");
        alarms_event_put_time(event->cleared_wall_ms, out);
    }
    buf_char(out, '}');
}
