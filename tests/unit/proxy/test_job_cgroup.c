/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/job_cgroup.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/contributor.h"
#include "util/clock.h"

enum { RECORDED_PID = 4242 };

static const struct sample_config v1 = {.proc_path = TESTS_DIR "/recorded/cgroup-v1/proc",
                                        .sys_path = TESTS_DIR "/recorded/cgroup-v1/sys",
                                        .mount_prefix = ""};
static const struct sample_config v2 = {.proc_path = TESTS_DIR "/recorded/cgroup-v2/proc",
                                        .sys_path = TESTS_DIR "/recorded/cgroup-v2/sys",
                                        .mount_prefix = ""};

static struct jobs *new_jobs(void)
{
    const struct jobs_config config = {
        .hostname = "n1", .jobs_max = 10, .metrics_per_job_max = 1000, .metrics_max = 10000, .linger_ns = 1};
    struct jobs *jobs = NULL;
    assert_int_equal(jobs_new(&config, &jobs, NULL), 0);
    return jobs;
}

/* Job `id` without anybody in it. */
static struct job *add_job(struct jobs *jobs, const char *id)
{
    struct metric_job description;
    struct job *job = NULL;
    assert_int_equal(metric_job_init(&description, id, NULL), 0);
    assert_int_equal(jobs_join(jobs, 0, &description, 0, 1, &job, NULL), 0);
    metric_job_fini(&description);
    return job;
}

/* What is shown after a tick in which all contributors have been added. */
static double shown(struct jobs *jobs, struct job *job, const char *name)
{
    jobs_begin(jobs);
    for (struct contributor *one = jobs_first_contributor(jobs); one != NULL; one = contributor_links(one)->next)
        contributor_add(one);
    jobs_end(jobs);
    const struct metric *metric = registry_find(job_registry(job), name, strlen(name));
    return metric != NULL ? metric_shown(&metric->value) : -1;
}

static void numbers_of_the_cgroup_are_the_job_s(void **state)
{
    (void)state;
    struct jobs *jobs = new_jobs();
    struct job *job = add_job(jobs, "42-0");
    struct job_cgroup *cgroup = NULL;
    struct error err = {0};
    if (job_cgroup_open(jobs, job, &v2, RECORDED_PID, &cgroup, &err) < 0)
        fail_msg("%s", err.text);
    job_cgroup_read(cgroup, 1);
    assert_float_equal(shown(jobs, job, "cicada_job_cpu_usage_seconds_total"), 5, 1e-9);
    assert_float_equal(shown(jobs, job, "cicada_job_cpu_throttled_seconds_total"), 0.07, 1e-9);
    assert_float_equal(shown(jobs, job, "cicada_job_memory_bytes"), 1073741824, 0);
    job_cgroup_read(cgroup, 2);
    assert_float_equal(shown(jobs, job, "cicada_job_cpu_usage_seconds_total"), 5, 1e-9);
    assert_int_equal(registry_count(job_registry(jobs_at(jobs, 0))), 0);
    job_cgroup_close(cgroup);
    jobs_free(jobs);
}

static void version_1_has_the_same_names(void **state)
{
    (void)state;
    struct jobs *jobs = new_jobs();
    struct job *job = add_job(jobs, "42");
    struct job_cgroup *cgroup = NULL;
    assert_int_equal(job_cgroup_open(jobs, job, &v1, RECORDED_PID, &cgroup, NULL), 0);
    job_cgroup_read(cgroup, 1);
    assert_true(shown(jobs, job, "cicada_job_cpu_usage_seconds_total") > 0);
    assert_true(shown(jobs, job, "cicada_job_memory_bytes") > 0);
    job_cgroup_close(cgroup);
    jobs_free(jobs);
}

static void cgroup_that_others_share_is_left_out(void **state)
{
    (void)state;
    struct jobs *jobs = new_jobs();
    struct job_cgroup *cgroup = NULL;
    struct error err = {0};
    assert_int_equal(job_cgroup_open(jobs, add_job(jobs, "43"), &v2, RECORDED_PID, &cgroup, &err), -ENODEV);
    assert_non_null(strstr(err.text, "'43'"));
    assert_int_equal(job_cgroup_open(jobs, add_job(jobs, "42"), &v2, 1, &cgroup, NULL), -ENODEV);
    assert_true(job_cgroup_open(jobs, add_job(jobs, "42-1"), &v2, 77, &cgroup, NULL) < 0); /* no such process */
    assert_null(cgroup);
    assert_null(jobs_first_contributor(jobs));
    jobs_free(jobs);
}

static void path_names_a_job_as_a_whole_word(void **state)
{
    (void)state;
    static const struct {
        const char *path, *id;
        bool is_of;
    } cases[] = {
        {"/slurm/uid_1000/job_42", "42", true},
        {"/slurm/uid_1000/job_42", "42-3", true},
        {"/system.slice/slurmstepd.scope/job_42", "42", true},
        {"/pbs_jobs.service/jobid/1234.server", "1234", true},
        {"/slurm/uid_1000/job_42", "4", false},
        {"/slurm/uid_1000/job_42", "2", false},
        {"/slurm/uid_1000/job_421", "42", false},
        {"/slurm/uid_1000/job_142", "42", false},
        {"/slurm/uid_1000/job_1", "1", false},
        {"/user.slice/user-1000.slice/session-5.scope", "42", false},
        {"/", "42", false},
        {"", "42", false},
        {"/a", "", false},
        {"/a-b", "-", false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        if (job_cgroup_is_of(cases[i].path, cases[i].id) != cases[i].is_of)
            fail_msg("'%s' of '%s'", cases[i].path, cases[i].id);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_the_cgroup_are_the_job_s),
        cmocka_unit_test(version_1_has_the_same_names),
        cmocka_unit_test(cgroup_that_others_share_is_left_out),
        cmocka_unit_test(path_names_a_job_as_a_whole_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
