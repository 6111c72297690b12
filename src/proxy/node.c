/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#define HASH_NONFATAL_OOM 1 /* a metric of the node is missing; uthash would end the proxy */
#include <uthash.h>

#include "proxy/contributor.h"
#include "proxy/job_cgroup.h"
#include "proxy/node_names.h"
#include "sample/cpu.h"
#include "sample/filesystem.h"
#include "sample/load.h"
#include "sample/memory.h"
#include "sample/network.h"
#include "util/clock.h"
#include "util/cursor.h"
#include "util/file.h"
#include "util/log.h"

enum {
    NODE_SERIES_MAX = 20000, /* of one node: 1,024 CPUs and hundreds of disks have fewer */
    NODE_NAME_MAX_BYTES = 8192,
    NODE_CPUINFO_MAX_BYTES = 1 << 22,
};

static const double node_kib = 1024;

/* One series; the same in the node, and in each job from its beginning on. */
struct node_series {
    uint32_t slot; /* of the node's contributor */
    enum metric_kind kind;
    uint64_t seen; /* the sample in which it was last there */
    bool is_for_jobs;
    char *doc;
    double shown;
    UT_hash_handle hh;
    char name[];
};

/* A job's share: what has been counted since it began. */
struct node_job {
    struct job *job;
    struct contributor *contributor;
    uint32_t *slots; /* [count], in the order of the series */
    double *starts;
    size_t count, capacity;
    struct job_cgroup *cgroup; /* NULL: it has none of its own, as far as we know */
    pid_t cgroup_asked;        /* the process of which that is known */
    struct node_job *next;
};

struct node {
    struct node_config config;
    struct sampler *sampler;
    struct contributor *contributor;
    struct node_series *series; /* by name, in order of arrival */
    struct node_series **order; /* [order_count] */
    size_t order_count, order_capacity;
    struct node_job *jobs;
    uv_work_t work;
    bool is_busy;
    bool has_new; /* a sample that has not been applied */
    uint64_t samples;
    int64_t sampled_boot_ns, elapsed_ns; /* of the last sample; between it and the one before */
    int64_t wall_us;                     /* of the values that are being applied */
    char *vendor, *model;                /* of the CPUs, escaped */
    char *scrape_labels;
    struct buf name; /* being built */
};

static void node_on_remove(void *context, struct job *job);

/* The first value of `key` in the text of /proc/cpuinfo, escaped for a label; "" when there is none. */
static char *node_cpuinfo(const struct buf *text, const char *key)
{
    struct cursor all = cursor_of(text->data, text->length);
    struct cursor line;
    CLEANUP(buf_cleanup) struct buf escaped;
    buf_init(&escaped, NODE_NAME_MAX_BYTES);
    while (cursor_line(&all, &line)) {
        if (!cursor_accept_text(&line, key))
            continue;
        cursor_skip_blanks(&line);
        if (!cursor_accept(&line, ':'))
            continue;
        cursor_skip_blanks(&line);
        CLEANUP(memory_cleanup) char *value = strndup(line.at, cursor_left(&line));
        if (value != NULL)
            node_names_escape(value, &escaped);
        break;
    }
    return strdup(buf_string(&escaped));
}

static void node_read_cpuinfo(struct node *node)
{
    CLEANUP(buf_cleanup) struct buf text;
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&text, NODE_CPUINFO_MAX_BYTES);
    buf_init(&path, NODE_NAME_MAX_BYTES);
    buf_printf(&path, "%s/cpuinfo", node->config.sample.proc_path);
    struct error err = {0};
    if (file_read(AT_FDCWD, buf_string(&path), &text, &err) < 0)
        log_debug("%s: CPUs without a model", err.text);
    node->vendor = node_cpuinfo(&text, "vendor_id");
    node->model = node_cpuinfo(&text, "model name");
}

static void node_describe_system(struct node *node)
{
    struct utsname system;
    if (uname(&system) < 0)
        memset(&system, 0, sizeof system);
    CLEANUP(buf_cleanup) struct buf labels;
    buf_init(&labels, NODE_NAME_MAX_BYTES);
    buf_printf(&labels, "{hostname=\"%s\",kernel=\"%s\",os=\"%s\",osversion=\"",
               jobs_config(node->config.jobs)->hostname, system.release, system.sysname);
    node_names_escape(system.version, &labels);
    buf_text(&labels, "\"}");
    node->scrape_labels = strdup(buf_string(&labels));
}

