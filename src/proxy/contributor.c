/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/contributor.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "metric/name.h"
#include "util/buf.h"
#include "util/cleanup.h"

static const char contributor_rank_prefix[] = "mpi___";
static const char contributor_exported[] = "exported_";

enum contributor_place { PLACE_JOB, PLACE_NODE, PLACE_MAIN, PLACES };

struct contributor_entry {
    struct metric *metrics[PLACES]; /* NULL where there is no job, or it was refused */
    struct metric_value value;
};

struct contributor {
    struct contributor_links links;
    struct jobs *jobs;
    struct job *job;
    struct contributor_config config;
    struct contributor_entry *entries; /* [entries_count] */
    size_t entries_count, entries_capacity;
    uint64_t processes;
    bool is_rank;
};

/* main and the node, whose counts are those of all. */
enum { JOBS_MAIN_INDEX, JOBS_NODE_INDEX };

struct contributor_links *contributor_links(struct contributor *contributor)
{
    return &contributor->links;
}

struct job *contributor_job(const struct contributor *contributor)
{
    return contributor->job;
}

/* The job of a place; NULL: the contributor does not count there. */
static struct job *contributor_place(const struct contributor *contributor, enum contributor_place place)
{
    if (place == PLACE_JOB)
        return contributor->job;
    if (contributor->config.is_job_alone)
        return NULL;
    return jobs_at(contributor->jobs, place == PLACE_NODE ? JOBS_NODE_INDEX : JOBS_MAIN_INDEX);
}

/* Adds `ranks` and `processes`, which may be negative in effect by wrapping, to one job's counts. */
static void contributor_count_in(struct job *job, uint64_t ranks, uint64_t processes)
{
    struct job_counts *counts = job_counts_of(job);
    counts->ranks += ranks;
    counts->processes += processes;
    if (counts->ranks > counts->ranks_peak)
        counts->ranks_peak = counts->ranks;
    if (counts->processes > counts->processes_peak)
        counts->processes_peak = counts->processes;
}

static void contributor_count_everywhere(const struct contributor *contributor, uint64_t ranks, uint64_t processes)
{
    for (int place = 0; place < PLACES; place++) {
        struct job *job = contributor_place(contributor, (enum contributor_place)place);
        if (job != NULL)
            contributor_count_in(job, ranks, processes);
    }
}

struct contributor *contributor_new(struct jobs *jobs, const struct contributor_config *config)
{
    struct contributor *contributor = calloc(1, sizeof *contributor);
    if (contributor == NULL)
        return NULL;
    contributor->jobs = jobs;
    contributor->config = *config;
    jobs_add_contributor(jobs, contributor);
    if (!config->is_nobody) {
        job_counts_of(jobs_at(jobs, JOBS_MAIN_INDEX))->contributors_seen++;
        job_counts_of(jobs_at(jobs, JOBS_NODE_INDEX))->contributors_seen++;
    }
    return contributor;
}

/* Finds a legal name in the registry of `job`; a refusal is counted, and the last one is in `err`. */
static struct metric *contributor_find(struct contributor *contributor, struct job *job, const struct buf *name,
                                       const char *doc, enum metric_kind kind, struct error *err)
{
    struct metric *metric = NULL;
    int rc = registry_find_or_add(job_registry(job), name->data, name->length, doc, kind, &metric, err);
    if (rc == -EEXIST)
        jobs_stats(contributor->jobs)->metrics_conflicting++;
    else if (rc < 0)
        jobs_stats(contributor->jobs)->metrics_refused++;
    return rc == 0 ? metric : NULL;
}

/* What was declared before the job was known gets its place in it. */
static void contributor_declare_in_job(struct contributor *contributor)
{
    for (size_t i = 0; i < contributor->entries_count; i++) {
        struct contributor_entry *entry = &contributor->entries[i];
        const struct metric *known =
            entry->metrics[PLACE_MAIN] != NULL ? entry->metrics[PLACE_MAIN] : entry->metrics[PLACE_NODE];
        if (known == NULL)
            continue;
        struct buf name = {.data = (char *)(uintptr_t)known->name, .length = strlen(known->name)};
        entry->metrics[PLACE_JOB] =
            contributor_find(contributor, contributor->job, &name, known->doc, entry->value.kind, NULL);
    }
}

void contributor_join_job(struct contributor *contributor, struct job *job)
{
    assert(contributor->job == NULL);
    contributor->job = job;
    if (!contributor->config.is_nobody) {
        job_counts_of(job)->contributors_seen++;
        contributor_count_in(job, contributor->is_rank, contributor->processes);
    }
    contributor_declare_in_job(contributor);
}

