/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/alarms.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1 /* an alarm is refused; uthash would end the process */
#include <uthash.h>

#include "metric/name.h"
#include "proxy/contributor.h"
#include "util/buf.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/utf8.h"

enum { ALARMS_TEXT_MAX_BYTES = 16 * 1024 };

/* An alarm that comes and goes is told so often at most. */
#define ALARMS_LOG_EVERY_NS (10 * CLOCK_NS_PER_SECOND)

/* A job that alarms watch, whether it is there or not. */
struct alarm_target {
    char *id;
    struct job *job;  /* of this tick; NULL: there is none */
    unsigned fit;     /* how well `job` fits; see alarms_offer() */
    uint64_t arrival; /* order of targets */
    size_t alarms;    /* that watch it */
    UT_hash_handle hh;
};

struct alarm {
    char *name;
    char *metric;
    struct alarm_target *target;
    enum alarm_operator comparison;
    double value;
    char *doc;      /* of the metric, once it has been seen; NULL before */
    bool has_value; /* job and metric were there in the last tick */
    struct metric_value now;
    bool is_active;
    int64_t raised_wall_ms, cleared_wall_ms;
    struct contributor *shown; /* cicada_alarm_active; NULL without memory */
    uint32_t shown_slot;
    struct log_repeat raise_repeat, clear_repeat;
};

struct alarms {
    struct alarms_config config;
    struct alarm_target *targets;   /* hash by id */
    struct alarm *list[ALARMS_MAX]; /* [count], by target, then by arrival */
    size_t count;
    uint64_t arrivals;
};

static const char *const alarm_operators[] = {[ALARM_LESS] = "<", [ALARM_MORE] = ">", [ALARM_EQUAL] = "="};

bool alarms_operator_parse(const char *text, enum alarm_operator *out_operator)
{
    for (size_t i = 0; i < ARRAY_LENGTH(alarm_operators); i++) {
        if (strcmp(text, alarm_operators[i]) == 0) {
            *out_operator = (enum alarm_operator)i;
            return true;
        }
    }
    return false;
}

const char *alarms_operator_text(enum alarm_operator comparison)
{
    return alarm_operators[comparison];
}

struct alarms *alarms_new(const struct alarms_config *config)
{
    struct alarms *alarms = calloc(1, sizeof *alarms);
    if (alarms != NULL)
        alarms->config = *config;
    return alarms;
}

static void alarms_leave_target(struct alarms *alarms, struct alarm_target *target)
{
    if (target == NULL || --target->alarms > 0)
        return;
    HASH_DEL(alarms->targets, target);
    free(target->id);
    free(target);
}

static void alarm_free(struct alarms *alarms, struct alarm *alarm)
{
    if (alarm == NULL)
        return;
    contributor_discard(alarm->shown);
    alarms_leave_target(alarms, alarm->target);
    free(alarm->name);
    free(alarm->metric);
    free(alarm->doc);
    free(alarm);
}

void alarms_free(struct alarms *alarms)
{
    if (alarms == NULL)
        return;
    for (size_t i = 0; i < alarms->count; i++)
        alarm_free(alarms, alarms->list[i]);
    free(alarms);
}

/* A text for people: not empty, not too long, UTF-8 without control characters. */
static int alarms_check_text(const char *field, const char *text, size_t max_bytes, struct error *err)
{
    size_t bytes = text != NULL ? strlen(text) : 0;
    if (bytes == 0)
        return error_set(err, -EINVAL, "an alarm needs a '%s'", field);
    if (bytes > max_bytes)
        return error_set(err, -EINVAL, "'%s' has %zu bytes: up to %zu are possible", field, bytes, max_bytes);
    for (size_t at = 0; at < bytes;) {
        size_t bad;
        size_t length = utf8_sequence((const unsigned char *)text + at, bytes - at, &bad);
        if (length == 0 || (unsigned char)text[at] < ' ' || text[at] == 0x7f)
            return error_set(err, -EINVAL, "'%s' must be one line of UTF-8", field);
        at += length;
    }
    return 0;
}

