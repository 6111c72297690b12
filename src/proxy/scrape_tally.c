/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/scrape_tally.h"

#include <stdlib.h>
#include <string.h>

/* A job that finds no memory is left out of an answer. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "proxy/scrape_counts.h"
#include "util/clock.h"

enum {
    SCRAPE_TALLY_SLICE = 2000,         /* values in one turn of the loop: about 1 ms */
    SCRAPE_TALLY_FORGET_ROUNDS = 1000, /* a job that has gone for so many answers won't come back */
};

/* A job of a proxy. */
struct scrape_job {
    char *id;
    struct scrape_counts *counts;
    uint64_t round;        /* of the last answer that had it */
    int64_t start_wall_ms; /* of its run; within one it may only become earlier */
    UT_hash_handle hh;
};

struct scrape_tally {
    struct jobs *jobs;
    struct scrape_counts *counts; /* of an exporter, or of a proxy's main; NULL: not yet */
    struct scrape_job *known;     /* jobs of a proxy; hash by id */
    struct scrape_answer *answer; /* being counted, or just counted */
    size_t group_at, value_at;
    uint64_t round; /* of the answer */
};

struct scrape_tally *scrape_tally_new(struct jobs *jobs)
{
    struct scrape_tally *tally = calloc(1, sizeof *tally);
    if (tally != NULL)
        tally->jobs = jobs;
    return tally;
}

static void scrape_tally_forget(struct scrape_tally *tally, struct scrape_job *job)
{
    HASH_DEL(tally->known, job);
    scrape_counts_free(job->counts);
    free(job->id);
    free(job);
}

void scrape_tally_free(struct scrape_tally *tally)
{
    if (tally == NULL)
        return;
    struct scrape_job *job;
    struct scrape_job *next;
    HASH_ITER(hh, tally->known, job, next)
    scrape_tally_forget(tally, job);
    scrape_counts_free(tally->counts);
    scrape_read_free(tally->answer);
    free(tally);
}

/* Jobs that the answer did not have, or all, have ended there. */
static void scrape_tally_end_jobs(struct scrape_tally *tally, bool is_all)
{
    int64_t now_mono_ns = clock_mono_ns();
    int64_t now_wall_ms = clock_wall_ns() / CLOCK_NS_PER_MS;
    struct scrape_job *job;
    struct scrape_job *next;
    HASH_ITER(hh, tally->known, job, next)
    {
        if (!is_all && job->round == tally->round)
            continue;
        scrape_counts_leave(job->counts, now_mono_ns, now_wall_ms);
        if (tally->round - job->round > SCRAPE_TALLY_FORGET_ROUNDS)
            scrape_tally_forget(tally, job);
    }
}

void scrape_tally_leave(struct scrape_tally *tally, bool is_all)
{
    scrape_tally_end_jobs(tally, true);
    if (is_all && tally->counts != NULL)
        scrape_counts_leave(tally->counts, clock_mono_ns(), clock_wall_ns() / CLOCK_NS_PER_MS);
}

void scrape_tally_lose(struct scrape_tally *tally)
{
    struct scrape_job *job;
    struct scrape_job *next;
    if (tally->counts != NULL)
        scrape_counts_lose(tally->counts);
    HASH_ITER(hh, tally->known, job, next)
    scrape_counts_lose(job->counts);
}

void scrape_tally_abandon(struct scrape_tally *tally)
{
    scrape_read_free(TAKE(tally->answer));
}

const struct scrape_answer *scrape_tally_answer(const struct scrape_tally *tally)
{
    return tally->answer;
}

void scrape_tally_begin(struct scrape_tally *tally, struct scrape_answer *answer)
{
    scrape_tally_abandon(tally);
    bool is_other = tally->counts != NULL && answer->groups_count > 0 && answer->groups[0].kind != SCRAPE_GROUP_JOB &&
                    answer->groups[0].kind != scrape_counts_kind(tally->counts);
    if (is_other) {
        scrape_tally_leave(tally, true);
        scrape_counts_free(TAKE(tally->counts));
    }
    tally->answer = answer;
    tally->group_at = tally->value_at = 0;
    tally->round++;
}

