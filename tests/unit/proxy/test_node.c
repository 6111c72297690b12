/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metric/name.h"
#include "proxy/contributor.h"
#include "proxy/node_names.h"

enum { NODE_TEST_NAMES_MAX = 20000, NODE_TEST_NAME_MAX_BYTES = 4096 };

static const struct {
    const char *collector;
    struct sample_column column;
    const char *family;
    double scale;
} families[] = {
    {"disk", {"bytes_read", "bytes", "", SAMPLE_COUNTER}, "cicada_node_disk_read_bytes_total", 1},
    {"disk", {"read_ms", "ms", "", SAMPLE_COUNTER}, "cicada_node_disk_read_seconds_total", 1e-3},
    {"disk", {"ios_in_progress", "", "", SAMPLE_INTEGER}, "cicada_node_disk_ios_in_progress", 1},
    {"memory", {"MemTotal", "kB", "", SAMPLE_INTEGER}, "cicada_node_memory_mem_total_bytes", 1024},
    {"memory", {"Active(anon)", "kB", "", SAMPLE_INTEGER}, "cicada_node_memory_active_anon_bytes", 1024},
    {"memory", {"HugePages_Total", "", "", SAMPLE_INTEGER}, "cicada_node_memory_huge_pages_all", 1},
    {"pressure", {"some_total_us", "us", "", SAMPLE_COUNTER}, "cicada_node_pressure_some_seconds_total", 1e-6},
    {"pressure", {"some_avg10", "%", "", SAMPLE_REAL}, "cicada_node_pressure_some_avg10_ratio", 1e-2},
    {"power", {"energy_uj", "microjoules", "", SAMPLE_COUNTER}, "cicada_node_power_energy_joules_total", 1e-6},
    {"temperature", {"celsius", "celsius", "", SAMPLE_REAL}, "cicada_node_temperature_celsius", 1},
    {"frequency", {"frequency_khz", "kHz", "", SAMPLE_INTEGER}, "cicada_node_frequency_frequency_hertz", 1e3},
};

static void columns_are_called_by_the_rules_of_prometheus(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(families); i++) {
        CLEANUP(buf_cleanup) struct buf name;
        double scale;
        buf_init(&name, NODE_TEST_NAME_MAX_BYTES);
        node_names_family(families[i].collector, &families[i].column, &name, &scale);
        if (strcmp(buf_string(&name), families[i].family) != 0 || scale != families[i].scale)
            fail_msg("%s.%s is %s x %g", families[i].collector, families[i].column.name, buf_string(&name), scale);
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct sample_config recorded(void)
{
    return (struct sample_config){.proc_path = TESTS_DIR "/recorded/linux-6.18/proc",
                                  .sys_path = TESTS_DIR "/recorded/linux-6.18/sys",
                                  .mount_prefix = TESTS_DIR "/recorded/linux-6.18"};
}

/* Adds the names of a table to `names`. */
static void take_names(const char *collector, const struct sample_table *table, char **names, size_t *count)
{
    for (size_t r = 0; r < table->rows_count; r++) {
        for (size_t c = 0; c < table->columns_count; c++) {
            CLEANUP(buf_cleanup) struct buf name;
            double scale;
            buf_init(&name, NODE_TEST_NAME_MAX_BYTES);
            node_names_family(collector, &table->columns[c], &name, &scale);
            node_names_labels(collector, table->rows[r], NULL, &name);
            assert_true(*count < NODE_TEST_NAMES_MAX);
            names[(*count)++] = strdup(buf_string(&name));
        }
    }
}

static void no_two_numbers_of_a_node_have_one_name(void **state)
{
    (void)state;
    static char *names[NODE_TEST_NAMES_MAX];
    size_t count = 0;
    struct error err = {0};
    CLEANUP(buf_cleanup) struct buf notes;
    CLEANUP(sampler_cleanup) struct sampler *sampler = NULL;
    const struct sample_config config = recorded();
    buf_init(&notes, 1 << 16);
    assert_int_equal(sampler_open(&config, NULL, &notes, &sampler, &err), 0);
    for (size_t i = 0; i < sampler_count(sampler); i++) {
        if (sampler_run(sampler, i, 1, &err) == 0)
            take_names(sampler_ops(sampler, i)->name, sampler_table(sampler, i), names, &count);
    }
    assert_true(count > 100);
    qsort(names, count, sizeof names[0], compare_names);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(names[i - 1], names[i]) == 0)
            fail_msg("twice: %s", names[i]);
    }
    for (size_t i = 0; i < count; i++)
        free(names[i]);
}

static void add_all(struct jobs *jobs)
{
    jobs_begin(jobs);
    struct contributor *contributor = jobs_first_contributor(jobs);
    for (; contributor != NULL; contributor = contributor_links(contributor)->next)
        contributor_add(contributor);
    jobs_end(jobs);
}

static double shown(struct jobs *jobs, size_t index, const char *name)
{
    const struct metric *metric = registry_find(job_registry(jobs_at(jobs, index)), name, strlen(name));
    return metric != NULL ? metric_shown(&metric->value) : -1;
}

static void all_names_are_legal_and_jobs_begin_at_nothing(void **state)
{
    (void)state;
    struct error err = {0};
    struct jobs *jobs = NULL;
    struct node *node = NULL;
    const struct jobs_config config = {
        .hostname = "host", .jobs_max = 4, .metrics_per_job_max = 20000, .metrics_max = 100000, .linger_ns = 1};
    assert_int_equal(jobs_new(&config, &jobs, &err), 0);
    assert_int_equal(
        node_new(&(struct node_config){.jobs = jobs, .sample = recorded(), .has_legacy = true, .has_cicada = true},
                 &node, &err),
        0);
    node_sample(node);
    node_apply(node, 1);
    struct metric_job description;
    struct job *job = NULL;
    assert_int_equal(metric_job_init(&description, "42", &err), 0);
    assert_int_equal(jobs_join(jobs, 0, &description, 0, 1, &job, &err), 0);
    metric_job_fini(&description);
    node_apply(node, 2);
    add_all(jobs);
    assert_int_equal(jobs_stats(jobs)->names_mapped, 0);
    assert_int_equal(jobs_stats(jobs)->metrics_conflicting, 0);
    assert_int_equal(jobs_stats(jobs)->metrics_refused, 0);
    assert_true(shown(jobs, 0, "cicada_node_memory_mem_total_bytes") > 0);
    assert_true(shown(jobs, 1, "proxy_memory_total_bytes") == shown(jobs, 0, "cicada_node_memory_mem_total_bytes"));
    assert_true(shown(jobs, 2, "proxy_memory_total_bytes") == shown(jobs, 0, "proxy_memory_total_bytes"));
    assert_true(shown(jobs, 2, "cicada_node_cpu_seconds_total{mode=\"idle\"}") == 0);
    jobs_leave(jobs, job, 0, 0);
    jobs_remove(jobs, job); /* its telemetry goes with it */
    node_apply(node, 3);
    add_all(jobs);
    node_free(node, 0, 0);
    jobs_free(jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_called_by_the_rules_of_prometheus),
        cmocka_unit_test(no_two_numbers_of_a_node_have_one_name),
        cmocka_unit_test(all_names_are_legal_and_jobs_begin_at_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
