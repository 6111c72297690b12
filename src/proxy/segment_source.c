/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/segment_source.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/contributor.h"
#include "proxy/job_text.h"
#include "proxy/liveness.h"
#include "util/buf.h"
#include "util/log.h"

enum { SOURCE_NAME_MAX_BYTES = SEGMENT_NAME_MAX_BYTES + 64 }; /* with the suffix and label of a bucket */

struct segment_source {
    struct segment_reader *reader;
    struct contributor *contributor;
    struct segment_source_config config;
    struct liveness *processes; /* [processes_count], as the reader lists them */
    size_t processes_count, processes_capacity;
    uint32_t *slots; /* numbers of the contributor's metrics: one for a number, bounds + 3 for a histogram */
    size_t slots_count, slots_capacity;
    size_t metrics_known; /* of the reader's have their slots */
    uint64_t failures;
    bool has_looked_for_job;
};

struct segment_source *segment_source_new(struct segment_reader *reader, const struct segment_source_config *config)
{
    struct segment_source *source = calloc(1, sizeof *source);
    if (source == NULL) {
        segment_reader_close(reader);
        return NULL;
    }
    source->reader = reader;
    source->config = *config;
    source->contributor = contributor_new(
        config->jobs, &(struct contributor_config){.uid = config->uid, .is_adoptable = config->is_adoptable});
    if (source->contributor == NULL) {
        segment_source_free(source);
        return NULL;
    }
    return source;
}

static void source_release(struct segment_source *source)
{
    for (size_t i = 0; i < source->processes_count; i++) {
        if (source->processes[i].state == LIVENESS_BY_PIDFD)
            (*source->config.pidfds_left)++;
        liveness_fini(&source->processes[i]);
    }
    segment_reader_close(source->reader);
    free(source->processes);
    free(source->slots);
    free(source);
}

void segment_source_free(struct segment_source *source)
{
    if (source == NULL)
        return;
    contributor_discard(source->contributor);
    source_release(source);
}

const struct segment_reader *segment_source_reader(const struct segment_source *source)
{
    return source->reader;
}

uint64_t segment_source_failures(const struct segment_source *source)
{
    return source->failures;
}

/* The pid as we see it; 0: it is of another name space, and nobody told. */
static pid_t source_pid_here(const struct segment_source *source, const struct segment_reader_process *process)
{
    if (process->pid_namespace == source->config.own_namespace || process->pid_namespace == 0)
        return process->pid;
    pid_t peer = source->config.peer_pid;
    return peer > 0 && liveness_start_ticks(peer) == process->start_ticks ? peer : 0;
}

/* Follows processes that entered themselves since the last time. */
static void source_follow_processes(struct segment_source *source)
{
    size_t count = segment_reader_processes_count(source->reader);
    if (count > source->processes_capacity) {
        size_t capacity = count * 2;
        struct liveness *grown = realloc(source->processes, capacity * sizeof *grown);
        if (grown == NULL)
            return; /* they are followed from the next turn on */
        source->processes = grown;
        source->processes_capacity = capacity;
    }
    while (source->processes_count < count) {
        const struct segment_reader_process *process =
            segment_reader_process_at(source->reader, source->processes_count);
        struct liveness liveness =
            liveness_of(source_pid_here(source, process), process->start_ticks, *source->config.pidfds_left > 0);
        if (liveness.state == LIVENESS_BY_PIDFD)
            (*source->config.pidfds_left)--;
        source->processes[source->processes_count++] = liveness;
    }
}

/* How many of the processes that are known live; the gauges of those that don't leave. */
static uint64_t source_count_alive(struct segment_source *source)
{
    uint64_t alive = 0;
    for (size_t i = 0; i < source->processes_count; i++) {
        bool had_pidfd = source->processes[i].state == LIVENESS_BY_PIDFD;
        bool has_ended = liveness_has_ended(&source->processes[i]);
        if (had_pidfd && has_ended)
            (*source->config.pidfds_left)++;
        segment_reader_process_at(source->reader, i)->is_ended = has_ended;
        alive += !has_ended;
    }
    return alive;
}