static struct scrape_job *scrape_tally_add_job(struct scrape_tally *tally, const char *id)
{
    struct scrape_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return NULL;
    job->id = strdup(id);
    job->counts = scrape_counts_new(tally->jobs, SCRAPE_GROUP_JOB);
    if (job->id != NULL && job->counts != NULL) {
        HASH_ADD_KEYPTR(hh, tally->known, job->id, strlen(job->id), job);
        if (job->hh.tbl != NULL)
            return job;
    }
    scrape_counts_free(job->counts);
    free(job->id);
    free(job);
    return NULL;
}

/* A later start under the same id is another run, whose totals have nothing to do with those of the one before. */
static void scrape_tally_set_run(struct scrape_tally *tally, struct scrape_job *job, int64_t start_wall_ms)
{
    bool is_other = job->start_wall_ms != 0 && start_wall_ms > job->start_wall_ms;
    struct scrape_counts *counts = is_other ? scrape_counts_new(tally->jobs, SCRAPE_GROUP_JOB) : NULL;
    if (counts != NULL) {
        scrape_counts_leave(job->counts, clock_mono_ns(), clock_wall_ns() / CLOCK_NS_PER_MS);
        scrape_counts_free(job->counts);
        job->counts = counts;
    }
    job->start_wall_ms = start_wall_ms;
}

/* The counts of a group; NULL without memory. */
static struct scrape_counts *scrape_tally_counts(struct scrape_tally *tally, const struct scrape_group *group)
{
    if (group->kind != SCRAPE_GROUP_JOB) {
        if (tally->counts == NULL)
            tally->counts = scrape_counts_new(tally->jobs, group->kind);
        return tally->counts;
    }
    struct scrape_job *job;
    HASH_FIND_STR(tally->known, group->description.id, job);
    if (job == NULL)
        job = scrape_tally_add_job(tally, group->description.id);
    if (job == NULL)
        return NULL;
    if (tally->value_at == 0)
        scrape_tally_set_run(tally, job, group->description.start_wall_ms);
    job->round = tally->round;
    return job->counts;
}

/* Values of one group from `value_at` on, at most `left`; how many, and one for the group itself. */
static size_t scrape_tally_group(struct scrape_tally *tally, const struct scrape_group *group, size_t left)
{
    struct scrape_counts *counts = scrape_tally_counts(tally, group);
    if (counts == NULL ||
        scrape_counts_enter(counts, &group->description, clock_wall_ns() / CLOCK_NS_PER_MS, NULL) < 0) {
        tally->value_at = group->count; /* a job that finds no room: counted there */
        return 1;
    }
    if (tally->value_at == 0)
        scrape_counts_begin(counts);
    size_t done = 0;
    for (; done < left && tally->value_at < group->count; done++, tally->value_at++) {
        const struct scrape_value *value = &tally->answer->values[group->first + tally->value_at];
        scrape_counts_set(counts, tally->answer->texts.data + value->name_at, value->name_bytes,
                          tally->answer->texts.data + value->doc_at, &value->value);
    }
    if (tally->value_at == group->count) {
        scrape_counts_finish(counts);
        scrape_counts_set_clients(counts, group->ranks, group->processes);
    }
    return done + 1;
}

bool scrape_tally_go_on(struct scrape_tally *tally)
{
    size_t left = SCRAPE_TALLY_SLICE;
    while (tally->group_at < tally->answer->groups_count && left > 0) {
        const struct scrape_group *group = &tally->answer->groups[tally->group_at];
        size_t done = scrape_tally_group(tally, group, left);
        left = done < left ? left - done : 0;
        if (tally->value_at == group->count) {
            tally->group_at++;
            tally->value_at = 0;
        }
    }
    if (tally->group_at < tally->answer->groups_count)
        return false;
    scrape_tally_end_jobs(tally, false);
    return true;
}
