/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/alarms_text.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

enum { ALARMS_TEXT_VERSION = 1 };

static const char *const alarms_text_words[] = {[ALARM_LESS] = "Less", [ALARM_MORE] = "More", [ALARM_EQUAL] = "Equal"};

static void alarms_text_number(struct buf *out, const char *before, double number)
{
    buf_text(out, before);
    buf_double(out, number);
}

void alarms_text_pretty(const struct alarm_view *alarm, struct buf *out)
{
    buf_printf(out, "%s : %s", alarm->rule.name, alarm->rule.metric);
    if (alarm->doc[0] != '\0')
        buf_printf(out, " (%s)", alarm->doc);
    if (!alarm->has_value) {
        buf_text(out, " is not there");
    } else if (alarm->now.kind == METRIC_COUNTER) {
        alarms_text_number(out, " = ", alarm->now.counter);
        buf_text(out, " COUNTER");
    } else {
        alarms_text_number(out, " = ", metric_shown(&alarm->now));
        alarms_text_number(out, " (Min: ", alarm->now.gauge.min);
        alarms_text_number(out, ", Max : ", alarm->now.gauge.max);
        alarms_text_number(out, ", Hits: ", alarm->now.gauge.hits);
        alarms_text_number(out, ", Total : ", alarm->now.gauge.total);
        buf_text(out, ") GAUGE");
    }
    buf_printf(out, " %s", alarms_operator_text(alarm->rule.comparison));
    alarms_text_number(out, " ", alarm->rule.value);
}

static void alarms_text_put(const struct alarm_view *alarm, struct buf *out)
{
    CLEANUP(buf_cleanup) struct buf pretty;
    buf_init(&pretty, ALARMS_TEXT_FILE_MAX_BYTES);
    alarms_text_pretty(alarm, &pretty);
    buf_text(out, "{\"name\":");
    buf_json_string(out, alarm->rule.name);
    buf_text(out, ",\"metric\":");
    buf_json_string(out, alarm->rule.metric);
    buf_printf(out, ",\"operator\":{\"%s\":", alarms_text_words[alarm->rule.comparison]);
    buf_double(out, alarm->rule.value);
    buf_text(out, "},\"current\":");
    buf_double(out, metric_shown(&alarm->now));
    buf_printf(out, ",\"active\":%s,\"pretty\":", alarm->is_active ? "true" : "false");
    buf_json_string(out, buf_string(&pretty));
    buf_char(out, '}');
}

void alarms_text_list(const struct alarms *alarms, bool is_raised_only, struct buf *out)
{
    const char *target = NULL; /* whose list is open */
    buf_char(out, '{');
    for (size_t i = 0; i < alarms_count(alarms); i++) {
        struct alarm_view alarm = alarms_at(alarms, i);
        if (is_raised_only && !alarm.is_active)
            continue;
        if (target == NULL || strcmp(target, alarm.rule.target) != 0) {
            buf_text(out, target == NULL ? "" : "],");
            buf_json_string(out, alarm.rule.target);
            buf_text(out, ":[");
        } else {
            buf_char(out, ',');
        }
        alarms_text_put(&alarm, out);
        target = alarm.rule.target;
    }
    buf_text(out, target == NULL ? "}" : "]}");
}

/* A text without NUL, or NULL. */
static const char *alarms_text_field(const json_t *object, const char *key)
{
    const json_t *field = json_object_get(object, key);
    if (!json_is_string(field) || strlen(json_string_value(field)) != json_string_length(field))
        return NULL;
    return json_string_value(field);
}

static int alarms_text_add_object(struct alarms *alarms, const json_t *object, struct error *err)
{
    if (!json_is_object(object))
        return error_set(err, -EINVAL, "an alarm is an object with name, target, metric, operation and value");
    const json_t *value = json_object_get(object, "value");
    struct alarm_rule rule = {.name = alarms_text_field(object, "name"),
                              .target = alarms_text_field(object, "target"),
                              .metric = alarms_text_field(object, "metric"),
                              .value = json_number_value(value)};
    const char *operation = alarms_text_field(object, "operation");
    if (operation == NULL || !alarms_operator_parse(operation, &rule.comparison))
        return error_set(err, -EINVAL, "'operation' must be \"<\", \">\" or \"=\"");
    if (!json_is_number(value))
        return error_set(err, -EINVAL, "'value' must be a number");
    return alarms_add(alarms, &rule, err);
}

static json_t *alarms_text_parse(const char *text, size_t length, struct error *err)
{
    json_error_t where;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL)
        (void)error_set(err, -EINVAL, "not JSON: %s at line %d", where.text, where.line);
    return root;
}

int alarms_text_add(struct alarms *alarms, const char *text, size_t length, struct error *err)
{
    json_t *root = alarms_text_parse(text, length, err);
    int rc = root != NULL ? alarms_text_add_object(alarms, root, err) : -EINVAL;
    json_decref(root);
    return rc;
}

int alarms_text_remove(struct alarms *alarms, const char *text, size_t length, struct error *err)
{
    json_t *root = alarms_text_parse(text, length, err);
    if (root == NULL)
        return -EINVAL;
    const char *target = alarms_text_field(root, "target");
    const char *name = alarms_text_field(root, "name");
    int rc = target != NULL && name != NULL ? alarms_remove(alarms, target, name, err)
                                            : error_set(err, -EINVAL, "an alarm is named by {\"target\":…,\"name\":…}");
    json_decref(root);
    return rc;
}

void alarms_text_save(const struct alarms *alarms, struct buf *out)
{
    buf_printf(out, "{\"version\":%d,\"alarms\":[", ALARMS_TEXT_VERSION);
    for (size_t i = 0; i < alarms_count(alarms); i++) {
        struct alarm_view alarm = alarms_at(alarms, i);
        buf_text(out, i == 0 ? "\n{\"name\":" : ",\n{\"name\":");
        buf_json_string(out, alarm.rule.name);
        buf_text(out, ",\"target\":");
        buf_json_string(out, alarm.rule.target);
        buf_text(out, ",\"metric\":");
        buf_json_string(out, alarm.rule.metric);
        buf_printf(out, ",\"operation\":\"%s\",\"value\":", alarms_operator_text(alarm.rule.comparison));
        buf_double(out, alarm.rule.value);
        buf_char(out, '}');
    }
    buf_text(out, "\n]}\n");
}

int alarms_text_load(struct alarms *alarms, const char *text, size_t length, size_t *out_bad, struct error *err)
{
    *out_bad = 0;
    json_t *root = alarms_text_parse(text, length, err);
    json_t *list = json_object_get(root, "alarms");
    if (root == NULL || !json_is_array(list)) {
        json_decref(root);
        return root == NULL ? -EBADMSG : error_set(err, -EBADMSG, "it has no list of alarms");
    }
    size_t i;
    const json_t *entry;
    json_array_foreach(list, i, entry)
    {
        int rc = alarms_text_add_object(alarms, entry, err);
        *out_bad += rc < 0 && rc != -EEXIST;
    }
    json_decref(root);
    return 0;
}