static void node_release(struct node *node)
{
    struct node_series *series;
    struct node_series *next;
    HASH_ITER(hh, node->series, series, next)
    {
        HASH_DEL(node->series, series);
        free(series->doc);
        free(series);
    }
    while (node->jobs != NULL)
        node_on_remove(node, node->jobs->job);
    jobs_watch(node->config.jobs, NULL, NULL);
    sampler_free(node->sampler);
    free(node->order);
    free(node->vendor);
    free(node->model);
    free(node->scrape_labels);
    buf_fini(&node->name);
    free(node);
}

int node_new(const struct node_config *config, struct node **out_node, struct error *err)
{
    struct node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return error_set(err, -ENOMEM, "no memory for telemetry");
    node->config = *config;
    buf_init(&node->name, NODE_NAME_MAX_BYTES);
    struct sample_config *sample = &node->config.sample;
    sample->proc_path = sample->proc_path != NULL ? sample->proc_path : "/proc";
    sample->sys_path = sample->sys_path != NULL ? sample->sys_path : "/sys";
    sample->mount_prefix = sample->mount_prefix != NULL ? sample->mount_prefix : "";
    node_read_cpuinfo(node);
    node_describe_system(node);

    CLEANUP(buf_cleanup) struct buf notes;
    buf_init(&notes, NODE_NAME_MAX_BYTES);
    int rc = sampler_open(sample, sample->has_frequency ? "+frequency" : NULL, &notes, &node->sampler, err);
    log_debug("telemetry: %s", buf_string(&notes));
    if (rc == 0)
        node->contributor = contributor_new(config->jobs, &(struct contributor_config){.is_nobody = true});
    bool is_whole = node->vendor != NULL && node->model != NULL && node->scrape_labels != NULL;
    if (rc == 0 && (node->contributor == NULL || !is_whole))
        rc = error_set(err, -ENOMEM, "no memory for telemetry");
    if (rc < 0) {
        contributor_discard(node->contributor);
        node_release(node);
        return rc;
    }
    jobs_watch(config->jobs, node_on_remove, node);
    *out_node = node;
    return 0;
}

void node_free(struct node *node, int64_t now_mono_ns, int64_t now_wall_ms)
{
    if (node == NULL)
        return;
    contributor_end(node->contributor, now_mono_ns, now_wall_ms);
    node_release(node);
}

/* Sampling */

/* On a worker: nobody else touches the sampler while is_busy. */
static void node_run_collectors(struct node *node)
{
    int64_t now_boot_ns = clock_boot_ns();
    node->elapsed_ns = node->sampled_boot_ns != 0 ? now_boot_ns - node->sampled_boot_ns : 0;
    node->sampled_boot_ns = now_boot_ns;
    for (size_t i = 0; i < sampler_count(node->sampler); i++) {
        struct error err = {0};
        if (sampler_run(node->sampler, i, now_boot_ns, &err) < 0)
            log_debug("telemetry: %s", err.text); /* shown as a metric: cicada_node_collector_success */
    }
}

static void node_on_work(uv_work_t *work)
{
    node_run_collectors(work->data);
}

static void node_on_worked(uv_work_t *work, int status)
{
    (void)status; /* never cancelled */
    struct node *node = work->data;
    node->is_busy = false;
    node->has_new = true;
}

void node_sample(struct node *node)
{
    if (node->is_busy)
        return;
    node->work.data = node;
    if (node->config.loop != NULL && uv_queue_work(node->config.loop, &node->work, node_on_work, node_on_worked) == 0) {
        node->is_busy = true;
        return;
    }
    node_run_collectors(node);
    node->has_new = true;
}

bool node_is_busy(const struct node *node)
{
    return node->is_busy;
}

/* Values */

