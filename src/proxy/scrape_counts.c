/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/scrape_counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A metric that finds no memory is left out. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "proxy/contributor.h"

struct scrape_entry {
    struct scrape_entry *next; /* in order of arrival */
    enum metric_kind kind;
    uint32_t slot; /* CONTRIBUTOR_NONE: not declared, or refused */
    bool is_declared;
    uint64_t turn; /* of the last answer that had it */
    double told;   /* of a counter, the last time */
    double folded; /* of it, what is in the bases since the group has left */
    char *doc;     /* until it is declared anew; NULL: none */
    UT_hash_handle hh;
    size_t name_bytes;
    char name[]; /* without NUL */
};

struct scrape_counts {
    struct jobs *jobs;
    enum scrape_group_kind kind;
    struct contributor *contributor; /* NULL: it doesn't count */
    struct scrape_entry *entries;    /* hash by name */
    struct scrape_entry *first, *last;
    struct scrape_entry *expected; /* an answer has the order of the one before */
    size_t count;
    uint64_t turn;
    uint64_t ranks, processes;
};

struct scrape_counts *scrape_counts_new(struct jobs *jobs, enum scrape_group_kind kind)
{
    struct scrape_counts *counts = calloc(1, sizeof *counts);
    if (counts != NULL)
        *counts = (struct scrape_counts){.jobs = jobs, .kind = kind};
    return counts;
}

/* The job whose counts have its ranks and processes; NULL: none. */
static struct job *scrape_counts_job(const struct scrape_counts *counts)
{
    if (counts->contributor == NULL || counts->kind == SCRAPE_GROUP_EXPORTER)
        return NULL;
    return contributor_job(counts->contributor);
}

void scrape_counts_set_clients(struct scrape_counts *counts, uint64_t ranks, uint64_t processes)
{
    struct job *job = scrape_counts_job(counts);
    if (job != NULL) {
        struct job_counts *of_job = job_counts_of(job);
        of_job->ranks += ranks - counts->ranks; /* may wrap, as unsigned differences do, and comes out right */
        of_job->processes += processes - counts->processes;
        if (of_job->ranks > of_job->ranks_peak)
            of_job->ranks_peak = of_job->ranks;
        if (of_job->processes > of_job->processes_peak)
            of_job->processes_peak = of_job->processes;
    }
    counts->ranks = ranks;
    counts->processes = processes;
}

void scrape_counts_free(struct scrape_counts *counts)
{
    if (counts == NULL)
        return;
    scrape_counts_set_clients(counts, 0, 0);
    contributor_discard(counts->contributor);
    HASH_CLEAR(hh, counts->entries);
    while (counts->first != NULL) {
        struct scrape_entry *entry = counts->first;
        counts->first = entry->next;
        free(entry->doc);
        free(entry);
    }
    free(counts);
}

bool scrape_counts_is_in(const struct scrape_counts *counts)
{
    return counts->contributor != NULL;
}

enum scrape_group_kind scrape_counts_kind(const struct scrape_counts *counts)
{
    return counts->kind;
}

int scrape_counts_enter(struct scrape_counts *counts, const struct metric_job *description, int64_t now_wall_ms,
                        struct error *err)
{
    if (counts->contributor != NULL)
        return 0;
    /* A successor scrapes the target again: the state of this proxy leaves its values out. */
    const struct contributor_config config = {.uid = jobs_config(counts->jobs)->uid,
                                              .is_adoptable = true,
                                              .is_job_alone = counts->kind != SCRAPE_GROUP_EXPORTER,
                                              .is_no_rank = true,
                                              .is_nobody = counts->kind != SCRAPE_GROUP_JOB};
    struct contributor *contributor = contributor_new(counts->jobs, &config);
    if (contributor == NULL)
        return error_set(err, -ENOMEM, "no memory for what the target counts");
    if (counts->kind == SCRAPE_GROUP_MAIN)
        contributor_join_job(contributor, jobs_at(counts->jobs, 0));
    if (counts->kind == SCRAPE_GROUP_JOB) {
        int rc = contributor_join(contributor, description, 0, now_wall_ms, err);
        if (rc < 0) {
            contributor_discard(contributor);
            return rc;
        }
    }
    counts->contributor = contributor;
    return 0;
}

void scrape_counts_leave(struct scrape_counts *counts, int64_t now_mono_ns, int64_t now_wall_ms)
{
    if (counts->contributor == NULL)
        return;
    scrape_counts_set_clients(counts, 0, 0);
    contributor_end(counts->contributor, now_mono_ns, now_wall_ms);
    counts->contributor = NULL;
    for (struct scrape_entry *entry = counts->first; entry != NULL; entry = entry->next) {
        if (entry->is_declared) /* else it has been there since it left the last time */
            entry->folded = entry->slot != CONTRIBUTOR_NONE ? entry->told : 0;
        entry->is_declared = false;
        entry->slot = CONTRIBUTOR_NONE;
    }
}

