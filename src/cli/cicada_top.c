/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cicada top: rates of all jobs, or of one job's metrics, again and again.
 *
 * A rate is what a counter grew between two answers, divided by the time between the stamps that the proxy gave the two
 * values: so neither the network's delays nor this program's own are in it.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/proxy_command.h"
#include "cli/proxy_commands.h"
#include "util/clock.h"
#include "util/cursor.h"

enum {
    TOP_TEXT_MAX_BYTES = 16 << 20,
    TOP_PATH_MAX_BYTES = 64 << 10,
    TOP_ROWS_DEFAULT = 40, /* when nothing tells how high the terminal is */
    TOP_HEAD_ROWS = 4,
    TOP_ROWS_MIN = 3,
    TOP_COMMAND_CHARACTERS = 40,
    TOP_NAME_CHARACTERS = 70,
    TOP_DELAY_S_DEFAULT = 2,
    TOP_DELAY_S_MAX = 3600,
    US_PER_S = 1000000,
    NS_PER_S = 1000000000,
};

static const char top_clear[] = "\x1b[H\x1b[J";

struct top_values {
    struct proxy_command_common common;
    const char *delay;
    const char *count;
};

static const struct cli_option top_options[] = {
    {"delay", 'd', CLI_TEXT, "SECONDS", offsetof(struct top_values, delay), "between two looks; 2 without it"},
    {"count", 'n', CLI_TEXT, "N", offsetof(struct top_values, count),
     "end after so many tables; 1 if no terminal sees"},
    PROXY_COMMAND_COMMON_OPTIONS,
};

static const struct cli_command top_command = {
    .name = "cicada top",
    .operands = "[JOB]",
    .summary = "Shows rates of all jobs, or of a job's metrics, again and again until Ctrl-C",
    .details = "RANKS are the MPI ranks that are seen, of those that the launcher says there "
               "are.\n" PROXY_COMMAND_STATUS_DETAILS,
    .options = top_options,
    .options_count = ARRAY_LENGTH(top_options),
};

/* The rates of a job's line. */
static const struct {
    const char *head;
    const char *metric;
} top_rates[] = {
    {"MPI CALLS/s", "total___mpi___hits___total"},
    {"MPI B/s", "total___mpi___size_total"},
    {"READ B/s", "total___strace___size___read"},
    {"WRITE B/s", "total___strace___size___write"},
};

struct top {
    struct remote *remote;
    const char *job; /* NULL: all */
    double delay_s;
    uint64_t tables_left; /* 0: no end */
    bool is_terminal;
    json_t *metrics_before; /* job's id → metric's name → metric; NULL at first */
    json_t *metrics;
    json_t *ranks;
    json_t *list;
};

static void top_cleanup(struct top *top)
{
    json_decref(top->metrics_before);
    json_decref(top->metrics);
    json_decref(top->ranks);
    json_decref(top->list);
    remote_close(top->remote);
}

static size_t top_rows(const struct top *top)
{
    struct winsize size;
    if (!top->is_terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0)
        return TOP_ROWS_DEFAULT;
    return size.ws_row > TOP_HEAD_ROWS + TOP_ROWS_MIN ? (size_t)size.ws_row - TOP_HEAD_ROWS : TOP_ROWS_MIN;
}

/* Reads a job's metrics into top->metrics. One that has ended meanwhile is left out. */
static int top_read_job(struct top *top, const char *id, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, TOP_PATH_MAX_BYTES);
    buf_text(&path, "/job/?job=");
    remote_query_text(&path, id);
    json_t *answer = NULL;
    int rc = buf_status(&path, err);
    if (rc == 0)
        rc = remote_get_json(top->remote, buf_string(&path), &answer, err);
    if (rc == -ESRCH && top->job == NULL)
        return 0;
    if (rc < 0)
        return rc;
    json_t *by_name = json_object();
    size_t index;
    json_t *metric;
    json_array_foreach(json_object_get(answer, "counters"), index, metric)
    {
        (void)json_object_set(by_name, proxy_command_text(metric, "name"), metric); /* no memory: one row fewer */
    }
    (void)json_object_set_new(top->metrics, id, by_name);
    json_decref(answer);
    return 0;
}