static struct node_series *node_add_series(struct node *node, const char *name, const char *doc, enum metric_kind kind)
{
    if (node->order_count >= NODE_SERIES_MAX)
        return NULL;
    if (node->order_count == node->order_capacity) {
        size_t capacity = node->order_capacity > 0 ? node->order_capacity * 2 : 256;
        struct node_series **grown = realloc(node->order, capacity * sizeof(void *));
        if (grown == NULL)
            return NULL;
        node->order = grown;
        node->order_capacity = capacity;
    }
    size_t name_bytes = strlen(name);
    struct node_series *series = calloc(1, sizeof *series + name_bytes + 1);
    char *copy = strdup(doc);
    if (series == NULL || copy == NULL) {
        free(series);
        free(copy);
        return NULL;
    }
    memcpy(series->name, name, name_bytes + 1);
    series->kind = kind;
    series->doc = copy;
    struct error err = {0};
    if (contributor_declare(node->contributor, name, name_bytes, doc, kind, &series->slot, &err) < 0)
        log_debug("telemetry: %s", err.text); /* counted there */
    HASH_ADD_STR(node->series, name, series);
    if (series->hh.tbl == NULL) {
        free(series->doc);
        free(series);
        return NULL;
    }
    node->order[node->order_count++] = series;
    return series;
}

/* The series that is called as node->name says has this value. */
static void node_put(struct node *node, const char *doc, enum metric_kind kind, double shown, bool is_for_jobs)
{
    const char *name = buf_string(&node->name);
    if (buf_status(&node->name, NULL) < 0)
        return;
    struct node_series *series;
    HASH_FIND_STR(node->series, name, series);
    if (series == NULL)
        series = node_add_series(node, name, doc, kind);
    if (series == NULL || series->kind != kind || series->seen == node->samples)
        return; /* no room; or a second column with this name, which must not be added to the first */
    series->seen = node->samples;
    series->is_for_jobs = is_for_jobs;
    series->shown = shown;
    struct metric_value value =
        kind == METRIC_COUNTER ? metric_counter(shown, node->wall_us) : metric_gauge(shown, node->wall_us);
    contributor_set(node->contributor, series->slot, &value);
}

/* A series without labels, or with those of `labels`. */
static void node_put_named(struct node *node, const char *family, const char *labels, const char *doc,
                           enum metric_kind kind, double shown)
{
    buf_reset(&node->name);
    buf_text(&node->name, family);
    buf_text(&node->name, labels);
    node_put(node, doc, kind, shown, true);
}

static double node_value(const struct sample_column *column, const struct sample_value *value)
{
    switch (column->kind) {
    case SAMPLE_COUNTER:
        return (double)value->total;
    case SAMPLE_INTEGER:
        return (double)value->integer;
    case SAMPLE_REAL:
        return value->real;
    }
    return 0;
}

/* Every number of a collector, by the rules of node_names.h. */
static void node_put_table(struct node *node, const char *collector, const struct sample_table *table)
{
    for (size_t r = 0; r < table->rows_count; r++) {
        const struct sample_row *row = table->rows[r];
        for (size_t c = 0; c < table->columns_count; c++) {
            const struct sample_column *column = &table->columns[c];
            if (!row->values[c].is_known)
                continue;
            double scale;
            buf_reset(&node->name);
            node_names_family(collector, column, &node->name, &scale);
            node_names_labels(collector, row, NULL, &node->name);
            bool has_help = column->help != NULL && column->help[0] != '\0';
            node_put(node, has_help ? column->help : column->name, /* else the kernel's name says it */
                     column->kind == SAMPLE_COUNTER ? METRIC_COUNTER : METRIC_GAUGE,
                     node_value(column, &row->values[c]) * scale, true);
        }
    }
}

/* Time of all CPUs together by mode; a guest's is in user and nice already and is left out. */
static void node_put_cpu(struct node *node, const struct sample_table *table)
{
    const struct sample_row *row = table->rows_count > 0 ? table->rows[0] : NULL;
    for (size_t c = 0; row != NULL && c < CPU_GUEST; c++) {
        CLEANUP(buf_cleanup) struct buf mode;
        buf_init(&mode, NODE_NAME_MAX_BYTES);
        buf_printf(&mode, "mode=\"%s\"", table->columns[c].name);
        double scale;
        buf_reset(&node->name);
        node_names_family("cpu", &(struct sample_column){.name = "", .unit = "ticks", .kind = SAMPLE_COUNTER},
                          &node->name, &scale);
        node_names_labels("cpu", row, buf_string(&mode), &node->name);
        if (row->values[c].is_known)
            node_put(node, "time of all CPUs by what they did", METRIC_COUNTER, (double)row->values[c].total * scale,
                     true);
    }
}

