/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a row is found by. */
struct stats_key {
    uint32_t series;
    uint32_t key;
};

static const char stats_duration[] = "dur";

void pfw_stats_init(struct pfw_stats *stats)
{
    *stats = (struct pfw_stats){0};
    pfw_hosts_init(&stats->hosts);
    pfw_args_init(&stats->args);
    pfw_series_init(&stats->series);
    pfw_names_init(&stats->rows, PFW_STATS_ROWS_MAX, PFW_STATS_ROWS_MAX_BYTES);
}

void pfw_stats_fini(struct pfw_stats *stats)
{
    for (uint32_t i = 0; i < stats->count; i++)
        pfw_sketch_fini(&stats->sketches[i]);
    free(stats->sketches);
    pfw_hosts_fini(&stats->hosts);
    pfw_args_fini(&stats->args);
    pfw_series_fini(&stats->series);
    pfw_names_fini(&stats->rows);
}

static int stats_grow(struct pfw_stats *stats, struct error *err)
{
    uint32_t capacity = stats->rows.capacity;
    struct pfw_sketch *sketches = realloc(stats->sketches, capacity * sizeof *sketches);
    if (sketches == NULL)
        return error_set(err, -ENOMEM, "no memory for %u rows", capacity);
    stats->sketches = sketches;
    stats->capacity = capacity;
    return 0;
}

static int stats_count(struct pfw_stats *stats, uint32_t series, uint32_t key, double value, struct error *err)
{
    const struct stats_key row_key = {.series = series, .key = key};
    uint32_t row;
    int rc = pfw_names_add(&stats->rows, &row_key, sizeof row_key, &row, err);
    if (rc == 0 && row >= stats->capacity)
        rc = stats_grow(stats, err);
    if (rc < 0)
        return rc;
    if (row == stats->count)
        stats->sketches[stats->count++] = (struct pfw_sketch){0};
    return pfw_sketch_add(&stats->sketches[row], value, err);
}

static int stats_count_args(struct pfw_stats *stats, uint32_t series, const struct pfw_line *line, struct error *err)
{
    int rc = pfw_args_read(&stats->args, &line->args, err);
    for (size_t i = 0; i < stats->args.count && rc == 0; i++) {
        const struct pfw_arg *arg = &stats->args.list[i];
        struct cursor text = arg->value.text;
        double value;
        if (arg->value.kind == PFW_JSON_NUMBER && cursor_double(&text, &value))
            rc = stats_count(stats, series, arg->key, value, err);
    }
    return rc;
}

static int stats_count_duration(struct pfw_stats *stats, uint32_t series, const struct pfw_line *line,
                                struct error *err)
{
    uint32_t key;
    int rc = pfw_names_add(&stats->args.keys, stats_duration, sizeof stats_duration - 1, &key, err);
    return rc < 0 ? rc : stats_count(stats, series, key, (double)line->dur.value, err);
}

int pfw_stats_add(struct pfw_stats *stats, const struct pfw_line *line, struct error *err)
{
    uint32_t host;
    int rc = pfw_hosts_of(&stats->hosts, line, &host, err);
    bool is_sample = line->phase == PFW_COUNTER || line->phase == PFW_AGGREGATED;
    bool has_duration = line->phase == PFW_COMPLETE && line->dur.is_present;
    if (rc < 0 || !(is_sample || has_duration))
        return rc;
    uint32_t series;
    rc = pfw_series_of(&stats->series, host, line, &series, err);
    if (rc < 0)
        return rc;
    return is_sample ? stats_count_args(stats, series, line, err) : stats_count_duration(stats, series, line, err);
}

struct pfw_stats_row pfw_stats_row(const struct pfw_stats *stats, uint32_t number)
{
    struct stats_key key;
    memcpy(&key, pfw_names_text(&stats->rows, number).at, sizeof key);
    struct pfw_series_id id = pfw_series_id(&stats->series, key.series);
    return (struct pfw_stats_row){
        .host = id.host,
        .category = id.category,
        .name = id.name,
        .key = pfw_names_text(&stats->args.keys, key.key),
        .sketch = &stats->sketches[number],
    };
}
