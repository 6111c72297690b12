/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/records.h"

#include <stddef.h>
#include <string.h>

#include "sample/cpu.h"
#include "sample/power.h"

enum { RECORDS_DECIMALS = 6, RECORDS_PERCENT_DECIMALS = 4, RECORDS_NAME_MAX_BYTES = SAMPLE_NAME_MAX_BYTES + 64 };

enum records_naming {
    RECORDS_FIXED,  /* all of the collector is one thing: `name` */
    RECORDS_ROW,    /* the row's own name */
    RECORDS_PREFIX, /* `name`, then the row's */
};

/* One tick of one collector, on its way into lines. */
struct records_tick {
    const struct records *records;
    const struct sample_table *table;
    const struct records_rule *rule;
    int64_t ts;
    struct buf *out;
};

struct records_rule {
    const char *collector;
    const char *name;
    const char *category;
    enum records_naming naming;
    enum pfw_type type;
    /* NULL: the general way, an event a row and a key a column. Else appends the events of one table. */
    uint64_t (*append)(const struct records_tick *tick);
};

static uint64_t records_append_cpu(const struct records_tick *tick);
static uint64_t records_append_memory(const struct records_tick *tick);
static uint64_t records_append_power(const struct records_tick *tick);

static const struct records_rule records_rules[] = {
    {"cpu", "cpu-", "sys", RECORDS_PREFIX, PFW_TYPE_PSUTIL, records_append_cpu},
    {"memory", "memory", "sys", RECORDS_FIXED, PFW_TYPE_PSUTIL, records_append_memory},
    {"load", "load", "sys", RECORDS_FIXED, PFW_TYPE_PSUTIL, NULL},
    {"pressure", "pressure-", "sys", RECORDS_PREFIX, PFW_TYPE_PSUTIL, NULL},
    {"vm", "vm", "sys", RECORDS_FIXED, PFW_TYPE_PSUTIL, NULL},
    {"disk", "", "io", RECORDS_ROW, PFW_TYPE_PSUTIL, NULL},
    {"filesystem", "fs-", "fs", RECORDS_PREFIX, PFW_TYPE_PSUTIL, NULL},
    {"network", "net-", "net", RECORDS_PREFIX, PFW_TYPE_PSUTIL, NULL},
    {"infiniband", "ib-", "net", RECORDS_PREFIX, PFW_TYPE_PSUTIL, NULL},
    {"temperature", "temp-", "sys", RECORDS_PREFIX, PFW_TYPE_PSUTIL, NULL},
    {"frequency", "freq-", "sys", RECORDS_PREFIX, PFW_TYPE_PSUTIL, NULL},
    {"cgroup", "cgroup-", "sys", RECORDS_PREFIX, PFW_TYPE_PSUTIL, NULL},
    {"power", "power", "node", RECORDS_FIXED, PFW_TYPE_VARIORUM, records_append_power},
};

static void records_begin(const struct records_tick *tick, const char *name, size_t name_length)
{
    pfw_event_begin(tick->out, tick->records->source, PFW_COUNTER, name, name_length, tick->rule->category,
                    tick->rule->type, tick->ts);
}

/* Begins the event of a row under the rule's name for it. */
static void records_begin_row(const struct records_tick *tick, const char *row_name, size_t row_length)
{
    const struct records_rule *rule = tick->rule;
    char name[RECORDS_NAME_MAX_BYTES];
    size_t length = rule->naming == RECORDS_ROW ? 0 : strlen(rule->name);
    memcpy(name, rule->name, length);
    if (rule->naming != RECORDS_FIXED) {
        if (row_length > sizeof name - length)
            row_length = sizeof name - length; /* no table holds such a name */
        memcpy(name + length, row_name, row_length);
        length += row_length;
    }
    records_begin(tick, name, length);
}