/* Legacy names */

static void node_put_legacy_cpu(struct node *node, const struct sample_table *table)
{
    size_t cpus = table->rows_count > 0 ? table->rows_count - 1 : 0; /* but for the row of all together */
    node_put_named(node, "proxy_cpu_total", "", "CPUs", METRIC_GAUGE, (double)cpus);
    for (size_t r = 1; r < table->rows_count; r++) {
        double percent[CPU_COLUMNS];
        if (!cpu_percentages(table->rows[r], percent))
            continue;
        buf_reset(&node->name);
        buf_printf(&node->name, "proxy_cpu_usage_percent{model=\"%s\",name=\"%s\",vendor=\"%s\"}", node->model,
                   table->rows[r]->name, node->vendor);
        node_put(node, "time in which the CPU was in use", METRIC_GAUGE, 100 - percent[CPU_IDLE] - percent[CPU_IOWAIT],
                 true);
    }
}

static void node_put_legacy_frequency(struct node *node, const struct sample_table *table)
{
    static const double ghz_per_khz = 1e-6;
    for (size_t r = 0; r < table->rows_count; r++) {
        if (!table->rows[r]->values[0].is_known)
            continue;
        buf_reset(&node->name);
        buf_printf(&node->name, "proxy_cpu_frequency_ghz{model=\"%s\",name=\"%s\",vendor=\"%s\"}", node->model,
                   table->rows[r]->name, node->vendor);
        node_put(node, "frequency of the CPU", METRIC_GAUGE, (double)table->rows[r]->values[0].integer * ghz_per_khz,
                 true);
    }
}

static void node_put_legacy_load(struct node *node, const struct sample_table *table)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (table->rows_count > 0 && cpus > 0)
        node_put_named(node, "proxy_cpu_load_average_percent", "", "load of one minute, in percent of all CPUs",
                       METRIC_GAUGE, table->rows[0]->values[LOAD_1].real / (double)cpus * 100);
}

/* A line of /proc/meminfo in bytes; 0 when it isn't there. */
static double node_memory_bytes(const struct sample_table *table, const char *key)
{
    for (size_t c = 0; table->rows_count > 0 && c < table->columns_count; c++) {
        const struct sample_value *value = &table->rows[0]->values[c];
        if (value->is_known && strcmp(table->columns[c].name, key) == 0)
            return (double)value->integer * node_kib;
    }
    return 0;
}

static void node_put_legacy_memory(struct node *node, const struct sample_table *table)
{
    double total = node_memory_bytes(table, "MemTotal");
    double percent = 0;
    if (!memory_used_percent(table, &percent))
        return;
    double swap = node_memory_bytes(table, "SwapTotal");
    double swap_used = swap - node_memory_bytes(table, "SwapFree");
    node_put_named(node, "proxy_memory_total_bytes", "", "memory", METRIC_GAUGE, total);
    node_put_named(node, "proxy_memory_used_bytes", "", "memory in use", METRIC_GAUGE, total * percent / 100);
    node_put_named(node, "proxy_memory_used_percent", "", "memory in use", METRIC_GAUGE, percent);
    node_put_named(node, "proxy_swap_total_bytes", "", "swap", METRIC_GAUGE, swap);
    node_put_named(node, "proxy_swap_used_bytes", "", "swap in use", METRIC_GAUGE, swap_used);
    node_put_named(node, "proxy_memory_swap_used_percent", "", "swap in use", METRIC_GAUGE,
                   swap > 0 ? swap_used / swap * 100 : 0);
}