static int top_read(struct top *top, struct error *err)
{
    json_decref(top->metrics_before);
    top->metrics_before = top->metrics;
    top->metrics = json_object();
    json_decref(top->ranks);
    top->ranks = NULL;
    json_decref(top->list);
    top->list = NULL;
    int rc = remote_get_json(top->remote, "/ranks", &top->ranks, err);
    if (rc == 0)
        rc = remote_get_json(top->remote, "/job/list", &top->list, err);
    if (rc < 0 || top->job != NULL)
        return rc < 0 ? rc : top_read_job(top, top->job, err);
    size_t rows = top_rows(top);
    size_t index;
    const json_t *job;
    json_array_foreach(json_object_get(top->ranks, "jobs"), index, job)
    {
        if (index >= rows)
            break;
        rc = top_read_job(top, proxy_command_text(job, "jobid"), err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* What a metric grows by in a second; 0 for a gauge, and for one that wasn't there before. */
static double top_rate(const struct top *top, const char *id, const char *name)
{
    const json_t *now = json_object_get(json_object_get(top->metrics, id), name);
    const json_t *before = json_object_get(json_object_get(top->metrics_before, id), name);
    const json_t *counter = json_object_get(json_object_get(now, "ctype"), "Counter");
    const json_t *counter_before = json_object_get(json_object_get(before, "ctype"), "Counter");
    double elapsed_us = proxy_command_number(counter, "ts") - proxy_command_number(counter_before, "ts");
    double grown = proxy_command_number(counter, "value") - proxy_command_number(counter_before, "value");
    bool is_known = counter != NULL && counter_before != NULL && elapsed_us > 0 && grown > 0;
    return is_known ? grown / elapsed_us * US_PER_S : 0;
}

/* ---- all jobs ---- */

static const json_t *top_describe(const struct top *top, const char *id)
{
    size_t index;
    const json_t *description;
    json_array_foreach(top->list, index, description)
    {
        if (strcmp(proxy_command_text(description, "jobid"), id) == 0)
            return description;
    }
    return NULL;
}

static void top_fill_job(const struct top *top, const json_t *job, struct columns *columns)
{
    const char *id = proxy_command_text(job, "jobid");
    struct buf *line = columns_begin(columns);
    proxy_command_cell_text(columns, id, TOP_COMMAND_CHARACTERS);
    buf_printf(line, "%.0f/%.0f", proxy_command_number(job, "ranks"), proxy_command_number(job, "size"));
    columns_end_cell(columns);
    proxy_command_cell_number(columns, proxy_command_number(job, "processes"));
    for (size_t i = 0; i < ARRAY_LENGTH(top_rates); i++)
        proxy_command_cell_number(columns, top_rate(top, id, top_rates[i].metric));
    proxy_command_cell_text(columns, proxy_command_text(top_describe(top, id), "command"), TOP_COMMAND_CHARACTERS);
}

static int top_put_jobs(const struct top *top, struct buf *out, struct error *err)
{
    const char *heads[COLUMNS_MAX] = {"JOB", "RANKS", "PROCS"};
    size_t last = 3;
    for (size_t i = 0; i < ARRAY_LENGTH(top_rates); i++)
        heads[last++] = top_rates[i].head;
    heads[last] = "COMMAND";
    const json_t *jobs = json_object_get(top->ranks, "jobs");
    CLEANUP(columns_cleanup) struct columns columns;
    columns_init(&columns, "lrrrrrrl");
    columns_heads(&columns, heads);
    columns_measure(&columns);
    size_t rows = top_rows(top);
    for (size_t i = 0; i < json_array_size(jobs) && i < rows; i++) {
        top_fill_job(top, json_array_get(jobs, i), &columns);
        columns_measure(&columns);
    }
    columns_heads(&columns, heads);
    int rc = columns_put(&columns, out, err);
    for (size_t i = 0; i < json_array_size(jobs) && i < rows && rc == 0; i++) {
        top_fill_job(top, json_array_get(jobs, i), &columns);
        rc = columns_put(&columns, out, err);
    }
    if (json_array_size(jobs) > rows)
        buf_printf(out, "(%zu more)\n", json_array_size(jobs) - rows);
    if (json_array_size(jobs) == 0)
        buf_text(out, "(no job counts here now)\n");
    return rc;
}

/* ---- one job ---- */

struct top_row {
    const char *name;
    const json_t *metric;
    double rate;
};

/* The fastest first, those that stand still by name. */
static int top_compare(const void *left, const void *right)
{
    const struct top_row *a = left;
    const struct top_row *b = right;
    if (a->rate != b->rate)
        return a->rate > b->rate ? -1 : 1;
    return strverscmp(a->name, b->name);
}

static void top_fill_metric(const struct top_row *row, struct columns *columns)
{
    bool is_counter;
    double value = proxy_command_value(row->metric, &is_counter);
    (void)columns_begin(columns);
    proxy_command_cell_text(columns, row->name, TOP_NAME_CHARACTERS);
    proxy_command_cell_number(columns, value);
    if (is_counter)
        proxy_command_cell_number(columns, row->rate);
    else
        proxy_command_cell_text(columns, "", 0);
}

static int top_put_rows(const struct top_row *rows, size_t count, struct buf *out, struct error *err)
{
    static const char *const heads[] = {"METRIC", "VALUE", "PER SECOND"};
    CLEANUP(columns_cleanup) struct columns columns;
    columns_init(&columns, "lrr");
    columns_heads(&columns, heads);
    columns_measure(&columns);
    for (size_t i = 0; i < count; i++) {
        top_fill_metric(&rows[i], &columns);
        columns_measure(&columns);
    }
    columns_heads(&columns, heads);
    int rc = columns_put(&columns, out, err);
    for (size_t i = 0; i < count && rc == 0; i++) {
        top_fill_metric(&rows[i], &columns);
        rc = columns_put(&columns, out, err);
    }
    return rc;
}

static int top_put_metrics(const struct top *top, struct buf *out, struct error *err)
{
    json_t *metrics = json_object_get(top->metrics, top->job);
    size_t count = json_object_size(metrics);
    CLEANUP(memory_cleanup) struct top_row *rows = calloc(count > 0 ? count : 1, sizeof *rows);
    if (rows == NULL)
        return error_set(err, -ENOMEM, "no memory for %zu metrics", count);
    const char *name;
    json_t *metric;
    size_t filled = 0;
    json_object_foreach(metrics, name, metric)
    {
        rows[filled++] = (struct top_row){.name = name, .metric = metric, .rate = top_rate(top, top->job, name)};
    }
    qsort(rows, count, sizeof *rows, top_compare);
    size_t shown = top_rows(top);
    int rc = top_put_rows(rows, shown < count ? shown : count, out, err);
    if (count > shown)
        buf_printf(out, "(%zu more: cicada metrics %s)\n", count - shown, top->job);
    return rc;
}

/* ---- the command ---- */

static int top_show(const struct top *top, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, TOP_TEXT_MAX_BYTES);
    time_t now = (time_t)(clock_wall_ns() / NS_PER_S);
    struct tm local = {0};
    char clock_text[16] = "";
    if (localtime_r(&now, &local) != NULL)
        (void)strftime(clock_text, sizeof clock_text, "%H:%M:%S", &local); /* fits */
    if (top->is_terminal)
        buf_text(&out, top_clear);
    buf_printf(&out, "%s  %s%s%s\n\n", clock_text, remote_url(top->remote), top->job != NULL ? "  job " : "",
               top->job != NULL ? top->job : "");
    int rc = top->job != NULL ? top_put_metrics(top, &out, err) : top_put_jobs(top, &out, err);
    return rc < 0 ? rc : proxy_command_print(&out, err);
}

static void top_wait(double delay_s)
{
    double whole = floor(delay_s);
    struct timespec left = {.tv_sec = (time_t)whole, .tv_nsec = (long)((delay_s - whole) * NS_PER_S)};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ; /* a window that changed its size */
}

static int top_run(struct top *top, struct error *err)
{
    int rc = top_read(top, err);
    bool has_end = top->tables_left > 0;
    while (rc == 0) {
        top_wait(top->delay_s);
        rc = top_read(top, err);
        if (rc == 0)
            rc = top_show(top, err);
        if (has_end && --top->tables_left == 0)
            break;
    }
    return rc;
}

static int top_numbers(const struct top_values *values, struct top *top, struct error *err)
{
    top->is_terminal = isatty(STDOUT_FILENO) == 1;
    top->delay_s = TOP_DELAY_S_DEFAULT;
    top->tables_left = top->is_terminal ? 0 : 1;
    if (values->delay != NULL) {
        struct cursor cursor = cursor_of(values->delay, strlen(values->delay));
        if (!cursor_double(&cursor, &top->delay_s) || !cursor_is_empty(&cursor) || top->delay_s <= 0 ||
            top->delay_s > TOP_DELAY_S_MAX)
            return error_set(err, -EINVAL, "--delay '%s': a number of seconds above 0, at most %d", values->delay,
                             TOP_DELAY_S_MAX);
    }
    if (values->count != NULL) {
        struct cursor cursor = cursor_of(values->count, strlen(values->count));
        if (!cursor_u64(&cursor, &top->tables_left) || !cursor_is_empty(&cursor) || top->tables_left == 0)
            return error_set(err, -EINVAL, "--count '%s': a number of tables, 1 or more", values->count);
    }
    return 0;
}

int proxy_commands_top(int argc, char **argv)
{
    struct top_values values = {0};
    CLEANUP(top_cleanup) struct top top = {0};
    int status;
    if (!proxy_command_begin(&top_command, argc, argv, &values, &top.job, &status))
        return status;
    struct error err = {0};
    int rc = top_numbers(&values, &top, &err);
    if (rc == 0)
        rc = remote_open(values.common.proxy, &top.remote, &err);
    if (rc == 0)
        rc = top_run(&top, &err);
    return rc < 0 ? proxy_command_fail(&top_command, rc, &err) : PROXY_COMMAND_FINE;
}
