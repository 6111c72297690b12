/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/cgrouppath.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "drive.h"

static void job_is_cut_out_of_a_path(void **state)
{
    (void)state;
    static const struct {
        const char *path, *job;
    } paths[] = {
        {"/slurm/uid_1000/job_42/step_0/task_0", "/slurm/uid_1000/job_42"},
        {"/system.slice/slurmstepd.scope/job_42/step_batch/user/task_special", "/system.slice/slurmstepd.scope/job_42"},
        {"/slurm/uid_1000/job_42", "/slurm/uid_1000/job_42"},
        {"/user.slice/user-1000.slice/session-3.scope", "/user.slice/user-1000.slice/session-3.scope"},
        {"/my/job_x/job_", "/my/job_x/job_"},
        {"/my/job_7x/y", "/my/job_7x/y"},
        {"/", "/"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        struct cursor job = cgrouppath_job(cursor_of(paths[i].path, strlen(paths[i].path)));
        if (!cursor_equals(&job, paths[i].job))
            fail_msg("'%s': '%.*s'", paths[i].path, (int)cursor_left(&job), job.at);
    }
}

static void lines_that_make_no_sense_are_skipped(void **state)
{
    (void)state;
    static const char text[] = "\n1\n2:x\n3:cpu,cpuacct:/a:b\n4:memory:relative\n5:pids:/../../other\n0::/c d\n";
    struct cursor cursor = cursor_of(text, sizeof text - 1);
    struct cgrouppath_line line;
    assert_true(cgrouppath_next_line(&cursor, &line));
    assert_true(cursor_equals(&line.controllers, "cpu,cpuacct"));
    assert_true(cursor_equals(&line.path, "/a:b"));
    assert_true(cgrouppath_next_line(&cursor, &line));
    assert_true(cursor_equals(&line.controllers, ""));
    assert_true(cursor_equals(&line.path, "/c d"));
    assert_false(cgrouppath_next_line(&cursor, &line));
}

/* Where the tree's process 4242, or `cgroup`, has its numbers: "memory=<directory below fs/cgroup> …". */
static void expect_places(const char *tree, const char *cgroup, const char *name, const char *expected)
{
    char proc_path[PATH_MAX];
    char sys_path[PATH_MAX];
    (void)snprintf(proc_path, sizeof proc_path, "%s/%s/proc", RECORDED_DIR, tree);
    (void)snprintf(sys_path, sizeof sys_path, "%s/%s/sys", RECORDED_DIR, tree);
    struct cgrouppath path;
    struct error err = {0};
    if (cgrouppath_find(proc_path, sys_path, cgroup, &path, &err) < 0)
        fail_msg("%s: %s", tree, err.text);
    assert_string_equal(path.name, name);
    CLEANUP(buf_cleanup) struct buf places;
    buf_init(&places, 1 << 16);
    for (size_t i = 0; i < path.count; i++) {
        const char *controller = path.places[i].controller;
        buf_printf(&places, "%s=%s ", controller != NULL ? controller : "v2",
                   path.places[i].directory + strlen(sys_path) + strlen("/fs/cgroup"));
    }
    assert_string_equal(buf_string(&places), expected);
    cgrouppath_fini(&path);
}

static void job_of_a_process_is_found_in_all_three_kinds(void **state)
{
    (void)state;
    expect_places("cgroup-v2", "4242", "job_42", "v2=/system.slice/slurmstepd.scope/job_42 ");
    expect_places("cgroup-v1", "4242", "job_42",
                  "pids=/pids/slurm/uid_1000/job_42 memory=/memory/slurm/uid_1000/job_42 "
                  "cpuacct=/cpuacct/slurm/uid_1000/job_42 cpu=/cpu/slurm/uid_1000/job_42 "
                  "blkio=/blkio/slurm/uid_1000/job_42 ");
    /* cpu is that of all users, and left out */
    expect_places("cgroup-hybrid", "4242", "session-3.scope",
                  "pids=/pids/user.slice/user-1000.slice/session-3.scope "
                  "blkio=/blkio/user.slice/user-1000.slice/session-3.scope "
                  "memory=/memory/user.slice/user-1000.slice/session-3.scope "
                  "cpuacct=/cpuacct/user.slice/user-1000.slice/session-3.scope "
                  "v2=/unified/user.slice/user-1000.slice/session-3.scope ");
}

static void path_is_taken_with_or_without_where_it_is_mounted(void **state)
{
    (void)state;
    expect_places("cgroup-v2", "/system.slice/slurmstepd.scope/job_42", "job_42",
                  "v2=/system.slice/slurmstepd.scope/job_42 ");
    expect_places("cgroup-v2", RECORDED_DIR "/cgroup-v2/sys/fs/cgroup/system.slice/slurmstepd.scope/job_42/step_0",
                  "step_0", "v2=/system.slice/slurmstepd.scope/job_42/step_0 ");
    expect_places("cgroup-v2", "/", "/", "v2=/ ");
    expect_places("cgroup-v2", RECORDED_DIR "/cgroup-v2/sys/fs/cgroup", "/", "v2= ");
    expect_places("cgroup-v1", RECORDED_DIR "/cgroup-v1/sys/fs/cgroup/memory/slurm/uid_1000/job_42/step_0", "step_0",
                  "memory=/memory/slurm/uid_1000/job_42/step_0 ");
}

static void job_path_is_preferred_to_a_deeper_one(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    drive_write(&scratch, "proc/7/cgroup", "2:memory:/slurm/uid_0/job_7/step_1\n1:pids:/a/b/c/d/e/f\n0::/x/y/z/w/v\n");
    drive_write(&scratch, "sys/fs/cgroup/memory/slurm/uid_0/job_7/memory.usage_in_bytes", "1\n");
    drive_write(&scratch, "sys/fs/cgroup/pids/a/b/c/d/e/f/pids.current", "1\n");
    char proc_path[PATH_MAX];
    char sys_path[PATH_MAX];
    struct cgrouppath path;
    assert_int_equal(cgrouppath_find(scratch_path(&scratch, "proc", proc_path), scratch_path(&scratch, "sys", sys_path),
                                     "7", &path, NULL),
                     0);
    assert_string_equal(path.path, "/slurm/uid_0/job_7");
    assert_int_equal(path.count, 1);
    assert_string_equal(path.places[0].controller, "memory");
    cgrouppath_fini(&path);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *cgroup, *says;
    } cases[] = {
        {"99999", "looking for the cgroup of process '99999'"},
        {"/no/such", "no cgroup '/no/such' under '"},
        {"job_42", "'job_42' is no cgroup: give 'self', a pid, or a path that starts with '/'"},
        {"/a/../b", "is no cgroup"},
        {"", "'' is no cgroup"},
        {"1", "no directory of cgroup '/init.scope'"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct cgrouppath path;
        struct error err = {0};
        int rc = cgrouppath_find(RECORDED_DIR "/cgroup-v2/proc", RECORDED_DIR "/cgroup-v2/sys", cases[i].cgroup, &path,
                                 &err);
        if (rc != -ENODEV || strstr(err.text, cases[i].says) == NULL)
            fail_msg("'%s': %d, '%s'", cases[i].cgroup, rc, err.text);
        cgrouppath_fini(&path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_is_cut_out_of_a_path),
        cmocka_unit_test(lines_that_make_no_sense_are_skipped),
        cmocka_unit_test(job_of_a_process_is_found_in_all_three_kinds),
        cmocka_unit_test(path_is_taken_with_or_without_where_it_is_mounted),
        cmocka_unit_test(job_path_is_preferred_to_a_deeper_one),
        cmocka_unit_test(what_is_missing_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