static struct alarm_target *alarms_find_target(const struct alarms *alarms, const char *id)
{
    struct alarm_target *target;
    HASH_FIND_STR(alarms->targets, id, target);
    return target;
}

/* The target, new if it isn't there, with one more alarm. NULL without memory. */
static struct alarm_target *alarms_join_target(struct alarms *alarms, const char *id)
{
    struct alarm_target *target = alarms_find_target(alarms, id);
    if (target == NULL) {
        target = calloc(1, sizeof *target);
        char *copy = strdup(id);
        if (target == NULL || copy == NULL) {
            free(target);
            free(copy);
            return NULL;
        }
        target->id = copy;
        target->arrival = alarms->arrivals++;
        HASH_ADD_KEYPTR(hh, alarms->targets, target->id, strlen(target->id), target);
        if (target->hh.tbl == NULL) {
            free(copy);
            free(target);
            return NULL;
        }
    }
    target->alarms++;
    return target;
}

/* Index of the alarm, or `count`. */
static size_t alarms_index(const struct alarms *alarms, const char *target, const char *name)
{
    size_t i = 0;
    while (i < alarms->count &&
           (strcmp(alarms->list[i]->target->id, target) != 0 || strcmp(alarms->list[i]->name, name) != 0))
        i++;
    return i;
}

static void alarms_put_label(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\\' || *text == '"')
            buf_char(out, '\\');
        buf_char(out, *text);
    }
}

/* Its own metric. Without memory, or with a name that is too long, the alarm does without. */
static void alarm_show(struct alarms *alarms, struct alarm *alarm)
{
    CLEANUP(buf_cleanup) struct buf name;
    buf_init(&name, ALARMS_TEXT_MAX_BYTES);
    buf_text(&name, "cicada_alarm_active{job=\"");
    alarms_put_label(&name, alarm->target->id);
    buf_text(&name, "\",name=\"");
    alarms_put_label(&name, alarm->name);
    buf_text(&name, "\"}");
    /* A successor reads the alarms from their file: the state leaves these out. */
    const struct contributor_config config = {
        .uid = jobs_config(alarms->config.jobs)->uid, .is_adoptable = true, .is_job_alone = true, .is_nobody = true};
    alarm->shown = buf_status(&name, NULL) == 0 ? contributor_new(alarms->config.jobs, &config) : NULL;
    if (alarm->shown == NULL)
        return;
    contributor_join_job(alarm->shown, jobs_at(alarms->config.jobs, 0));
    if (contributor_declare(alarm->shown, name.data, name.length, "1 while the alarm is raised", METRIC_GAUGE,
                            &alarm->shown_slot, NULL) < 0)
        alarm->shown_slot = CONTRIBUTOR_NONE; /* refused, and counted there */
}

static struct alarm *alarm_new(struct alarms *alarms, const struct alarm_rule *rule, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf metric;
    buf_init(&metric, ALARMS_TEXT_MAX_BYTES);
    bool was_legal;
    if (rule->metric == NULL || metric_name_parse(rule->metric, strlen(rule->metric), &metric, &was_legal, err) < 0) {
        if (rule->metric == NULL)
            (void)error_set(err, -EINVAL, "an alarm needs a 'metric'");
        return NULL;
    }
    const char *metric_name = buf_string(&metric);
    struct alarm *alarm = calloc(1, sizeof *alarm);
    if (alarm != NULL) {
        *alarm = (struct alarm){.name = strdup(rule->name),
                                .metric = strdup(metric_name),
                                .target = alarms_join_target(alarms, rule->target),
                                .comparison = rule->comparison,
                                .value = rule->value};
    }
    if (alarm == NULL || alarm->name == NULL || alarm->metric == NULL || alarm->target == NULL) {
        alarm_free(alarms, alarm);
        (void)error_set(err, -ENOMEM, "no memory for alarm '%s'", rule->name);
        return NULL;
    }
    alarm_show(alarms, alarm);
    return alarm;
}