static void records_value(const struct records_tick *tick, const struct sample_column *column,
                          const struct sample_value *value)
{
    if (!value->is_known)
        return;
    switch (column->kind) {
    case SAMPLE_COUNTER:
        pfw_event_u64(tick->out, column->name, value->increase);
        break;
    case SAMPLE_INTEGER:
        pfw_event_i64(tick->out, column->name, value->integer);
        break;
    case SAMPLE_REAL:
        pfw_event_fixed(tick->out, column->name, value->real, RECORDS_DECIMALS);
        break;
    }
}

static bool records_has_counters(const struct sample_table *table)
{
    for (size_t i = 0; i < table->columns_count; i++) {
        if (table->columns[i].kind == SAMPLE_COUNTER)
            return true;
    }
    return false;
}

/* A row without anything known would be an event that says nothing. */
static bool records_row_is_known(const struct sample_table *table, const struct sample_row *row)
{
    for (size_t i = 0; i < table->columns_count; i++) {
        if (row->values[i].is_known)
            return true;
    }
    return false;
}

static uint64_t records_append_rows(const struct records_tick *tick)
{
    const struct sample_table *table = tick->table;
    bool has_counters = records_has_counters(table);
    uint64_t events = 0;
    for (size_t r = 0; r < table->rows_count; r++) {
        const struct sample_row *row = table->rows[r];
        if ((row->is_first && has_counters) || !records_row_is_known(table, row))
            continue;
        records_begin_row(tick, row->name, strlen(row->name));
        if (row->label != NULL)
            pfw_event_text(tick->out, "label", row->label);
        for (size_t i = 0; i < table->columns_count; i++)
            records_value(tick, &table->columns[i], &row->values[i]);
        pfw_event_end(tick->out);
        events++;
    }
    return events;
}

/* "cpu" for all of them, "cpu-7" for the kernel's cpu7. */
static uint64_t records_append_cpu(const struct records_tick *tick)
{
    static const char kernel_name[] = "cpu";
    static const char *const keys[CPU_COLUMNS] = {[CPU_USER] = "user_pct",       [CPU_NICE] = "nice_pct",
                                                  [CPU_SYSTEM] = "system_pct",   [CPU_IDLE] = "idle_pct",
                                                  [CPU_IOWAIT] = "iowait_pct",   [CPU_IRQ] = "irq_pct",
                                                  [CPU_SOFTIRQ] = "softirq_pct", [CPU_STEAL] = "steal_pct",
                                                  [CPU_GUEST] = "guest_pct",     [CPU_GUEST_NICE] = "guest_nice_pct"};
    uint64_t events = 0;
    for (size_t r = 0; r < tick->table->rows_count; r++) {
        const struct sample_row *row = tick->table->rows[r];
        double percent[CPU_COLUMNS];
        if (!cpu_percentages(row, percent))
            continue;
        size_t length = strlen(row->name);
        size_t prefix = sizeof kernel_name - 1;
        if (length > prefix)
            records_begin_row(tick, row->name + prefix, length - prefix);
        else
            records_begin(tick, row->name, length);
        for (size_t i = 0; i < CPU_COLUMNS; i++)
            pfw_event_fixed(tick->out, keys[i], percent[i], RECORDS_PERCENT_DECIMALS);
        pfw_event_end(tick->out);
        events++;
    }
    return events;
}

/* A gauge of a row by its column's name; false when it isn't there. */
static bool records_find(const struct sample_table *table, const struct sample_row *row, const char *name,
                         int64_t *out_integer)
{
    for (size_t i = 0; i < table->columns_count; i++) {
        if (strcmp(table->columns[i].name, name) != 0 || table->columns[i].kind != SAMPLE_INTEGER)
            continue;
        *out_integer = row->values[i].integer;
        return row->values[i].is_known;
    }
    return false;
}