static void node_put_legacy_filesystem(struct node *node, const struct sample_table *table)
{
    for (size_t r = 0; r < table->rows_count; r++) {
        const struct sample_row *row = table->rows[r];
        if (!row->values[FILESYSTEM_SIZE].is_known || !row->values[FILESYSTEM_USED].is_known)
            continue;
        CLEANUP(buf_cleanup) struct buf labels;
        buf_init(&labels, NODE_NAME_MAX_BYTES);
        buf_text(&labels, "{device=\"");
        node_names_escape(row->label != NULL ? row->label : "", &labels);
        buf_text(&labels, "\",fs=\"");
        node_names_escape(row->type != NULL ? row->type : "", &labels);
        buf_text(&labels, "\",kind=\"Unknown\",mountpoint=\"");
        node_names_escape(row->name, &labels);
        buf_text(&labels, "\"}");
        const char *text = buf_string(&labels);
        double size = (double)row->values[FILESYSTEM_SIZE].integer;
        double used = (double)row->values[FILESYSTEM_USED].integer;
        double available = (double)row->values[FILESYSTEM_AVAILABLE].integer;
        node_put_named(node, "proxy_disk_size_bytes", text, "size of the file system", METRIC_GAUGE, size);
        node_put_named(node, "proxy_disk_free_size_bytes", text, "space left", METRIC_GAUGE, available);
        node_put_named(node, "proxy_disk_used_size_bytes", text, "space in use", METRIC_GAUGE, used);
        node_put_named(node, "proxy_disk_usage_percent", text, "space in use", METRIC_GAUGE,
                       size > 0 ? used / size * 100 : 0);
    }
}

/* A counter of network interfaces under its old name, and the gauge of its rate, if it has one. */
static const struct {
    enum network_column column;
    const char *total, *rate, *doc;
} node_network_rows[] = {
    {NETWORK_BYTES_SENT, "proxy_network_transmit_bytes_total", "proxy_network_transmit_bandwidth_bytes", "bytes sent"},
    {NETWORK_BYTES_RECV, "proxy_network_receive_bytes_total", "proxy_network_receive_bandwidth_bytes",
     "bytes received"},
    {NETWORK_PACKETS_SENT, "proxy_network_transmit_packets_total", "proxy_network_transmit_packet_rate",
     "packets sent"},
    {NETWORK_PACKETS_RECV, "proxy_network_receive_packets_total", "proxy_network_receive_packet_rate",
     "packets received"},
    {NETWORK_TX_ERRORS, "proxy_network_transmit_packets_error_total", NULL, "packets that failed to be sent"},
    {NETWORK_RX_ERRORS, "proxy_network_receive_packets_error_total", NULL, "packets received with an error"},
};

static void node_put_legacy_network(struct node *node, const struct sample_table *table)
{
    double seconds = (double)node->elapsed_ns / (double)CLOCK_NS_PER_SECOND;
    for (size_t r = 0; r < table->rows_count; r++) {
        const struct sample_row *row = table->rows[r];
        CLEANUP(buf_cleanup) struct buf labels;
        buf_init(&labels, NODE_NAME_MAX_BYTES);
        buf_text(&labels, "{interface=\"");
        node_names_escape(row->name, &labels);
        buf_text(&labels, "\"}");
        const char *text = buf_string(&labels);
        for (size_t i = 0; i < ARRAY_LENGTH(node_network_rows); i++) {
            const struct sample_value *value = &row->values[node_network_rows[i].column];
            if (!value->is_known)
                continue;
            node_put_named(node, node_network_rows[i].total, text, node_network_rows[i].doc, METRIC_COUNTER,
                           (double)value->total);
            if (node_network_rows[i].rate != NULL && seconds > 0)
                node_put_named(node, node_network_rows[i].rate, text, "the same per second", METRIC_GAUGE,
                               (double)value->increase / seconds);
        }
    }
}

static void node_put_legacy_temperature(struct node *node, const struct sample_table *table)
{
    for (size_t r = 0; r < table->rows_count; r++) {
        const struct sample_row *row = table->rows[r];
        if (!row->values[0].is_known)
            continue;
        buf_reset(&node->name);
        buf_text(&node->name, "proxy_component_temperature_celcius{component=\""); /* spelt as it always was */
        node_names_escape(row->name, &node->name);
        if (row->label != NULL) {
            buf_char(&node->name, ' ');
            node_names_escape(row->label, &node->name);
        }
        buf_text(&node->name, "\"}");
        node_put(node, "temperature at the sensor", METRIC_GAUGE, row->values[0].real, true);
    }
}

