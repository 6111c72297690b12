/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contributor: whoever counts: a segment, a JSON connection, a scraped target, the node's telemetry.
 *
 * Has values of its own, each of which goes to three places at every tick: its job, the node's job and `main`. Giving
 * the same value twice counts once; what a contributor counted stays in the bases when it ends, its gauges go.
 * Names are made legal once, when they are declared. What is refused (no room, the other kind) is refused where it is
 * and counted, and spoils nothing else. Loop thread only.
 */
#ifndef PROXY_CONTRIBUTOR_H
#define PROXY_CONTRIBUTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metric/value.h"
#include "proxy/jobs.h"
#include "util/error.h"

struct contributor;

#define CONTRIBUTOR_NONE UINT32_MAX

struct contributor_config {
    uint32_t uid;
    bool is_adoptable; /* a successor finds it again by itself: the state leaves its values out */
    bool is_job_alone; /* counts in its job only: telemetry of a job's life */
    bool is_no_rank;   /* declares what MPI ranks declare, and is none: a job of another node */
    bool is_nobody;    /* no client: not counted among the contributors of a job, and doesn't keep it alive */
};

/* In the list of `jobs` from now on, without a job. NULL without memory. */
struct contributor *contributor_new(struct jobs *jobs, const struct contributor_config *config);

/*
 * Puts it into the job of `description` (jobs_join()), and what it has declared. Only once: later ones are -EALREADY,
 * unless they name the same id. Refused jobs are counted there, and the contributor goes on without.
 */
MUST_CHECK int contributor_join(struct contributor *contributor, const struct metric_job *description,
                                uint64_t launcher_start, int64_t now_wall_ms, struct error *err);

/* The same with a job that is known. The job must outlive the contributor. */
void contributor_join_job(struct contributor *contributor, struct job *job);

struct job *contributor_job(const struct contributor *contributor); /* NULL: none */

/* Is it a name under which the proxy tells of itself? What others declare so is called exported_… */
bool contributor_is_reserved(const char *name);

/*
 * Declares a metric; `*out_index` is its number here, CONTRIBUTOR_NONE when it is refused everywhere. A second one of
 * the same name is a part of its own: both are added. -EINVAL (name), -EEXIST, -ENOSPC, -ENOMEM: counted, and `err`
 * says which; a metric that is refused in one place only counts in the others and returns 0.
 */
MUST_CHECK int contributor_declare(struct contributor *contributor, const char *name, size_t name_bytes,
                                   const char *doc, enum metric_kind kind, uint32_t *out_index, struct error *err);

/* Its value from now on. One of the other kind is passed over. CONTRIBUTOR_NONE does nothing. */
void contributor_set(struct contributor *contributor, uint32_t index, const struct metric_value *value);

/*
 * Its counter so far stays in the bases, and it begins at nothing: whoever tells totals has begun anew. And the other
 * way round: `counted` of it is in the bases already, and will come with its totals again.
 */
void contributor_fold(struct contributor *contributor, uint32_t index);
void contributor_unfold(struct contributor *contributor, uint32_t index, double counted);

/* The value that it has; a zero counter for CONTRIBUTOR_NONE. */
struct metric_value contributor_value(const struct contributor *contributor, uint32_t index);
enum metric_kind contributor_kind(const struct contributor *contributor, uint32_t index);
size_t contributor_count(const struct contributor *contributor);

/* How many processes stand behind it now; counted in its job and in all. */
void contributor_set_processes(struct contributor *contributor, uint64_t processes);

/* Adds all values to the registries: between jobs_begin() and jobs_end(). */
void contributor_add(const struct contributor *contributor);
bool contributor_is_adoptable(const struct contributor *contributor);

/* It has ended: counters go into the bases; it leaves its job and is freed. NULL is fine. */
void contributor_end(struct contributor *contributor, int64_t now_mono_ns, int64_t now_wall_ms);

/* It goes as if it had not been: what it counted is counted elsewhere. NULL is fine. */
void contributor_discard(struct contributor *contributor);

/* The next in the list of its jobs; links for jobs.c. */
struct contributor_links {
    struct contributor *previous, *next;
};
struct contributor_links *contributor_links(struct contributor *contributor);

#endif
