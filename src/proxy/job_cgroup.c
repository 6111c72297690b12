/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/job_cgroup.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/contributor.h"
#include "proxy/node_names.h"
#include "sample/cgroup.h"
#include "sample/collector.h"
#include "util/clock.h"
#include "util/log.h"

enum { JOB_CGROUP_NAME_MAX_BYTES = 1024, JOB_CGROUP_COLUMNS_MAX = 64, JOB_CGROUP_ID_BYTES_MIN = 2 };

static const char job_cgroup_family[] = "cicada_node_cgroup_"; /* by the rules of node_names.h */
static const char job_cgroup_prefix[] = "cicada_job_";         /* what it is called instead */

struct job_cgroup {
    struct sample_config sample;
    char pid_text[16];
    struct collector *collector;
    struct contributor *contributor;
    uint32_t slots[JOB_CGROUP_COLUMNS_MAX]; /* by column; CONTRIBUTOR_NONE: not there yet */
    double scales[JOB_CGROUP_COLUMNS_MAX];
};

bool job_cgroup_is_of(const char *path, const char *id)
{
    size_t bytes = strcspn(id, "-"); /* a step's id is the job's and its number */
    if (bytes < JOB_CGROUP_ID_BYTES_MIN)
        bytes = strlen(id);
    if (bytes < JOB_CGROUP_ID_BYTES_MIN)
        return false; /* "1" is in too many paths */
    for (const char *at = path; *at != '\0'; at++) {
        bool begins = at == path || !isalnum((unsigned char)at[-1]);
        if (begins && strncmp(at, id, bytes) == 0 && !isalnum((unsigned char)at[bytes]))
            return true;
    }
    return false;
}

void job_cgroup_close(struct job_cgroup *cgroup)
{
    if (cgroup == NULL)
        return;
    cgroup_collector.close(cgroup->collector);
    contributor_discard(cgroup->contributor);
    free(cgroup);
}
DEFINE_CLEANUP(job_cgroup, job_cgroup_close);

/* The only row, when the cgroup is there. */
static const struct sample_row *job_cgroup_row(const struct job_cgroup *cgroup)
{
    const struct sample_table *table = cgroup_collector.table(cgroup->collector);
    return table->rows_count > 0 ? table->rows[0] : NULL;
}

int job_cgroup_open(struct jobs *jobs, struct job *job, const struct sample_config *sample, pid_t pid,
                    struct job_cgroup **out_cgroup, struct error *err)
{
    CLEANUP(job_cgroup_cleanup) struct job_cgroup *cgroup = calloc(1, sizeof *cgroup);
    if (cgroup == NULL)
        return error_set(err, -ENOMEM, "no memory for a job's cgroup");
    for (size_t i = 0; i < JOB_CGROUP_COLUMNS_MAX; i++)
        cgroup->slots[i] = CONTRIBUTOR_NONE;
    (void)snprintf(cgroup->pid_text, sizeof cgroup->pid_text, "%d", (int)pid); /* fits */
    cgroup->sample = *sample;
    cgroup->sample.cgroup = cgroup->pid_text;
    int rc = cgroup_collector.open(&cgroup->sample, &cgroup->collector, err);
    if (rc == 0)
        rc = cgroup_collector.read(cgroup->collector, clock_boot_ns(), err);
    if (rc < 0)
        return rc;
    const struct sample_row *row = job_cgroup_row(cgroup);
    if (row == NULL || row->label == NULL || !job_cgroup_is_of(row->label, job_description(job)->id))
        return error_set(err, -ENODEV, "job '%s' has no cgroup of its own", job_key(job));
    /* Its counters are found again by a successor: they must not be in the state, too. */
    cgroup->contributor = contributor_new(
        jobs, &(struct contributor_config){.is_job_alone = true, .is_nobody = true, .is_adoptable = true});
    if (cgroup->contributor == NULL)
        return error_set(err, -ENOMEM, "no memory for a job's cgroup");
    contributor_join_job(cgroup->contributor, job);
    *out_cgroup = TAKE(cgroup);
    return 0;
}

static void job_cgroup_declare(struct job_cgroup *cgroup, const struct sample_column *column, size_t index)
{
    CLEANUP(buf_cleanup) struct buf family;
    CLEANUP(buf_cleanup) struct buf name;
    buf_init(&family, JOB_CGROUP_NAME_MAX_BYTES);
    buf_init(&name, JOB_CGROUP_NAME_MAX_BYTES);
    node_names_family("cgroup", column, &family, &cgroup->scales[index]);
    buf_text(&name, job_cgroup_prefix);
    buf_text(&name, buf_string(&family) + strlen(job_cgroup_family));
    enum metric_kind kind = column->kind == SAMPLE_COUNTER ? METRIC_COUNTER : METRIC_GAUGE;
    struct error err = {0};
    if (contributor_declare(cgroup->contributor, name.data, name.length, column->help, kind, &cgroup->slots[index],
                            &err) < 0)
        log_debug("telemetry: %s", err.text); /* counted there; it is tried again with the next value */
}

void job_cgroup_read(struct job_cgroup *cgroup, int64_t now_wall_us)
{
    (void)cgroup_collector.read(cgroup->collector, clock_boot_ns(), NULL); /* always 0: a cgroup may go */
    const struct sample_table *table = cgroup_collector.table(cgroup->collector);
    const struct sample_row *row = job_cgroup_row(cgroup);
    for (size_t i = 0; i < table->columns_count && i < JOB_CGROUP_COLUMNS_MAX; i++) {
        const struct sample_column *column = &table->columns[i];
        bool is_known = row != NULL && row->values[i].is_known;
        if (is_known && cgroup->slots[i] == CONTRIBUTOR_NONE)
            job_cgroup_declare(cgroup, column, i);
        struct metric_value value = metric_zero(METRIC_GAUGE);
        if (column->kind == SAMPLE_COUNTER && is_known)
            value = metric_counter((double)row->values[i].raw * cgroup->scales[i], now_wall_us);
        else if (column->kind == SAMPLE_COUNTER)
            continue;
        else if (is_known)
            value = metric_gauge((double)row->values[i].integer * cgroup->scales[i], now_wall_us);
        contributor_set(cgroup->contributor, cgroup->slots[i], &value);
    }
}
