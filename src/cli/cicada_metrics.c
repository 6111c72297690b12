/* SPDX-License-Identifier: BSD-3-Clause */
/* cicada metrics: what a job has counted so far; and cicada profiles: the same of jobs that have ended. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/proxy_command.h"
#include "cli/proxy_commands.h"

enum { METRICS_TEXT_MAX_BYTES = 1 << 30, METRICS_PATH_MAX_BYTES = 64 << 10, MS_PER_S = 1000, COMMAND_CHARACTERS = 60 };

struct metrics_values {
    struct proxy_command_common common;
    bool is_json;
    bool is_prometheus;
};

static const struct cli_option metrics_options[] = {
    {"json", '\0', CLI_FLAG, NULL, offsetof(struct metrics_values, is_json), "print JSON, for programs"},
    {"prom", '\0', CLI_FLAG, NULL, offsetof(struct metrics_values, is_prometheus), "print Prometheus' text form"},
    PROXY_COMMAND_COMMON_OPTIONS,
};

static const struct cli_command metrics_command = {
    .name = "cicada metrics",
    .operands = "[JOB]",
    .summary = "Prints what a job has counted so far",
    .details = "Without JOB: the sum of all that the proxy has (main). A gauge is shown as the mean of its "
               "contributors.\n" PROXY_COMMAND_STATUS_DETAILS,
    .options = metrics_options,
    .options_count = ARRAY_LENGTH(metrics_options),
};

static const struct cli_option profiles_options[] = {
    {"json", '\0', CLI_FLAG, NULL, offsetof(struct metrics_values, is_json), "print JSON, for programs"},
    PROXY_COMMAND_COMMON_OPTIONS,
};

static const struct cli_command profiles_command = {
    .name = "cicada profiles",
    .operands = "[JOB]",
    .summary = "Lists the jobs that have ended, or prints what one of them counted",
    .details = PROXY_COMMAND_STATUS_DETAILS,
    .options = profiles_options,
    .options_count = ARRAY_LENGTH(profiles_options),
};

static int metrics_compare(const void *left, const void *right)
{
    const json_t *const *a = left;
    const json_t *const *b = right;
    return strverscmp(proxy_command_text(*a, "name"), proxy_command_text(*b, "name"));
}

static void metrics_fill(struct columns *columns, const json_t *metric)
{
    bool is_counter;
    double value = proxy_command_value(metric, &is_counter);
    (void)columns_begin(columns);
    proxy_command_cell_text(columns, proxy_command_text(metric, "name"), 0);
    proxy_command_cell_text(columns, is_counter ? "counter" : "gauge", 0);
    proxy_command_cell_number(columns, value);
}

static int metrics_print(const json_t **metrics, size_t count, struct error *err)
{
    static const char *const heads[] = {"METRIC", "KIND", "VALUE"};
    CLEANUP(buf_cleanup) struct buf out;
    CLEANUP(columns_cleanup) struct columns columns;
    buf_init(&out, METRICS_TEXT_MAX_BYTES);
    columns_init(&columns, "llr");
    columns_heads(&columns, heads);
    columns_measure(&columns);
    for (size_t i = 0; i < count; i++) {
        metrics_fill(&columns, metrics[i]);
        columns_measure(&columns);
    }
    columns_heads(&columns, heads);
    int rc = columns_put(&columns, &out, err);
    for (size_t i = 0; i < count && rc == 0; i++) {
        metrics_fill(&columns, metrics[i]);
        rc = columns_put(&columns, &out, err);
    }
    return rc < 0 ? rc : proxy_command_print(&out, err);
}

/* `{"desc","counters"}` as a table, in the order of names. */
static int metrics_print_table(const json_t *job, struct error *err)
{
    const json_t *counters = json_object_get(job, "counters");
    size_t count = json_array_size(counters);
    CLEANUP(memory_cleanup) const json_t **metrics = calloc(count > 0 ? count : 1, sizeof *metrics);
    if (metrics == NULL)
        return error_set(err, -ENOMEM, "no memory for %zu metrics", count);
    for (size_t i = 0; i < count; i++)
        metrics[i] = json_array_get(counters, i);
    qsort(metrics, count, sizeof(const json_t *), metrics_compare);
    return metrics_print(metrics, count, err);
}