void scrape_counts_begin(struct scrape_counts *counts)
{
    counts->turn++;
    counts->expected = counts->first;
}

static struct scrape_entry *scrape_counts_find(struct scrape_counts *counts, const char *name, size_t name_bytes)
{
    struct scrape_entry *entry = counts->expected;
    if (entry == NULL || entry->name_bytes != name_bytes || memcmp(entry->name, name, name_bytes) != 0)
        HASH_FIND(hh, counts->entries, name, name_bytes, entry);
    return entry;
}

static struct scrape_entry *scrape_counts_add(struct scrape_counts *counts, const char *name, size_t name_bytes,
                                              const char *doc, enum metric_kind kind)
{
    if (counts->count == SCRAPE_READ_VALUES_MAX) {
        jobs_stats(counts->jobs)->metrics_refused++;
        return NULL;
    }
    struct scrape_entry *entry = calloc(1, sizeof *entry + name_bytes);
    if (entry == NULL)
        return NULL;
    entry->kind = kind;
    entry->slot = CONTRIBUTOR_NONE;
    entry->name_bytes = name_bytes;
    memcpy(entry->name, name, name_bytes);
    entry->doc = doc[0] != '\0' ? strdup(doc) : NULL;
    HASH_ADD_KEYPTR(hh, counts->entries, entry->name, name_bytes, entry);
    if (entry->hh.tbl == NULL) {
        free(entry->doc);
        free(entry);
        return NULL;
    }
    if (counts->last != NULL)
        counts->last->next = entry;
    else
        counts->first = entry;
    counts->last = entry;
    counts->count++;
    return entry;
}

/* Gives the entry a slot of the contributor, with what it had counted before it left. A refusal is counted there, and
 * not asked again. */
static void scrape_counts_declare(struct scrape_counts *counts, struct scrape_entry *entry)
{
    if (entry->is_declared)
        return;
    entry->is_declared = true;
    if (contributor_declare(counts->contributor, entry->name, entry->name_bytes, entry->doc, entry->kind, &entry->slot,
                            NULL) < 0)
        entry->slot = CONTRIBUTOR_NONE;
    if (entry->folded == 0)
        return;
    struct metric_value before = metric_counter(entry->folded, 0);
    contributor_unfold(counts->contributor, entry->slot, entry->folded);
    contributor_set(counts->contributor, entry->slot, &before);
    entry->folded = 0;
}

static void scrape_counts_tell(struct scrape_counts *counts, struct scrape_entry *entry, double told, int64_t wall_us)
{
    if (told < entry->told)
        contributor_fold(counts->contributor, entry->slot);
    entry->told = told;
    struct metric_value value = metric_counter(told, wall_us);
    contributor_set(counts->contributor, entry->slot, &value);
}

void scrape_counts_set(struct scrape_counts *counts, const char *name, size_t name_bytes, const char *doc,
                       const struct metric_value *value)
{
    struct scrape_entry *entry = scrape_counts_find(counts, name, name_bytes);
    if (entry == NULL)
        entry = scrape_counts_add(counts, name, name_bytes, doc, value->kind);
    if (entry == NULL || entry->turn == counts->turn || entry->kind != value->kind || counts->contributor == NULL)
        return;
    counts->expected = entry->next;
    entry->turn = counts->turn;
    scrape_counts_declare(counts, entry);
    if (value->kind == METRIC_COUNTER)
        scrape_counts_tell(counts, entry, value->counter, value->wall_us);
    else
        contributor_set(counts->contributor, entry->slot, value);
}

static void scrape_counts_unset(struct scrape_counts *counts, const struct scrape_entry *entry)
{
    struct metric_value nobody = metric_zero(METRIC_GAUGE);
    contributor_set(counts->contributor, entry->slot, &nobody);
}

void scrape_counts_finish(struct scrape_counts *counts)
{
    for (struct scrape_entry *entry = counts->first; entry != NULL && counts->contributor != NULL;
         entry = entry->next) {
        if (entry->turn == counts->turn)
            continue;
        if (entry->kind == METRIC_GAUGE)
            scrape_counts_unset(counts, entry);
        else if (counts->kind != SCRAPE_GROUP_EXPORTER && entry->told > 0)
            scrape_counts_tell(counts, entry, 0, contributor_value(counts->contributor, entry->slot).wall_us);
    }
}

void scrape_counts_lose(struct scrape_counts *counts)
{
    for (struct scrape_entry *entry = counts->first; entry != NULL && counts->contributor != NULL;
         entry = entry->next) {
        if (entry->kind == METRIC_GAUGE)
            scrape_counts_unset(counts, entry);
    }
    scrape_counts_set_clients(counts, 0, 0);
}
