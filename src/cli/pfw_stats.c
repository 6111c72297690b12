/* SPDX-License-Identifier: BSD-3-Clause */
/* pfw stats: count, mean, p50, p99 and maximum of every number of every series. */
#include "pfw/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/columns.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"

struct stats_values {
    struct command_filtered filtered;
    bool is_json;
};

static const struct cli_option stats_options[] = {
    {"json", '\0', CLI_FLAG, NULL, offsetof(struct stats_values, is_json), "print JSON, for programs"},
    COMMAND_FILTER_OPTIONS,
    COMMAND_COMMON_OPTIONS,
};

static const struct cli_command stats_command = {
    .name = "pfw stats",
    .operands = "FILE...",
    .summary = "Prints count, mean, p50, p99, minimum and maximum of each number of each series",
    .details =
        "Counters give their arguments, complete events their duration (dur). Several files are taken together.\n"
        "p50 and p99 are exact up to 128 numbers that are not 0; with more, which ~ marks, they are within 1.6 "
        "%.\n" COMMAND_FILTER_DETAILS COMMAND_STATUS_DETAILS,
    .options = stats_options,
    .options_count = ARRAY_LENGTH(stats_options),
};

struct stats {
    struct pfw_filter filter;
    struct pfw_stats stats;
    struct output output;
};

static void stats_cleanup(struct stats *stats)
{
    pfw_filter_fini(&stats->filter);
    pfw_stats_fini(&stats->stats);
    output_close(&stats->output);
}

static int stats_on_file(void *context, const char *name, struct error *err)
{
    (void)name;
    (void)err;
    struct stats *stats = context;
    pfw_filter_next_file(&stats->filter);
    return 0;
}

static int stats_on_line(void *context, const struct pfw_line *line, const struct pfw_item *item, bool *out_is_enough,
                         struct error *err)
{
    (void)item;
    (void)out_is_enough;
    struct stats *stats = context;
    bool is_wanted;
    int rc = pfw_filter_add(&stats->filter, line, &is_wanted, err);
    if (rc < 0 || (!is_wanted && !pfw_hosts_is_naming(line)))
        return rc;
    return pfw_stats_add(&stats->stats, line, err);
}

/* ---- order ---- */

/* By host, category, name and key, with numbers in them by their value: cpu-2 before cpu-10. */
static int stats_compare(const void *left, const void *right, void *context)
{
    const struct pfw_hosts *hosts = context;
    const struct pfw_stats_row *a = left;
    const struct pfw_stats_row *b = right;
    int order = strverscmp(pfw_hosts_label(hosts, a->host), pfw_hosts_label(hosts, b->host));
    if (order == 0)
        order = a->host < b->host ? -1 : a->host > b->host; /* two hosts of one name */
    if (order == 0)
        order = strverscmp(a->category.at, b->category.at);
    if (order == 0)
        order = strverscmp(a->name.at, b->name.at);
    return order != 0 ? order : strverscmp(a->key.at, b->key.at);
}

/* All rows in order. Returns owned, NULL without memory. */
static struct pfw_stats_row *stats_sort(struct stats *stats)
{
    uint32_t count = stats->stats.count;
    struct pfw_stats_row *rows = malloc((count > 0 ? count : 1) * sizeof *rows);
    if (rows == NULL)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        rows[i] = pfw_stats_row(&stats->stats, i);
    qsort_r(rows, count, sizeof *rows, stats_compare, &stats->stats.hosts);
    return rows;
}

/* ---- table ---- */

static void stats_number(struct buf *out, double number)
{
    buf_printf(out, "%.6g", number);
}

static void stats_quantile(struct buf *out, const struct pfw_sketch *sketch, double part)
{
    buf_text(out, pfw_sketch_is_exact(sketch) ? "" : "~");
    stats_number(out, pfw_sketch_quantile(sketch, part));
}

static void stats_fill_line(const struct pfw_hosts *hosts, const struct pfw_stats_row *row, struct columns *columns)
{
    struct buf *out = columns_begin(columns);
    const struct pfw_sketch *sketch = row->sketch;
    const char *host = pfw_hosts_label(hosts, row->host);
    command_clean(out, host, strlen(host));
    columns_end_cell(columns);
    command_clean(out, row->category.at, cursor_left(&row->category));
    columns_end_cell(columns);
    command_clean(out, row->name.at, cursor_left(&row->name));
    columns_end_cell(columns);
    command_clean(out, row->key.at, cursor_left(&row->key));
    columns_end_cell(columns);
    buf_u64(out, sketch->count);
    columns_end_cell(columns);
    stats_number(out, pfw_sketch_mean(sketch));
    columns_end_cell(columns);
    stats_quantile(out, sketch, 0.5);
    columns_end_cell(columns);
    stats_quantile(out, sketch, 0.99);
    columns_end_cell(columns);
    stats_number(out, sketch->min);
    columns_end_cell(columns);
    stats_number(out, sketch->max);
    columns_end_cell(columns);
}