static int metrics_ask(const struct metrics_values *values, const char *endpoint, const char *job, struct error *err)
{
    CLEANUP(remote_cleanup) struct remote *remote = NULL;
    CLEANUP(buf_cleanup) struct buf path;
    CLEANUP(buf_cleanup) struct buf answer;
    buf_init(&path, METRICS_PATH_MAX_BYTES);
    buf_init(&answer, METRICS_TEXT_MAX_BYTES);
    buf_text(&path, endpoint);
    remote_query_text(&path, job);
    int rc = buf_status(&path, err);
    if (rc == 0)
        rc = remote_open(values->common.proxy, &remote, err);
    if (rc < 0)
        return rc;
    if (values->is_prometheus || values->is_json) {
        rc = remote_get(remote, buf_string(&path), &answer, err);
        if (rc == 0 && values->is_json)
            buf_char(&answer, '\n');
        return rc < 0 ? rc : proxy_command_print(&answer, err);
    }
    json_t *object = NULL;
    rc = remote_get_json(remote, buf_string(&path), &object, err);
    if (rc == 0)
        rc = metrics_print_table(object, err);
    json_decref(object);
    return rc;
}

int proxy_commands_metrics(int argc, char **argv)
{
    struct metrics_values values = {0};
    const char *job;
    int status;
    if (!proxy_command_begin(&metrics_command, argc, argv, &values, &job, &status))
        return status;
    struct error err = {0};
    int rc = 0;
    if (values.is_json && values.is_prometheus)
        rc = error_set(&err, -EINVAL, "--json and --prom are two forms: choose one");
    if (rc == 0)
        rc = metrics_ask(&values, values.is_prometheus ? "/metrics/?job=" : "/job/?job=", job != NULL ? job : "main",
                         &err);
    return rc < 0 ? proxy_command_fail(&metrics_command, rc, &err) : PROXY_COMMAND_FINE;
}

/* ---- profiles ---- */

static void profiles_time(struct columns *columns, double wall_ms)
{
    time_t seconds = (time_t)(wall_ms / MS_PER_S);
    struct tm local;
    char text[32] = "";
    if (wall_ms > 0 && localtime_r(&seconds, &local) != NULL)
        (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local); /* too long for it: stays empty */
    proxy_command_cell_text(columns, text, 0);
}

static void profiles_fill(struct columns *columns, const json_t *description)
{
    double start_ms = proxy_command_number(description, "start_time");
    double end_ms = proxy_command_number(description, "end_time");
    (void)columns_begin(columns);
    proxy_command_cell_text(columns, proxy_command_text(description, "jobid"), 0);
    proxy_command_cell_number(columns, proxy_command_number(description, "size"));
    profiles_time(columns, end_ms);
    proxy_command_cell_duration(columns, end_ms > start_ms ? (end_ms - start_ms) / MS_PER_S : 0);
    proxy_command_cell_text(columns, proxy_command_text(description, "command"), COMMAND_CHARACTERS);
}

static int profiles_print(const json_t *list, struct error *err)
{
    static const char *const heads[] = {"JOB", "SIZE", "ENDED", "TIME", "COMMAND"};
    CLEANUP(buf_cleanup) struct buf out;
    CLEANUP(columns_cleanup) struct columns columns;
    buf_init(&out, METRICS_TEXT_MAX_BYTES);
    columns_init(&columns, "lrlrl");
    size_t index;
    const json_t *description;
    columns_heads(&columns, heads);
    columns_measure(&columns);
    json_array_foreach(list, index, description)
    {
        profiles_fill(&columns, description);
        columns_measure(&columns);
    }
    columns_heads(&columns, heads);
    int rc = columns_put(&columns, &out, err);
    json_array_foreach(list, index, description)
    {
        profiles_fill(&columns, description);
        if (rc == 0)
            rc = columns_put(&columns, &out, err);
    }
    return rc < 0 ? rc : proxy_command_print(&out, err);
}

static int profiles_list(const struct metrics_values *values, struct error *err)
{
    CLEANUP(remote_cleanup) struct remote *remote = NULL;
    CLEANUP(buf_cleanup) struct buf answer;
    buf_init(&answer, METRICS_TEXT_MAX_BYTES);
    int rc = remote_open(values->common.proxy, &remote, err);
    if (rc < 0)
        return rc;
    if (values->is_json) {
        rc = remote_get(remote, "/profiles", &answer, err);
        buf_char(&answer, '\n');
        return rc < 0 ? rc : proxy_command_print(&answer, err);
    }
    json_t *list = NULL;
    rc = remote_get_json(remote, "/profiles", &list, err);
    if (rc == 0)
        rc = profiles_print(list, err);
    json_decref(list);
    return rc;
}

int proxy_commands_profiles(int argc, char **argv)
{
    struct metrics_values values = {0};
    const char *job;
    int status;
    if (!proxy_command_begin(&profiles_command, argc, argv, &values, &job, &status))
        return status;
    struct error err = {0};
    int rc = job != NULL ? metrics_ask(&values, "/profiles/get?jobid=", job, &err) : profiles_list(&values, &err);
    return rc < 0 ? proxy_command_fail(&profiles_command, rc, &err) : PROXY_COMMAND_FINE;
}