/* Which collectors have legacy names, and which have names of their own instead of the rules'. */
static const struct {
    const char *collector;
    void (*put_legacy)(struct node *node, const struct sample_table *table);
    void (*put)(struct node *node, const struct sample_table *table);
} node_rows[] = {
    {"cpu", node_put_legacy_cpu, node_put_cpu},
    {"frequency", node_put_legacy_frequency, NULL},
    {"load", node_put_legacy_load, NULL},
    {"memory", node_put_legacy_memory, NULL},
    {"filesystem", node_put_legacy_filesystem, NULL},
    {"network", node_put_legacy_network, NULL},
    {"temperature", node_put_legacy_temperature, NULL},
};

/* What the collector costs, and whether it works: of the node, not of jobs. */
static void node_put_costs(struct node *node, const char *collector, size_t index)
{
    static const struct {
        const char *family, *doc;
        enum metric_kind kind;
    } rows[] = {
        {"cicada_node_collector_success", "1 when the collector's last run succeeded", METRIC_GAUGE},
        {"cicada_node_collector_duration_seconds", "time of the collector's last run", METRIC_GAUGE},
        {"cicada_node_collector_cpu_seconds_total", "CPU time of the collector", METRIC_COUNTER},
    };
    struct sampler_stats stats = sampler_stats(node->sampler, index);
    const double values[ARRAY_LENGTH(rows)] = {
        sampler_is_fresh(node->sampler, index) ? 1 : 0,
        (double)stats.last_ns / (double)CLOCK_NS_PER_SECOND,
        (double)stats.cpu_ns / (double)CLOCK_NS_PER_SECOND,
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        buf_reset(&node->name);
        buf_printf(&node->name, "%s{collector=\"%s\"}", rows[i].family, collector);
        node_put(node, rows[i].doc, rows[i].kind, values[i], false);
    }
}

static void node_put_collector(struct node *node, size_t index)
{
    const char *collector = sampler_ops(node->sampler, index)->name;
    const struct sample_table *table = sampler_table(node->sampler, index);
    void (*put)(struct node *, const struct sample_table *) = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(node_rows); i++) {
        if (strcmp(node_rows[i].collector, collector) != 0)
            continue;
        put = node_rows[i].put;
        if (node->config.has_legacy)
            node_rows[i].put_legacy(node, table);
    }
    if (node->config.has_cicada && put != NULL)
        put(node, table);
    else if (node->config.has_cicada)
        node_put_table(node, collector, table);
    node_put_costs(node, collector, index);
}

/* A gauge that nothing measured this time leaves; a counter stays as it was. */
static void node_drop_unseen(struct node *node)
{
    struct metric_value nothing = metric_zero(METRIC_GAUGE);
    for (size_t i = 0; i < node->order_count; i++) {
        struct node_series *series = node->order[i];
        if (series->kind == METRIC_GAUGE && series->seen != node->samples)
            contributor_set(node->contributor, series->slot, &nothing);
    }
}

/* Jobs */

static void node_on_remove(void *context, struct job *job)
{
    struct node *node = context;
    struct node_job **link = &node->jobs;
    while (*link != NULL && (*link)->job != job)
        link = &(*link)->next;
    struct node_job *found = *link;
    if (found == NULL)
        return;
    *link = found->next;
    job_cgroup_close(found->cgroup);
    contributor_discard(found->contributor);
    free(found->slots);
    free(found->starts);
    free(found);
}

static struct node_job *node_find_job(struct node *node, struct job *job)
{
    struct node_job *found = node->jobs;
    while (found != NULL && found->job != job)
        found = found->next;
    if (found != NULL)
        return found;
    found = calloc(1, sizeof *found);
    struct contributor *contributor =
        contributor_new(node->config.jobs, &(struct contributor_config){.is_job_alone = true, .is_nobody = true});
    if (found == NULL || contributor == NULL) {
        contributor_discard(contributor);
        free(found);
        return NULL;
    }
    contributor_join_job(contributor, job);
    *found = (struct node_job){.job = job, .contributor = contributor, .next = node->jobs};
    node->jobs = found;
    return found;
}

