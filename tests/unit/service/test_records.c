/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sample/cpu.h"
#include "sample/power.h"

enum { LINES_MAX_BYTES = 1 << 20 };

static const struct pfw_source source = {.host_hash = "0123456789abcdef", .pid = 17, .tid = 17};
static const struct records records = {.source = &source};
static const struct records in_percent = {.source = &source, .has_memory_percent = true};

#define HEAD(name, category, type)                                                                                     \
    "{\"name\":\"" name "\",\"cat\":\"" category "\",\"type\":" type                                                   \
    ",\"ts\":5,\"ph\":2,\"pid\":17,\"tid\":0,\"args\":{\"hhash\":\"0123456789abcdef\""

static void table_cleanup(struct sample_table *table)
{
    sample_table_fini(table);
}

static struct sample_table table_new(const struct sample_column *columns, size_t count)
{
    struct sample_table table;
    assert_int_equal(sample_table_init(&table, columns, count, 0, NULL), 0);
    return table;
}

static struct sample_row *row(struct sample_table *table, const char *name)
{
    struct sample_row *found = sample_table_row(table, name, strlen(name));
    assert_non_null(found);
    return found;
}

/* What a collector's table becomes. */
static void assert_lines(const struct records *how, const char *collector, const struct sample_table *table,
                         uint64_t events, const char *expected)
{
    CLEANUP(buf_cleanup) struct buf lines;
    buf_init(&lines, LINES_MAX_BYTES);
    assert_int_equal(records_append(how, collector, table, 5, &lines), events);
    assert_string_equal(buf_string(&lines), expected);
}

static const struct sample_column disk[] = {{"bytes_read", "bytes", "", SAMPLE_COUNTER},
                                            {"ios_in_progress", "", "", SAMPLE_INTEGER}};

static void disk_at(struct sample_table *table, const char *name, uint64_t bytes, int64_t in_progress)
{
    struct sample_row *one = row(table, name);
    sample_row_count(one, 0, bytes);
    sample_row_integer(one, 1, in_progress);
}

static void differences_are_written_from_the_second_tick_on(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new(disk, 2);
    sample_table_begin(&table);
    disk_at(&table, "sda", 1000, 3);
    sample_table_end(&table);
    assert_lines(&records, "disk", &table, 0, "");
    sample_table_begin(&table);
    disk_at(&table, "sda", 1500, 4);
    disk_at(&table, "sdb", 9999, 1);
    sample_table_end(&table);
    assert_lines(&records, "disk", &table, 1, HEAD("sda", "io", "7") ",\"bytes_read\":500,\"ios_in_progress\":4}}\n");
}

static void names_are_escaped_and_prefixed_and_labels_are_said(void **state)
{
    (void)state;
    static const struct sample_column columns[] = {{"size_bytes", "bytes", "", SAMPLE_INTEGER}};
    CLEANUP(table_cleanup) struct sample_table table = table_new(columns, 1);
    sample_table_begin(&table);
    struct sample_row *one = row(&table, "/mnt/\"a\\b\"\n\xff");
    sample_row_integer(one, 0, 7);
    sample_row_set_label(one, "server:/x\"", 10);
    sample_table_end(&table);
    assert_lines(
        &records, "filesystem", &table, 1,
        HEAD("fs-/mnt/\\\"a\\\\b\\\"\\n\xef\xbf\xbd", "fs", "7") ",\"label\":\"server:/x\\\"\",\"size_bytes\":7}}\n");
}

static void longest_name_is_written_whole(void **state)
{
    (void)state;
    static const struct sample_column columns[] = {{"size_bytes", "bytes", "", SAMPLE_INTEGER}};
    CLEANUP(table_cleanup) struct sample_table table = table_new(columns, 1);
    char name[SAMPLE_NAME_MAX_BYTES + 1];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    sample_table_begin(&table);
    sample_row_integer(row(&table, name), 0, 7);
    sample_table_end(&table);
    CLEANUP(buf_cleanup) struct buf lines;
    buf_init(&lines, LINES_MAX_BYTES);
    assert_int_equal(records_append(&records, "filesystem", &table, 5, &lines), 1);
    assert_non_null(strstr(buf_string(&lines), name));
    lines.length = 0;
    assert_int_equal(records_append(&records, "a collector of tomorrow", &table, 5, &lines), 1);
    assert_non_null(strstr(buf_string(&lines), name));
}

