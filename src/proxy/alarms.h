/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alarms: which metrics a person wants to hear of, and which of them are past their bounds now.
 *
 * An alarm compares one metric of `main`, the node or a job with a number at each tick. It is raised when the
 * comparison holds and cleared when it does no more, or the metric or its job has gone; both are told once. It stays
 * when its job ends: the next one of that id is watched, too. Each alarm is also a metric of `main`,
 * cicada_alarm_active{job=,name=}. Leaves files, commands and the network to alarms_keeper.h. Loop thread only.
 */
#ifndef PROXY_ALARMS_H
#define PROXY_ALARMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metric/value.h"
#include "proxy/jobs.h"
#include "util/error.h"

struct alarms;

#define ALARMS_MAX              1000
#define ALARMS_NAME_MAX_BYTES   256
#define ALARMS_TARGET_MAX_BYTES 512

enum alarm_operator { ALARM_LESS, ALARM_MORE, ALARM_EQUAL };

/* What is asked for. */
struct alarm_rule {
    const char *name;   /* unique among those of its target */
    const char *target; /* a job as people call it: "main", "Node: host", "42" */
    const char *metric; /* with its labels; a legal name once it is in the list */
    enum alarm_operator comparison;
    double value; /* finite */
};

/* An alarm as it is now; texts are borrowed until the list changes or the next tick. */
struct alarm_view {
    struct alarm_rule rule;
    const char *doc;         /* of the metric; "" */
    bool has_value;          /* job and metric are there */
    struct metric_value now; /* what was compared; a zero counter when nothing was */
    bool is_active;          /* raised */
    int64_t raised_wall_ms;  /* the last time; 0: never */
    int64_t cleared_wall_ms; /* the same */
};

struct alarms_config {
    struct jobs *jobs; /* borrowed for the alarms' life */
    /* Raised or cleared: once each. May be NULL. Must not change the list. */
    void (*on_event)(void *context, const struct alarm_view *alarm);
    /* The list has changed. May be NULL. */
    void (*on_change)(void *context);
    void *context;
};

/* An empty list. NULL without memory. */
struct alarms *alarms_new(const struct alarms_config *config);
void alarms_free(struct alarms *alarms);
DEFINE_CLEANUP(alarms, alarms_free);

/*
 * One more; `rule` is copied, the metric's name made legal. It is compared from the next tick on. -EINVAL names the
 * field; -EEXIST: its target has an alarm of that name; -ENOSPC: ALARMS_MAX are there; -ENOMEM.
 */
MUST_CHECK int alarms_add(struct alarms *alarms, const struct alarm_rule *rule, struct error *err);

/* Takes it away; a raised one is cleared first. -ENOENT. */
MUST_CHECK int alarms_remove(struct alarms *alarms, const char *target, const char *name, struct error *err);

/* Compares all with the values of the tick that has just ended. */
void alarms_tick(struct alarms *alarms, int64_t now_mono_ns, int64_t now_wall_ms);

/* In order of arrival, those of one target together in the order of their targets. */
size_t alarms_count(const struct alarms *alarms);
struct alarm_view alarms_at(const struct alarms *alarms, size_t index);

/* "<", ">" or "="; false, output untouched, for anything else. */
bool alarms_operator_parse(const char *text, enum alarm_operator *out_operator);
const char *alarms_operator_text(enum alarm_operator comparison);

#endif
