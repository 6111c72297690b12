/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/scrape_read.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metric/exposition_parse.h"
#include "proxy/contributor.h"

enum { SCRAPE_READ_TEXTS_MAX_BYTES = 128 << 20 };

void scrape_read_free(struct scrape_answer *answer)
{
    if (answer == NULL)
        return;
    for (size_t i = 0; i < answer->groups_count; i++)
        metric_job_fini(&answer->groups[i].description);
    free(answer->groups);
    free(answer->values);
    buf_fini(&answer->texts);
    free(answer);
}

static struct scrape_answer *scrape_read_new(void)
{
    struct scrape_answer *answer = calloc(1, sizeof *answer);
    if (answer == NULL)
        return NULL;
    buf_init(&answer->texts, SCRAPE_READ_TEXTS_MAX_BYTES);
    buf_char(&answer->texts, '\0'); /* offset 0 is "" */
    return answer;
}

static void scrape_read_spoil(struct scrape_answer *answer, const char *what, const char *name)
{
    if (answer->bad++ == 0)
        (void)error_set(&answer->first_err, -EINVAL, "%s '%.100s'", what, name);
}

/* Room for one more of `size` bytes in `*list`; false without memory. */
static bool scrape_read_grow(void **list, size_t size, size_t count, size_t *capacity)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity > 0 ? *capacity * 2 : 64;
    void *grown = realloc(*list, wanted * size); /* both are bounded by the limits above */
    if (grown == NULL)
        return false;
    *list = grown;
    *capacity = wanted;
    return true;
}

static bool scrape_read_add_group(struct scrape_answer *answer, enum scrape_group_kind kind)
{
    void *list = answer->groups;
    bool has_room = scrape_read_grow(&list, sizeof *answer->groups, answer->groups_count, &answer->groups_capacity);
    answer->groups = list;
    if (has_room)
        answer->groups[answer->groups_count++] = (struct scrape_group){.kind = kind, .first = answer->values_count};
    return has_room;
}

/* Appends a text with its NUL; the offset of it. */
static size_t scrape_read_text(struct scrape_answer *answer, const char *prefix, const char *text)
{
    size_t at = answer->texts.length;
    buf_text(&answer->texts, prefix);
    buf_text(&answer->texts, text);
    buf_char(&answer->texts, '\0');
    return at;
}

/* One value of the group that was added last. False without memory. */
static bool scrape_read_add(struct scrape_answer *answer, const char *prefix, const char *name, const char *doc,
                            const struct metric_value *value)
{
    if (answer->values_count == SCRAPE_READ_VALUES_MAX) {
        answer->refused++;
        return true;
    }
    void *list = answer->values;
    bool has_room = scrape_read_grow(&list, sizeof *answer->values, answer->values_count, &answer->values_capacity);
    answer->values = list;
    if (!has_room)
        return false;
    /* The samples of a family follow each other and have one document. */
    size_t last_doc_at = answer->values_count > 0 ? answer->values[answer->values_count - 1].doc_at : 0;
    struct scrape_value *added = &answer->values[answer->values_count];
    *added = (struct scrape_value){.value = *value, .doc_at = last_doc_at};
    added->name_at = scrape_read_text(answer, prefix, name);
    added->name_bytes = strlen(prefix) + strlen(name);
    if (buf_status(&answer->texts, NULL) == 0 && strcmp(answer->texts.data + last_doc_at, doc) != 0)
        added->doc_at = doc[0] != '\0' ? scrape_read_text(answer, "", doc) : 0;
    if (buf_status(&answer->texts, NULL) < 0)
        return false;
    answer->values_count++;
    answer->groups[answer->groups_count - 1].count++;
    return true;
}

static int64_t scrape_read_time(int64_t wall_us, int64_t now_wall_us)
{
    return wall_us > 0 && wall_us < now_wall_us ? wall_us : now_wall_us;
}

/* Exporters */

struct scrape_read_context {
    struct scrape_answer *answer;
    int64_t now_wall_us;
    bool is_out_of_memory;
};

/* What a target says of itself would otherwise be added to what this proxy says of itself. */
static const char *scrape_read_prefix(const char *name)
{
    bool is_ours = strncmp(name, "cicada_", 7) == 0 || strncmp(name, "process_", 8) == 0;
    return is_ours ? "exported_" : "";
}

static void scrape_read_on_sample(void *data, const struct exposition_sample *sample)
{
    struct scrape_read_context *context = data;
    bool is_usable = isfinite(sample->value) && (sample->kind == METRIC_GAUGE || sample->value >= 0);
    if (!is_usable || context->is_out_of_memory)
        return;
    int64_t wall_us = scrape_read_time(sample->wall_us, context->now_wall_us);
    struct metric_value value =
        sample->kind == METRIC_COUNTER ? metric_counter(sample->value, wall_us) : metric_gauge(sample->value, wall_us);
    if (!scrape_read_add(context->answer, scrape_read_prefix(sample->name), sample->name, sample->doc, &value))
        context->is_out_of_memory = true;
}

int scrape_read_exporter(const char *text, size_t length, bool is_openmetrics, int64_t now_wall_us,
                         struct scrape_answer **out_answer, struct error *err)
{
    struct scrape_read_context context = {.answer = scrape_read_new(), .now_wall_us = now_wall_us};
    if (context.answer == NULL || !scrape_read_add_group(context.answer, SCRAPE_GROUP_EXPORTER)) {
        scrape_read_free(context.answer);
        return error_set(err, -ENOMEM, "no memory for what the target answers");
    }
    const struct exposition_parse_config config = {.is_openmetrics = is_openmetrics,
                                                   .samples_max = SIZE_MAX,
                                                   .on_sample = scrape_read_on_sample,
                                                   .context = &context};
    struct exposition_parse_report report;
    int rc = exposition_parse_text(text, length, &config, &report);
    if (rc < 0 || context.is_out_of_memory) {
        scrape_read_free(context.answer);
        return error_set(err, -ENOMEM, "no memory for what the target answers");
    }
    context.answer->bad = report.lines_bad;
    context.answer->first_err = report.first_err;
    *out_answer = context.answer;
    return 0;
}