static void records_memory_percent(const struct records_tick *tick, const struct sample_row *row, int64_t available)
{
    for (size_t i = 0; i < tick->table->columns_count; i++) {
        const struct sample_value *value = &row->values[i];
        if (value->is_known && tick->table->columns[i].kind == SAMPLE_INTEGER)
            pfw_event_fixed(tick->out, tick->table->columns[i].name, 100 * (double)value->integer / (double)available,
                            RECORDS_PERCENT_DECIMALS);
    }
}

/* /proc/meminfo as the kernel has it, and how much of it is used, which is what people ask first. */
static uint64_t records_append_memory(const struct records_tick *tick)
{
    const struct sample_table *table = tick->table;
    if (table->rows_count == 0)
        return 0;
    const struct sample_row *row = table->rows[0];
    int64_t total = 0;
    int64_t available = 0;
    bool has_available = records_find(table, row, "MemAvailable", &available);
    records_begin_row(tick, row->name, strlen(row->name));
    if (tick->records->has_memory_percent && has_available && available > 0) {
        records_memory_percent(tick, row, available);
    } else {
        for (size_t i = 0; i < table->columns_count; i++)
            records_value(tick, &table->columns[i], &row->values[i]);
    }
    if (records_find(table, row, "MemTotal", &total) && has_available && total > 0)
        pfw_event_fixed(tick->out, "used_pct", 100 * (double)(total - available) / (double)total,
                        RECORDS_PERCENT_DECIMALS);
    pfw_event_end(tick->out);
    return 1;
}

static const char *records_family(const struct sample_row *row)
{
    return row->group != NULL ? row->group : "node";
}

/* Has a row before row `index` the same family? */
static bool records_family_is_done(const struct sample_table *table, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (table->rows[i]->values[POWER_WATTS].is_known &&
            strcmp(records_family(table->rows[i]), records_family(table->rows[index])) == 0)
            return true;
    }
    return false;
}

/* An event a family of readings (cpu, memory, gpu, node), with a key for each of them, in watts. */
static uint64_t records_append_power(const struct records_tick *tick)
{
    const struct sample_table *table = tick->table;
    uint64_t events = 0;
    for (size_t first = 0; first < table->rows_count; first++) {
        const char *family = records_family(table->rows[first]);
        if (!table->rows[first]->values[POWER_WATTS].is_known || records_family_is_done(table, first))
            continue;
        pfw_event_begin(tick->out, tick->records->source, PFW_COUNTER, tick->rule->name, strlen(tick->rule->name),
                        family, tick->rule->type, tick->ts);
        for (size_t r = first; r < table->rows_count; r++) {
            const struct sample_value *watts = &table->rows[r]->values[POWER_WATTS];
            if (watts->is_known && strcmp(records_family(table->rows[r]), family) == 0)
                pfw_event_fixed(tick->out, table->rows[r]->name, watts->real, RECORDS_DECIMALS);
        }
        pfw_event_end(tick->out);
        events++;
    }
    return events;
}

static const struct records_rule *records_find_rule(const char *collector)
{
    for (size_t i = 0; i < ARRAY_LENGTH(records_rules); i++) {
        if (strcmp(records_rules[i].collector, collector) == 0)
            return &records_rules[i];
    }
    return NULL;
}

uint64_t records_append(const struct records *records, const char *collector, const struct sample_table *table,
                        int64_t ts, struct buf *out)
{
    char prefix[RECORDS_NAME_MAX_BYTES];
    struct records_rule general = {
        .collector = collector, .name = prefix, .naming = RECORDS_PREFIX, .category = "sys", .type = PFW_TYPE_PSUTIL};
    const struct records_rule *rule = records_find_rule(collector);
    if (rule == NULL) {
        (void)snprintf(prefix, sizeof prefix, "%s-", collector);
        rule = &general;
    }
    const struct records_tick tick = {.records = records, .table = table, .rule = rule, .ts = ts, .out = out};
    return rule->append != NULL ? rule->append(&tick) : records_append_rows(&tick);
}