static void alarms_tell_change(struct alarms *alarms)
{
    if (alarms->config.on_change != NULL)
        alarms->config.on_change(alarms->config.context);
}

int alarms_add(struct alarms *alarms, const struct alarm_rule *rule, struct error *err)
{
    int rc = alarms_check_text("name", rule->name, ALARMS_NAME_MAX_BYTES, err);
    if (rc == 0)
        rc = alarms_check_text("target", rule->target, ALARMS_TARGET_MAX_BYTES, err);
    if (rc < 0)
        return rc;
    if (!isfinite(rule->value))
        return error_set(err, -EINVAL, "'value' must be a finite number");
    if (alarms_index(alarms, rule->target, rule->name) < alarms->count)
        return error_set(err, -EEXIST, "job '%s' has an alarm '%s' already: delete it first", rule->target, rule->name);
    if (alarms->count == ALARMS_MAX)
        return error_set(err, -ENOSPC, "there are %d alarms already", ALARMS_MAX);
    struct error why = {0};
    struct alarm *alarm = alarm_new(alarms, rule, &why);
    if (alarm == NULL)
        return error_set(err, why.code, "%s", why.text);
    size_t at = alarms->count;
    for (; at > 0 && alarms->list[at - 1]->target->arrival > alarm->target->arrival; at--)
        alarms->list[at] = alarms->list[at - 1];
    alarms->list[at] = alarm;
    alarms->count++;
    alarms_tell_change(alarms);
    return 0;
}

static struct alarm_view alarm_view(const struct alarm *alarm)
{
    return (struct alarm_view){.rule = {.name = alarm->name,
                                        .target = alarm->target->id,
                                        .metric = alarm->metric,
                                        .comparison = alarm->comparison,
                                        .value = alarm->value},
                               .doc = alarm->doc != NULL ? alarm->doc : "",
                               .has_value = alarm->has_value,
                               .now = alarm->now,
                               .is_active = alarm->is_active,
                               .raised_wall_ms = alarm->raised_wall_ms,
                               .cleared_wall_ms = alarm->cleared_wall_ms};
}

static void alarm_log(struct alarm *alarm, int64_t now_mono_ns)
{
    uint64_t held_back;
    struct log_repeat *repeat = alarm->is_active ? &alarm->raise_repeat : &alarm->clear_repeat;
    if (!log_repeat_is_due(repeat, now_mono_ns, ALARMS_LOG_EVERY_NS, &held_back))
        return;
    CLEANUP(buf_cleanup) struct buf numbers;
    buf_init(&numbers, ALARMS_TEXT_MAX_BYTES);
    buf_double(&numbers, metric_shown(&alarm->now));
    buf_printf(&numbers, " %s ", alarm->is_active ? alarms_operator_text(alarm->comparison) : "against");
    buf_double(&numbers, alarm->value);
    if (held_back > 0)
        buf_printf(&numbers, " (and %llu times before)", (unsigned long long)held_back);
    log_line(alarm->is_active ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "alarm='%s' job='%s' %s: %s%s%s", alarm->name,
             alarm->target->id, alarm->is_active ? "raised" : "cleared", alarm->metric,
             alarm->has_value ? " = " : " is gone", alarm->has_value ? buf_string(&numbers) : "");
}

static void alarm_set_active(struct alarms *alarms, struct alarm *alarm, bool is_active, int64_t now_mono_ns,
                             int64_t now_wall_ms)
{
    if (alarm->is_active == is_active)
        return;
    alarm->is_active = is_active;
    *(is_active ? &alarm->raised_wall_ms : &alarm->cleared_wall_ms) = now_wall_ms;
    alarm_log(alarm, now_mono_ns);
    if (alarms->config.on_event != NULL) {
        struct alarm_view view = alarm_view(alarm);
        alarms->config.on_event(alarms->config.context, &view);
    }
}