static void rows_without_anything_known_are_left_out(void **state)
{
    (void)state;
    static const struct sample_column columns[] = {{"frequency_khz", "kHz", "", SAMPLE_INTEGER}};
    CLEANUP(table_cleanup) struct sample_table table = table_new(columns, 1);
    sample_table_begin(&table);
    (void)row(&table, "cpu0");
    sample_row_integer(row(&table, "cpu1"), 0, 2400000);
    sample_table_end(&table);
    assert_lines(&records, "frequency", &table, 1, HEAD("freq-cpu1", "sys", "7") ",\"frequency_khz\":2400000}}\n");
}

static void collector_without_a_rule_gets_its_name_before_the_rows(void **state)
{
    (void)state;
    static const struct sample_column columns[] = {{"celsius", "celsius", "", SAMPLE_REAL}};
    CLEANUP(table_cleanup) struct sample_table table = table_new(columns, 1);
    sample_table_begin(&table);
    sample_row_real(row(&table, "gpu0"), 0, 41.5);
    sample_table_end(&table);
    assert_lines(&records, "accelerator", &table, 1, HEAD("accelerator-gpu0", "sys", "7") ",\"celsius\":41.5}}\n");
}

static void cpu_at(struct sample_table *table, const char *name, uint64_t user, uint64_t idle, uint64_t guest)
{
    const uint64_t ticks[CPU_COLUMNS] = {[CPU_USER] = user, [CPU_IDLE] = idle, [CPU_GUEST] = guest};
    struct sample_row *one = row(table, name);
    for (size_t i = 0; i < CPU_COLUMNS; i++)
        sample_row_count(one, i, ticks[i]);
}

static void cpus_are_percentages_of_the_time_since_the_last_tick(void **state)
{
    (void)state;
    struct sample_table table;
    assert_int_equal(cpu_table_init(&table, NULL), 0);
    sample_table_begin(&table);
    cpu_at(&table, "cpu", 100, 900, 0);
    cpu_at(&table, "cpu12", 100, 900, 0);
    sample_table_end(&table);
    assert_lines(&records, "cpu", &table, 0, "");
    sample_table_begin(&table);
    cpu_at(&table, "cpu", 130, 970, 20);
    cpu_at(&table, "cpu12", 101, 902, 0);
    cpu_at(&table, "cpu13", 7, 7, 7); /* has just come */
    sample_table_end(&table);
    assert_lines(
        &records, "cpu", &table, 2,
        HEAD("cpu", "sys",
             "7") ",\"user_pct\":10,\"nice_pct\":0,\"system_pct\":0,\"idle_pct\":70,\"iowait_pct\":0,\"irq_pct\":0,"
                  "\"softirq_pct\":0,\"steal_pct\":0,\"guest_pct\":20,\"guest_nice_pct\":0}}\n" HEAD(
                      "cpu-12", "sys",
                      "7") ",\"user_pct\":33.3333,\"nice_pct\":0,\"system_pct\":0,\"idle_pct\":66.6667,"
                           "\"iowait_pct\":0,\"irq_pct\":0,\"softirq_pct\":0,\"steal_pct\":0,\"guest_pct\":0,"
                           "\"guest_nice_pct\":0}}\n");
    sample_table_fini(&table);
}

static const struct sample_column memory[] = {{"MemTotal", "kB", "", SAMPLE_INTEGER},
                                              {"MemAvailable", "kB", "", SAMPLE_INTEGER},
                                              {"HugePages_Total", "", "", SAMPLE_INTEGER}};

static struct sample_table memory_table(int64_t total, int64_t available)
{
    struct sample_table table = table_new(memory, 3);
    sample_table_begin(&table);
    struct sample_row *one = row(&table, "memory");
    if (total >= 0)
        sample_row_integer(one, 0, total);
    if (available >= 0)
        sample_row_integer(one, 1, available);
    sample_table_end(&table);
    return table;
}

static void memory_is_what_the_kernel_says_and_how_much_is_used(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = memory_table(1000, 750);
    assert_lines(&records, "memory", &table, 1,
                 HEAD("memory", "sys", "7") ",\"MemTotal\":1000,\"MemAvailable\":750,\"used_pct\":25}}\n");
}

static void memory_in_percent_is_of_what_is_available(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = memory_table(1000, 750);
    assert_lines(&in_percent, "memory", &table, 1,
                 HEAD("memory", "sys", "7") ",\"MemTotal\":133.3333,\"MemAvailable\":100,\"used_pct\":25}}\n");
}