static int stats_print_table(struct stats *stats, const struct pfw_stats_row *rows, struct error *err)
{
    static const char *const heads[] = {"host", "cat", "name", "key", "count", "mean", "p50", "p99", "min", "max"};
    CLEANUP(columns_cleanup) struct columns columns;
    columns_init(&columns, "llllrrrrrr");
    columns_heads(&columns, heads);
    columns_measure(&columns);
    for (uint32_t i = 0; i < stats->stats.count; i++) {
        stats_fill_line(&stats->stats.hosts, &rows[i], &columns);
        columns_measure(&columns);
    }
    columns_heads(&columns, heads);
    int rc = columns_put(&columns, &stats->output.text, err);
    for (uint32_t i = 0; i < stats->stats.count && rc == 0; i++) {
        stats_fill_line(&stats->stats.hosts, &rows[i], &columns);
        rc = columns_put(&columns, &stats->output.text, err);
        if (rc == 0)
            rc = output_drain(&stats->output, err);
    }
    return rc;
}

/* ---- JSON ---- */

static void stats_json_double(struct buf *out, const char *key, double number)
{
    buf_text(out, key);
    buf_double(out, number);
}

static void stats_row_json(const struct pfw_hosts *hosts, const struct pfw_stats_row *row, struct buf *out)
{
    const struct pfw_sketch *sketch = row->sketch;
    const char *name = pfw_hosts_name(hosts, row->host);
    buf_text(out, "{\"host\":");
    if (name != NULL)
        buf_json_string(out, name);
    else
        buf_text(out, "null");
    buf_text(out, ",\"hhash\":");
    buf_json_string(out, pfw_hosts_hash(hosts, row->host));
    buf_text(out, ",\"cat\":");
    buf_json_bytes(out, row->category.at, cursor_left(&row->category));
    buf_text(out, ",\"name\":");
    buf_json_bytes(out, row->name.at, cursor_left(&row->name));
    buf_text(out, ",\"key\":");
    buf_json_bytes(out, row->key.at, cursor_left(&row->key));
    buf_printf(out, ",\"count\":%" PRIu64, sketch->count);
    stats_json_double(out, ",\"mean\":", pfw_sketch_mean(sketch));
    stats_json_double(out, ",\"p50\":", pfw_sketch_quantile(sketch, 0.5));
    stats_json_double(out, ",\"p99\":", pfw_sketch_quantile(sketch, 0.99));
    stats_json_double(out, ",\"min\":", sketch->min);
    stats_json_double(out, ",\"max\":", sketch->max);
    buf_printf(out, ",\"is_exact\":%s}", pfw_sketch_is_exact(sketch) ? "true" : "false");
}

static int stats_print_json(struct stats *stats, const struct pfw_stats_row *rows, struct error *err)
{
    struct buf *out = &stats->output.text;
    int rc = 0;
    buf_text(out, "[");
    for (uint32_t i = 0; i < stats->stats.count && rc == 0; i++) {
        buf_text(out, i > 0 ? ",\n" : "");
        stats_row_json(&stats->stats.hosts, &rows[i], out);
        rc = output_drain(&stats->output, err);
    }
    buf_text(out, "]\n");
    return rc;
}

/* ---- the command ---- */

static int stats_print(struct stats *stats, bool is_json, struct error *err)
{
    CLEANUP(memory_cleanup) struct pfw_stats_row *rows = stats_sort(stats);
    if (rows == NULL)
        return error_set(err, -ENOMEM, "no memory to sort %" PRIu32 " rows", stats->stats.count);
    int rc = is_json ? stats_print_json(stats, rows, err) : stats_print_table(stats, rows, err);
    return rc < 0 ? rc : output_finish(&stats->output, err);
}

int commands_stats(int argc, char **argv)
{
    struct stats_values values = {0};
    int files;
    int status;
    if (!command_begin(&stats_command, argc, argv, &values, &files, &status))
        return status;
    CLEANUP(stats_cleanup) struct stats stats = {0};
    struct pfw_filter_options options;
    struct error err = {0};
    int rc = command_filter(&values.filtered, &options, &err);
    enum input_status read_status = INPUT_FAILED;
    if (rc == 0) {
        pfw_filter_init(&stats.filter, &options);
        pfw_stats_init(&stats.stats);
        rc = output_open(&stats.output, NULL, false, &err);
    }
    if (rc == 0) {
        const struct input_handler handler = {.context = &stats, .on_file = stats_on_file, .on_line = stats_on_line};
        read_status = input_read(stats_command.name, argv, files, values.filtered.common.is_salvaging, &handler);
        rc = stats_print(&stats, values.is_json, &err);
    }
    if (rc < 0) {
        command_complain(&stats_command, &err);
        return INPUT_FAILED;
    }
    return (int)read_status;
}