/* Proxies */

static bool scrape_read_number(const json_t *object, const char *key, double *out_number)
{
    const json_t *field = json_object_get(object, key);
    *out_number = json_number_value(field);
    return json_is_number(field); /* what wasn't finite is a null of the existing proxy */
}

/* False: it makes no sense. */
static bool scrape_read_value(const json_t *ctype, int64_t now_wall_us, struct metric_value *out_value)
{
    const json_t *counter = json_object_get(ctype, "Counter");
    const json_t *gauge = json_object_get(ctype, "Gauge");
    if (counter != NULL) {
        double number;
        if (!scrape_read_number(counter, "value", &number) || number < 0)
            return false;
        int64_t wall_us = json_integer_value(json_object_get(counter, "ts"));
        *out_value = metric_counter(number, scrape_read_time(wall_us, now_wall_us));
        return true;
    }
    struct metric_gauge numbers;
    if (!scrape_read_number(gauge, "min", &numbers.min) || !scrape_read_number(gauge, "max", &numbers.max) ||
        !scrape_read_number(gauge, "hits", &numbers.hits) || !scrape_read_number(gauge, "total", &numbers.total))
        return false;
    *out_value = metric_gauge_of(numbers, now_wall_us);
    return true;
}

/* Ranks and processes are counts of who is there: they are added and not averaged. True: it was one of them. */
static bool scrape_read_count(struct scrape_group *group, const char *name, const struct metric_value *value)
{
    bool is_main = group->kind == SCRAPE_GROUP_MAIN;
    uint64_t *count = NULL;
    if (strcmp(name, is_main ? "proxy_mpi_ranks" : "job_mpi_ranks") == 0)
        count = &group->ranks;
    else if (is_main && strcmp(name, "proxy_connected_procs") == 0)
        count = &group->processes;
    if (count == NULL || value->kind != METRIC_GAUGE)
        return false;
    double total = value->gauge.total;
    *count = total > 0 && total < 1e12 ? (uint64_t)total : 0;
    return true;
}

static bool scrape_read_counter(struct scrape_answer *answer, const json_t *entry, int64_t now_wall_us)
{
    const json_t *name_field = json_object_get(entry, "name");
    const char *name = json_string_value(name_field);
    const char *doc = json_string_value(json_object_get(entry, "doc"));
    struct metric_value value;
    if (name == NULL || strlen(name) != json_string_length(name_field) ||
        !scrape_read_value(json_object_get(entry, "ctype"), now_wall_us, &value)) {
        scrape_read_spoil(answer, "a metric that makes no sense:", name != NULL ? name : "");
        return true;
    }
    if (scrape_read_count(&answer->groups[answer->groups_count - 1], name, &value))
        return true;
    return scrape_read_add(answer, contributor_is_reserved(name) ? "exported_" : "", name, doc != NULL ? doc : "",
                           &value);
}

/* One {"desc","counters"}. What a proxy says of its nodes is left out: it is in its main. False without memory. */
static bool scrape_read_job(struct scrape_answer *answer, const json_t *entry, int64_t now_wall_us)
{
    const json_t *desc = json_object_get(entry, "desc");
    const json_t *counters = json_object_get(entry, "counters");
    const char *id = json_string_value(json_object_get(desc, "jobid"));
    if (id == NULL || !json_is_array(counters)) {
        scrape_read_spoil(answer, "a job without 'desc' and 'counters'", "");
        return true;
    }
    if (strncmp(id, "Node: ", 6) == 0 || id[0] == '\0')
        return true;
    if (answer->groups_count == SCRAPE_READ_GROUPS_MAX) {
        answer->refused++;
        return true;
    }
    struct metric_job description = {0};
    bool is_main = strcmp(id, "main") == 0;
    int rc = is_main ? 0 : metric_job_from_json(desc, &description, NULL);
    if (rc == -EINVAL) {
        scrape_read_spoil(answer, "a description that makes no sense, of job", id);
        return true;
    }
    if (rc < 0 || !scrape_read_add_group(answer, is_main ? SCRAPE_GROUP_MAIN : SCRAPE_GROUP_JOB)) {
        metric_job_fini(&description);
        return false;
    }
    answer->groups[answer->groups_count - 1].description = description;
    size_t i;
    const json_t *counter;
    json_array_foreach(counters, i, counter)
    {
        if (!scrape_read_counter(answer, counter, now_wall_us))
            return false;
    }
    return true;
}

int scrape_read_proxy(const char *text, size_t length, int64_t now_wall_us, struct scrape_answer **out_answer,
                      struct error *err)
{
    json_error_t where;
    json_t *root = json_loadb(text, length, 0, &where);
    if (!json_is_array(root)) {
        json_decref(root);
        return error_set(err, -EBADMSG, "its /job is no list of jobs: %s", root == NULL ? where.text : "another type");
    }
    struct scrape_answer *answer = scrape_read_new();
    bool is_good = answer != NULL;
    size_t i;
    const json_t *entry;
    json_array_foreach(root, i, entry)
    {
        is_good = is_good && scrape_read_job(answer, entry, now_wall_us);
    }
    json_decref(root);
    if (!is_good) {
        scrape_read_free(answer);
        return error_set(err, -ENOMEM, "no memory for what the target answers");
    }
    *out_answer = answer;
    return 0;
}