static void memory_without_an_available_part_has_no_percentages(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table old = memory_table(1000, -1); /* Linux 3.10 */
    assert_lines(&records, "memory", &old, 1, HEAD("memory", "sys", "7") ",\"MemTotal\":1000}}\n");
    assert_lines(&in_percent, "memory", &old, 1, HEAD("memory", "sys", "7") ",\"MemTotal\":1000}}\n");
    CLEANUP(table_cleanup) struct sample_table full = memory_table(1000, 0);
    assert_lines(&in_percent, "memory", &full, 1,
                 HEAD("memory", "sys", "7") ",\"MemTotal\":1000,\"MemAvailable\":0,\"used_pct\":100}}\n");
}

static void power_at(struct sample_table *table, const char *name, const char *group, double watts)
{
    struct sample_row *one = row(table, name);
    one->group = group;
    sample_row_real(one, POWER_WATTS, watts);
}

static void power_is_one_event_a_family(void **state)
{
    (void)state;
    static const struct sample_column columns[POWER_COLUMNS] = {
        [POWER_ENERGY] = {"energy_uj", "microjoules", "", SAMPLE_COUNTER},
        [POWER_WATTS] = {"power_watts", "watts", "", SAMPLE_REAL}};
    CLEANUP(table_cleanup) struct sample_table table = table_new(columns, POWER_COLUMNS);
    sample_table_begin(&table);
    (void)row(&table, "not known yet");
    power_at(&table, "package-0", "cpu", 80.5);
    power_at(&table, "package-0-dram", "memory", 10);
    power_at(&table, "package-1", "cpu", 81);
    power_at(&table, "psys", NULL, 300);
    sample_table_end(&table);
    assert_lines(
        &records, "power", &table, 3,
        HEAD("power", "cpu", "13") ",\"package-0\":80.5,\"package-1\":81}}\n" HEAD(
            "power", "memory", "13") ",\"package-0-dram\":10}}\n" HEAD("power", "node", "13") ",\"psys\":300}}\n");
}

static void empty_tables_are_no_events(void **state)
{
    (void)state;
    static const char *const collectors_known[] = {"cpu", "memory", "load", "disk", "power", "cgroup", "something"};
    for (size_t i = 0; i < ARRAY_LENGTH(collectors_known); i++) {
        CLEANUP(table_cleanup) struct sample_table table = table_new(disk, 2);
        assert_lines(&records, collectors_known[i], &table, 0, "");
    }
}

/* A collector that is added gets names without a rule, but should not get them by oversight. */
static void every_collector_has_a_rule(void **state)
{
    (void)state;
    static const struct sample_column columns[] = {{"x", "", "", SAMPLE_INTEGER}, {"y", "", "", SAMPLE_REAL}};
    for (size_t i = 0; collectors[i] != NULL; i++) {
        if (strcmp(collectors[i]->name, "cpu") == 0)
            continue; /* has a table of its own, and its own test */
        CLEANUP(table_cleanup) struct sample_table table = table_new(columns, 2);
        sample_table_begin(&table);
        sample_row_real(row(&table, "row"), 1, 1);
        sample_table_end(&table);
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, LINES_MAX_BYTES);
        assert_int_equal(records_append(&records, collectors[i]->name, &table, 5, &lines), 1);
        char general[64];
        (void)snprintf(general, sizeof general, "\"name\":\"%s-row\"", collectors[i]->name);
        static const char *const prefixed[] = {"pressure", "cgroup", "example"}; /* the general rule is theirs */
        bool is_same = false;
        for (size_t p = 0; p < ARRAY_LENGTH(prefixed); p++)
            is_same = is_same || strcmp(collectors[i]->name, prefixed[p]) == 0;
        if (!is_same && strstr(buf_string(&lines), general) != NULL)
            fail_msg("collector %s has no row in records.c", collectors[i]->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_are_written_from_the_second_tick_on),
        cmocka_unit_test(names_are_escaped_and_prefixed_and_labels_are_said),
        cmocka_unit_test(longest_name_is_written_whole),
        cmocka_unit_test(rows_without_anything_known_are_left_out),
        cmocka_unit_test(collector_without_a_rule_gets_its_name_before_the_rows),
        cmocka_unit_test(cpus_are_percentages_of_the_time_since_the_last_tick),
        cmocka_unit_test(memory_is_what_the_kernel_says_and_how_much_is_used),
        cmocka_unit_test(memory_in_percent_is_of_what_is_available),
        cmocka_unit_test(memory_without_an_available_part_has_no_percentages),
        cmocka_unit_test(power_is_one_event_a_family),
        cmocka_unit_test(empty_tables_are_no_events),
        cmocka_unit_test(every_collector_has_a_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