int contributor_join(struct contributor *contributor, const struct metric_job *description, uint64_t launcher_start,
                     int64_t now_wall_ms, struct error *err)
{
    if (contributor->job != NULL) {
        if (strcmp(job_description(contributor->job)->id, description->id) == 0)
            return 0;
        return error_set(err, -EALREADY, "job '%s': this client belongs to job '%s' already", description->id,
                         job_description(contributor->job)->id);
    }
    struct job *job = NULL;
    int rc = jobs_join(contributor->jobs, contributor->config.uid, description, launcher_start, now_wall_ms, &job, err);
    if (rc == 0 && job != NULL)
        contributor_join_job(contributor, job);
    return rc;
}

static bool contributor_grow(struct contributor *contributor)
{
    if (contributor->entries_count < contributor->entries_capacity)
        return true;
    size_t capacity = contributor->entries_capacity > 0 ? contributor->entries_capacity * 2 : 16;
    struct contributor_entry *entries = realloc(contributor->entries, capacity * sizeof *entries);
    if (entries == NULL)
        return false;
    contributor->entries = entries;
    contributor->entries_capacity = capacity;
    return true;
}

static void contributor_set_rank(struct contributor *contributor, const struct buf *name)
{
    size_t prefix_bytes = sizeof contributor_rank_prefix - 1;
    if (contributor->is_rank || contributor->config.is_nobody || contributor->config.is_no_rank ||
        name->length < prefix_bytes || memcmp(name->data, contributor_rank_prefix, prefix_bytes) != 0)
        return;
    contributor->is_rank = true;
    contributor_count_everywhere(contributor, 1, 0);
}

bool contributor_is_reserved(const char *name)
{
    static const char *const prefixes[] = {"process_",        "cicada_proxy_",         "cicada_build_info",
                                           "proxy_mpi_ranks", "proxy_connected_procs", "job_mpi_ranks"};
    for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    return false;
}

/* The legal form of a name. What the proxy says of itself can't be said by others: theirs is exported_…. */
static int contributor_make_legal(const struct contributor *contributor, const char *name, size_t name_bytes,
                                  struct buf *legal, bool *out_was_legal, struct error *err)
{
    int rc = metric_name_parse(name, name_bytes, legal, out_was_legal, err);
    if (rc < 0 || contributor->config.is_nobody || !contributor_is_reserved(buf_string(legal)))
        return rc;
    CLEANUP(buf_cleanup) struct buf exported;
    buf_init(&exported, METRIC_NAME_MAX_BYTES);
    buf_text(&exported, contributor_exported);
    buf_bytes(&exported, legal->data, legal->length);
    rc = buf_status(&exported, err);
    if (rc < 0)
        return rc == -ENOMEM ? rc : error_set(err, -EINVAL, "the name is too long");
    buf_reset(legal);
    buf_bytes(legal, exported.data, exported.length);
    *out_was_legal = false;
    return buf_status(legal, err);
}

int contributor_declare(struct contributor *contributor, const char *name, size_t name_bytes, const char *doc,
                        enum metric_kind kind, uint32_t *out_index, struct error *err)
{
    struct jobs_stats *stats = jobs_stats(contributor->jobs);
    *out_index = CONTRIBUTOR_NONE;
    CLEANUP(buf_cleanup) struct buf legal;
    buf_init(&legal, 8 * (size_t)METRIC_NAME_MAX_BYTES); /* of what parsing may make before it finds it too long */
    bool was_legal = true;
    int rc = contributor_make_legal(contributor, name, name_bytes, &legal, &was_legal, err);
    if (rc == 0 && !contributor_grow(contributor))
        rc = error_set(err, -ENOMEM, "no memory for one more metric");
    if (rc < 0) {
        *(rc == -ENOMEM ? &stats->metrics_refused : &stats->names_refused) += 1;
        return rc;
    }
    stats->names_mapped += !was_legal;

    struct contributor_entry entry = {.value = metric_zero(kind)};
    struct error refusal = {0};
    bool is_anywhere = false;
    for (int place = 0; place < PLACES; place++) {
        struct job *job = contributor_place(contributor, (enum contributor_place)place);
        if (job != NULL)
            entry.metrics[place] = contributor_find(contributor, job, &legal, doc, kind, &refusal);
        is_anywhere = is_anywhere || entry.metrics[place] != NULL;
    }
    contributor_set_rank(contributor, &legal);
    if (!is_anywhere)
        return error_set(err, refusal.code != 0 ? refusal.code : -ENOENT, "%s", refusal.text);
    *out_index = (uint32_t)contributor->entries_count;
    contributor->entries[contributor->entries_count++] = entry;
    return 0;
}