int alarms_remove(struct alarms *alarms, const char *target, const char *name, struct error *err)
{
    size_t at = alarms_index(alarms, target, name);
    if (at == alarms->count)
        return error_set(err, -ENOENT, "job '%s' has no alarm '%s'", target, name);
    struct alarm *alarm = alarms->list[at];
    alarm_set_active(alarms, alarm, false, clock_mono_ns(), clock_wall_ns() / CLOCK_NS_PER_MS);
    memmove(&alarms->list[at], &alarms->list[at + 1], (alarms->count - at - 1) * sizeof(void *));
    alarms->count--;
    alarm_free(alarms, alarm);
    alarms_tell_change(alarms);
    return 0;
}

/* `job` is called `id`: it is the target of that name unless a better one is there. The order is that of jobs_find().
 */
static void alarms_offer(const struct alarms *alarms, const char *id, struct job *job, unsigned fit)
{
    struct alarm_target *target = alarms_find_target(alarms, id);
    if (target == NULL || target->fit >= fit)
        return;
    target->job = job;
    target->fit = fit;
}

/* One pass over all jobs, since a search for each alarm would be a product of two large numbers. */
static void alarms_find_jobs(const struct alarms *alarms)
{
    struct alarm_target *target;
    struct alarm_target *next;
    HASH_ITER(hh, alarms->targets, target, next)
    {
        target->job = NULL;
        target->fit = 0;
    }
    for (size_t i = 0; i < jobs_count(alarms->config.jobs); i++) {
        struct job *job = jobs_at(alarms->config.jobs, i);
        alarms_offer(alarms, job_shown_id(job), job, 3);
        alarms_offer(alarms, job_key(job), job, 2);
        alarms_offer(alarms, job_description(job)->id, job, 1);
    }
}

static bool alarm_is_met(const struct alarm *alarm)
{
    double now = metric_shown(&alarm->now);
    if (alarm->comparison == ALARM_EQUAL)
        return now == alarm->value;
    return alarm->comparison == ALARM_LESS ? now < alarm->value : now > alarm->value;
}

static void alarm_compare(struct alarm *alarm)
{
    const struct job *job = alarm->target->job;
    const struct metric *metric =
        job != NULL ? registry_find(job_registry(job), alarm->metric, strlen(alarm->metric)) : NULL;
    /* A gauge that nobody has set is no measurement: 0 would raise every '<'. */
    if (metric != NULL && metric->value.kind == METRIC_GAUGE && metric->value.gauge.hits == 0)
        metric = NULL;
    alarm->has_value = metric != NULL;
    alarm->now = metric != NULL ? metric->value : metric_zero(METRIC_COUNTER);
    if (metric != NULL && alarm->doc == NULL && metric->doc[0] != '\0')
        alarm->doc = strdup(metric->doc); /* jobs are forgotten between ticks; without memory it has none */
}

void alarms_tick(struct alarms *alarms, int64_t now_mono_ns, int64_t now_wall_ms)
{
    if (alarms->count == 0)
        return;
    alarms_find_jobs(alarms);
    for (size_t i = 0; i < alarms->count; i++) {
        struct alarm *alarm = alarms->list[i];
        alarm_compare(alarm);
        alarm_set_active(alarms, alarm, alarm->has_value && alarm_is_met(alarm), now_mono_ns, now_wall_ms);
        if (alarm->shown != NULL) {
            struct metric_value shown = metric_gauge(alarm->is_active, now_wall_ms * 1000);
            contributor_set(alarm->shown, alarm->shown_slot, &shown);
        }
    }
}

size_t alarms_count(const struct alarms *alarms)
{
    return alarms->count;
}

struct alarm_view alarms_at(const struct alarms *alarms, size_t index)
{
    return alarm_view(alarms->list[index]);
}