/* Room for all series, and those that are new to the job begin at what they show now. */
static bool node_job_grow(struct node *node, struct node_job *job)
{
    if (node->order_count > job->capacity) {
        size_t capacity = node->order_capacity;
        uint32_t *slots = realloc(job->slots, capacity * sizeof *slots);
        if (slots != NULL)
            job->slots = slots;
        double *starts = realloc(job->starts, capacity * sizeof *starts);
        if (starts != NULL)
            job->starts = starts;
        if (slots == NULL || starts == NULL)
            return false;
        job->capacity = capacity;
    }
    for (; job->count < node->order_count; job->count++) {
        const struct node_series *series = node->order[job->count];
        job->starts[job->count] = series->shown;
        job->slots[job->count] = CONTRIBUTOR_NONE;
        struct error err = {0};
        if (series->is_for_jobs && contributor_declare(job->contributor, series->name, strlen(series->name),
                                                       series->doc, series->kind, &job->slots[job->count], &err) < 0)
            log_debug("telemetry: %s", err.text); /* counted there */
    }
    return true;
}

static void node_apply_to_job(struct node *node, struct job *job)
{
    struct node_job *share = node_find_job(node, job);
    if (share == NULL || !node_job_grow(node, share))
        return; /* tried again in the next tick */
    for (size_t i = 0; i < share->count; i++) {
        const struct node_series *series = node->order[i];
        struct metric_value value = metric_zero(METRIC_GAUGE);
        if (series->kind == METRIC_COUNTER)
            value = metric_counter(series->shown - share->starts[i], node->wall_us);
        else if (series->seen == node->samples)
            value = metric_gauge(series->shown, node->wall_us);
        contributor_set(share->contributor, share->slots[i], &value);
    }
}

/* The job's cgroup is looked for once for each process that tells of itself, and read in each tick. */
static void node_apply_cgroup(struct node *node, struct job *job)
{
    struct node_job *share = node_find_job(node, job);
    if (share == NULL || !node->config.has_cicada)
        return;
    pid_t pid = job_process(job);
    if (share->cgroup == NULL && pid != share->cgroup_asked) {
        share->cgroup_asked = pid;
        struct error err = {0};
        if (job_cgroup_open(node->config.jobs, job, &node->config.sample, pid, &share->cgroup, &err) < 0)
            log_debug("telemetry: %s", err.text);
    }
    if (share->cgroup != NULL)
        job_cgroup_read(share->cgroup, node->wall_us);
}

static void node_log_notes(struct node *node)
{
    CLEANUP(buf_cleanup) struct buf notes;
    buf_init(&notes, NODE_NAME_MAX_BYTES);
    for (size_t i = 0; i < sampler_count(node->sampler); i++)
        sampler_take_notes(node->sampler, i, &notes);
    struct cursor all = cursor_of(notes.data, notes.length);
    struct cursor line;
    while (cursor_line(&all, &line))
        log_info("telemetry: %.*s", (int)cursor_left(&line), line.at);
}

void node_apply(struct node *node, int64_t now_wall_us)
{
    if (node->is_busy)
        return; /* the tables are being written; what was applied last stays */
    if (node->has_new) {
        node->has_new = false;
        node->samples++;
        node->wall_us = now_wall_us;
        for (size_t i = 0; i < sampler_count(node->sampler); i++)
            node_put_collector(node, i);
        if (node->config.has_legacy)
            node_put_named(node, "proxy_scrape_total", node->scrape_labels, "samples of this node", METRIC_COUNTER,
                           (double)node->samples);
        node_drop_unseen(node);
        node_log_notes(node);
    }
    for (size_t i = 2; i < jobs_count(node->config.jobs); i++) {
        node_apply_to_job(node, jobs_at(node->config.jobs, i));
        node_apply_cgroup(node, jobs_at(node->config.jobs, i));
    }
}