void contributor_set(struct contributor *contributor, uint32_t index, const struct metric_value *value)
{
    if (index >= contributor->entries_count || contributor->entries[index].value.kind != value->kind)
        return;
    contributor->entries[index].value = *value;
}

/* Marks the jobs of all places as folded: parts of their sums have changed places. */
static void contributor_set_folded(const struct contributor *contributor)
{
    for (int place = 0; place < PLACES; place++) {
        struct job *job = contributor_place(contributor, (enum contributor_place)place);
        if (job != NULL)
            job_set_folded(job);
    }
    jobs_set_dirty(contributor->jobs, true);
}

void contributor_fold(struct contributor *contributor, uint32_t index)
{
    if (index >= contributor->entries_count)
        return;
    struct contributor_entry *entry = &contributor->entries[index];
    for (int place = 0; place < PLACES; place++) {
        if (entry->metrics[place] != NULL)
            registry_keep(entry->metrics[place], &entry->value);
    }
    entry->value = metric_zero(entry->value.kind);
    contributor_set_folded(contributor);
}

void contributor_unfold(struct contributor *contributor, uint32_t index, double counted)
{
    if (index >= contributor->entries_count || contributor->entries[index].value.kind != METRIC_COUNTER)
        return;
    struct contributor_entry *entry = &contributor->entries[index];
    for (int place = 0; place < PLACES; place++) {
        struct metric *metric = entry->metrics[place];
        if (metric != NULL) /* a job that was forgotten and began anew has less in its base, or nothing */
            metric->base.counter = metric->base.counter > counted ? metric->base.counter - counted : 0;
    }
    contributor_set_folded(contributor);
}

struct metric_value contributor_value(const struct contributor *contributor, uint32_t index)
{
    return index < contributor->entries_count ? contributor->entries[index].value : metric_zero(METRIC_COUNTER);
}

enum metric_kind contributor_kind(const struct contributor *contributor, uint32_t index)
{
    return contributor_value(contributor, index).kind;
}

size_t contributor_count(const struct contributor *contributor)
{
    return contributor->entries_count;
}

void contributor_set_processes(struct contributor *contributor, uint64_t processes)
{
    if (!contributor->config.is_nobody)
        contributor_count_everywhere(contributor, 0, processes - contributor->processes);
    contributor->processes = processes;
}

void contributor_add(const struct contributor *contributor)
{
    for (size_t i = 0; i < contributor->entries_count; i++) {
        const struct contributor_entry *entry = &contributor->entries[i];
        for (int place = 0; place < PLACES; place++) {
            if (entry->metrics[place] != NULL)
                (void)registry_add(entry->metrics[place], &entry->value); /* of one kind since it was declared */
        }
    }
}

bool contributor_is_adoptable(const struct contributor *contributor)
{
    return contributor->config.is_adoptable;
}

static void contributor_keep(const struct contributor *contributor)
{
    for (size_t i = 0; i < contributor->entries_count; i++) {
        const struct contributor_entry *entry = &contributor->entries[i];
        for (int place = 0; place < PLACES; place++) {
            if (entry->metrics[place] != NULL)
                registry_keep(entry->metrics[place], &entry->value);
        }
    }
    contributor_set_folded(contributor);
}

static void contributor_free(struct contributor *contributor)
{
    jobs_take_contributor(contributor->jobs, contributor);
    free(contributor->entries);
    free(contributor);
}

static void contributor_uncount(struct contributor *contributor)
{
    contributor_set_processes(contributor, 0);
    if (contributor->is_rank)
        contributor_count_everywhere(contributor, UINT64_MAX, 0); /* one fewer */
}

void contributor_end(struct contributor *contributor, int64_t now_mono_ns, int64_t now_wall_ms)
{
    if (contributor == NULL)
        return;
    contributor_keep(contributor);
    contributor_uncount(contributor);
    if (contributor->job != NULL && !contributor->config.is_nobody)
        jobs_leave(contributor->jobs, contributor->job, now_mono_ns, now_wall_ms);
    contributor_free(contributor);
}

void contributor_discard(struct contributor *contributor)
{
    if (contributor == NULL)
        return;
    contributor_uncount(contributor);
    contributor_free(contributor);
}