static bool source_add_slot(struct segment_source *source, uint32_t slot)
{
    if (source->slots_count == source->slots_capacity) {
        size_t capacity = source->slots_capacity > 0 ? source->slots_capacity * 2 : 16;
        uint32_t *grown = realloc(source->slots, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        source->slots = grown;
        source->slots_capacity = capacity;
    }
    source->slots[source->slots_count++] = slot;
    return true;
}

static bool source_declare(struct segment_source *source, const char *name, size_t name_bytes, const char *doc,
                           enum metric_kind kind)
{
    uint32_t slot;
    struct error err = {0};
    if (contributor_declare(source->contributor, name, name_bytes, doc, kind, &slot, &err) < 0)
        log_debug("segment: %s", err.text); /* counted there; the rest goes on */
    return source_add_slot(source, slot);
}

/* `h{a="b"}` becomes `h<suffix>{le="1",a="b"}`; without `le` `h<suffix>{a="b"}`. */
static void source_derive_name(const struct segment_reader_metric *metric, const char *suffix, const char *le,
                               struct buf *out)
{
    const char *brace = memchr(metric->name, '{', metric->name_bytes);
    size_t family_bytes = brace != NULL ? (size_t)(brace - metric->name) : metric->name_bytes;
    buf_reset(out);
    buf_bytes(out, metric->name, family_bytes);
    buf_text(out, suffix);
    if (le == NULL) {
        buf_bytes(out, metric->name + family_bytes, metric->name_bytes - family_bytes);
        return;
    }
    buf_printf(out, "{le=\"%s\"", le);
    if (brace == NULL) {
        buf_char(out, '}');
        return;
    }
    buf_char(out, ',');
    buf_bytes(out, brace + 1, metric->name_bytes - family_bytes - 1);
}

static bool source_declare_histogram(struct segment_source *source, const struct segment_reader_metric *metric,
                                     const char *doc)
{
    CLEANUP(buf_cleanup) struct buf name;
    CLEANUP(buf_cleanup) struct buf le;
    buf_init(&name, SOURCE_NAME_MAX_BYTES);
    buf_init(&le, SOURCE_NAME_MAX_BYTES);
    bool is_good = true;
    for (size_t i = 0; i <= metric->bounds_count && is_good; i++) {
        buf_reset(&le);
        if (i < metric->bounds_count)
            buf_double(&le, metric->bounds[i]);
        else
            buf_text(&le, "+Inf");
        source_derive_name(metric, "_bucket", buf_string(&le), &name);
        is_good = source_declare(source, name.data, name.length, doc, METRIC_COUNTER);
    }
    static const char *const suffixes[] = {"_sum", "_count"};
    for (size_t i = 0; i < ARRAY_LENGTH(suffixes) && is_good; i++) {
        source_derive_name(metric, suffixes[i], NULL, &name);
        is_good = source_declare(source, name.data, name.length, doc, METRIC_COUNTER);
    }
    return is_good;
}

/* Metrics that are new in the segment get their slots. Without memory the rest waits for the next turn. */
static void source_declare_new(struct segment_source *source)
{
    while (source->metrics_known < segment_reader_metrics_count(source->reader)) {
        const struct segment_reader_metric *metric = segment_reader_metric_at(source->reader, source->metrics_known);
        CLEANUP(memory_cleanup) char *doc = strndup(metric->doc, metric->doc_bytes);
        size_t slots_before = source->slots_count;
        bool is_good = doc != NULL;
        if (is_good && metric->kind == SEGMENT_HISTOGRAM)
            is_good = source_declare_histogram(source, metric, doc);
        else if (is_good)
            is_good = source_declare(source, metric->name, metric->name_bytes, doc,
                                     metric->kind == SEGMENT_GAUGE ? METRIC_GAUGE : METRIC_COUNTER);
        if (!is_good) {
            source->slots_count = slots_before; /* what was declared so far stays at zero */
            return;
        }
        source->metrics_known++;
    }
}

static void source_set_counter(struct segment_source *source, size_t slot, double number, int64_t wall_us)
{
    struct metric_value value = metric_counter(number, wall_us);
    contributor_set(source->contributor, source->slots[slot], &value);
}

/* Sets the parts of a histogram from `slot` on; returns how many slots it has. */
static size_t source_set_histogram(struct segment_source *source, const struct segment_reader_metric *metric,
                                   size_t slot, int64_t wall_us)
{
    double count = 0;
    size_t buckets = metric->bounds_count + 1;
    for (size_t i = 0; i < buckets; i++) {
        count += (double)metric->buckets[i];
        source_set_counter(source, slot + i, count, wall_us);
    }
    source_set_counter(source, slot + buckets, metric->total, wall_us);
    source_set_counter(source, slot + buckets + 1, count, wall_us);
    return buckets + 2;
}

static void source_set_values(struct segment_source *source, int64_t wall_us)
{
    size_t slot = 0;
    for (size_t i = 0; i < source->metrics_known; i++) {
        const struct segment_reader_metric *metric = segment_reader_metric_at(source->reader, i);
        if (metric->kind == SEGMENT_HISTOGRAM) {
            slot += source_set_histogram(source, metric, slot, wall_us);
        } else if (metric->kind == SEGMENT_GAUGE) {
            struct metric_value value = metric_gauge_of((struct metric_gauge){.min = metric->gauge_min,
                                                                              .max = metric->gauge_max,
                                                                              .hits = (double)metric->gauge_hits,
                                                                              .total = metric->gauge_total},
                                                        wall_us);
            contributor_set(source->contributor, source->slots[slot++], &value);
        } else {
            source_set_counter(source, slot++, metric->total, wall_us);
        }
    }
}

/* Its job, as soon as the segment says which. */
static void source_join_job(struct segment_source *source, int64_t now_wall_ms)
{
    size_t bytes;
    const char *text = segment_reader_job(source->reader, &bytes);
    if (source->has_looked_for_job || text == NULL)
        return;
    source->has_looked_for_job = true;
    struct error err = {0};
    if (job_text_join(source->contributor, text, bytes, now_wall_ms, &err) < 0)
        log_debug("segment: %s: it counts without a job", err.text);
}

/* The job learns of a process of its own. */
static void source_tell_job(const struct segment_source *source)
{
    struct job *job = contributor_job(source->contributor);
    size_t count = source->processes_count;
    if (job != NULL && count > 0)
        job_set_process(job, source_pid_here(source, segment_reader_process_at(source->reader, count - 1)));
}

bool segment_source_read(struct segment_source *source, int64_t now_wall_ms)
{
    /* All that tells of the end is looked at before the read, so that the read sees what was counted up to it. */
    enum segment_reader_use use = segment_reader_use(source->reader);
    uint64_t alive = source_count_alive(source);
    size_t processes_before = source->processes_count;

    struct error err = {0};
    int rc = segment_reader_read(source->reader, &err);
    if (rc < 0) {
        source->failures++;
        log_debug("segment: %s", err.text);
        if (rc == -ENOMEM)
            return false;
    }
    source_follow_processes(source);
    bool is_new_to_job = !source->has_looked_for_job || source->processes_count > processes_before;
    source_join_job(source, now_wall_ms);
    if (is_new_to_job)
        source_tell_job(source);
    if (rc == 0) {
        source_declare_new(source);
        source_set_values(source, now_wall_ms * 1000);
    }
    bool has_new = source->processes_count > processes_before;
    contributor_set_processes(source->contributor, alive + (source->processes_count - processes_before));
    bool is_all_known = source->metrics_known == segment_reader_metrics_count(source->reader);
    if (use != SEGMENT_READER_USE_UNKNOWN)
        return use == SEGMENT_READER_UNUSED && is_all_known;
    return alive == 0 && !has_new && is_all_known;
}

void segment_source_fold(struct segment_source *source, int64_t now_mono_ns, int64_t now_wall_ms)
{
    contributor_end(source->contributor, now_mono_ns, now_wall_ms);
    source_release(source);
}
