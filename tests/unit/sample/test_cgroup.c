/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/cgroup.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "starve.h"

/* The three trees tell the same job with the same numbers; what version 1 can't tell is marked. */
static const struct {
    const char *column;
    uint64_t number;
    bool is_of_v2;
} numbers[] = {
    {"cpu_usage_us", 5000000, false},
    {"cpu_user_us", 3000000, false},
    {"cpu_system_us", 2000000, false},
    {"cpu_throttled_us", 70000, false},
    {"cpu_throttled_periods", 7, false},
    {"memory_bytes", 1073741824, false},
    {"memory_peak_bytes", 2147483648, false},
    {"memory_limit_bytes", 4294967296, false},
    {"memory_anon_bytes", 900000000, false},
    {"memory_file_bytes", 100000000, false},
    {"memory_shmem_bytes", 4096, false},
    {"memory_dirty_bytes", 8192, false},
    {"page_faults", 123456, false},
    {"major_page_faults", 78, false},
    {"memory_limit_hits", 5, false},
    {"oom_kills", 1, false},
    {"io_bytes_read", 3000, false},
    {"io_bytes_written", 700, false},
    {"io_reads", 30, false},
    {"io_writes", 70, false},
    {"tasks", 17, false},
    {"cpu_pressure_some_us", 111, true},
    {"memory_pressure_some_us", 222, true},
    {"memory_pressure_full_us", 220, true},
    {"io_pressure_some_us", 333, true},
    {"io_pressure_full_us", 330, true},
};

static struct sample_config tree_config(const char *proc_path, const char *sys_path, const char *cgroup)
{
    return (struct sample_config){.proc_path = proc_path, .sys_path = sys_path, .mount_prefix = "", .cgroup = cgroup};
}

static void expect_numbers(const struct sample_table *table, const char *row, bool has_v2)
{
    assert_int_equal(table->rows_count, 1);
    assert_int_equal(table->columns_count, ARRAY_LENGTH(numbers));
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
        struct sample_value value = lookup_value(table, row, numbers[i].column);
        bool is_counter = table->columns[i].kind == SAMPLE_COUNTER;
        uint64_t number = is_counter ? value.raw : (uint64_t)value.integer;
        bool is_known = !numbers[i].is_of_v2 || has_v2;
        assert_string_equal(table->columns[i].name, numbers[i].column);
        if (value.is_known != is_known || (is_known && number != numbers[i].number))
            fail_msg("%s: %llu (%s)", numbers[i].column, (unsigned long long)number,
                     value.is_known ? "known" : "unknown");
    }
}

static void all_three_kinds_tell_the_same_of_a_job(void **state)
{
    (void)state;
    static const struct {
        const char *tree, *row, *label;
        bool has_v2;
    } trees[] = {
        {"cgroup-v2", "job_42", "/system.slice/slurmstepd.scope/job_42", true},
        {"cgroup-v1", "job_42", "/slurm/uid_1000/job_42", false},
        {"cgroup-hybrid", "session-3.scope", "/user.slice/user-1000.slice/session-3.scope", true},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(trees); i++) {
        char proc_path[PATH_MAX];
        char sys_path[PATH_MAX];
        (void)snprintf(proc_path, sizeof proc_path, "%s/%s/proc", RECORDED_DIR, trees[i].tree);
        (void)snprintf(sys_path, sizeof sys_path, "%s/%s/sys", RECORDED_DIR, trees[i].tree);
        struct sample_config config = tree_config(proc_path, sys_path, "4242");
        struct collector *collector = drive_open(&cgroup_collector, &config);
        const struct sample_table *table = drive_read(&cgroup_collector, collector, 0);
        expect_numbers(table, trees[i].row, trees[i].has_v2);
        assert_string_equal(table->rows[0]->label, trees[i].label);
        drive_expect_notes(&cgroup_collector, collector, "");
        cgroup_collector.close(collector);
    }
}

static void controllers_that_are_missing_are_said_once(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char sys_path[PATH_MAX];
    drive_write(&scratch, "sys/fs/cgroup/cgroup.controllers", "cpu\n");
    drive_write(&scratch, "sys/fs/cgroup/a/cpu.stat", "usage_usec 5\n");
    struct sample_config config = tree_config("/proc", scratch_path(&scratch, "sys", sys_path), "/a");
    struct collector *collector = drive_open(&cgroup_collector, &config);
    drive_expect_notes(&cgroup_collector, collector, ""); /* nothing has been read yet */
    (void)drive_read(&cgroup_collector, collector, 0);
    drive_expect_notes(&cgroup_collector, collector,
                       "no numbers of memory, io, pids for cgroup '/a': the controllers are not in use for it\n");
    (void)drive_read(&cgroup_collector, collector, 1);
    drive_expect_notes(&cgroup_collector, collector, "");
    cgroup_collector.close(collector);
}

static void cgroup_that_ends_takes_its_row_along(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char sys_path[PATH_MAX];
    char path[PATH_MAX];
    int64_t now_ns = clock_boot_ns();
    drive_write(&scratch, "sys/fs/cgroup/cgroup.controllers", "pids\n");
    drive_write(&scratch, "sys/fs/cgroup/a/pids.current", "5\n");
    struct sample_config config = tree_config("/proc", scratch_path(&scratch, "sys", sys_path), "/a");
    struct collector *collector = drive_open(&cgroup_collector, &config);
    assert_int_equal(drive_read(&cgroup_collector, collector, now_ns)->rows_count, 1);
    cgroup_collector.close(collector);

    /* In a recorded tree an open file can be read for ever. A directory that took its place can't: as when it is gone.
     */
    assert_int_equal(unlink(scratch_path(&scratch, "sys/fs/cgroup/a/pids.current", path)), 0);
    drive_write(&scratch, "sys/fs/cgroup/a/pids.current/x", "");
    collector = drive_open(&cgroup_collector, &config);
    assert_int_equal(drive_read(&cgroup_collector, collector, now_ns)->rows_count, 0);

    assert_int_equal(unlink(scratch_path(&scratch, "sys/fs/cgroup/a/pids.current/x", path)), 0);
    assert_int_equal(rmdir(scratch_path(&scratch, "sys/fs/cgroup/a/pids.current", path)), 0);
    drive_write(&scratch, "sys/fs/cgroup/a/pids.current", "6\n");
    assert_int_equal(drive_read(&cgroup_collector, collector, now_ns + CGROUP_RETRY_NS - 1)->rows_count, 0);
    const struct sample_table *table = drive_read(&cgroup_collector, collector, now_ns + CGROUP_RETRY_NS);
    assert_int_equal(lookup_value(table, "a", "tasks").integer, 6);
    cgroup_collector.close(collector);
}

/* Where this machine lets us make a cgroup. */
static bool make_cgroup(char *path, size_t size)
{
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory"};
    for (size_t i = 0; i < ARRAY_LENGTH(roots); i++) {
        struct stat status;
        char mark[PATH_MAX];
        (void)snprintf(mark, sizeof mark, "%s/cgroup.procs", roots[i]);
        (void)snprintf(path, size, "%s/cicada-test-%ld", roots[i], (long)getpid());
        if (stat(mark, &status) == 0 && mkdir(path, 0755) == 0)
            return true;
    }
    return false;
}

static void cgroup_of_this_machine_is_read_until_it_ends(void **state)
{
    (void)state;
    char path[PATH_MAX];
    if (!make_cgroup(path, sizeof path)) {
        print_message("skipped: needs to be allowed to make a cgroup\n");
        skip();
    }
    struct sample_config config = tree_config("/proc", "/sys", path);
    struct collector *collector = drive_open(&cgroup_collector, &config);
    int64_t now_ns = clock_boot_ns();
    size_t rows = drive_read(&cgroup_collector, collector, now_ns)->rows_count;
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rows, 1);
    assert_int_equal(drive_read(&cgroup_collector, collector, now_ns + 1)->rows_count, 0);
    assert_int_equal(drive_read(&cgroup_collector, collector, now_ns + 1 + CGROUP_RETRY_NS)->rows_count, 0);
    cgroup_collector.close(collector);
}

static void without_a_cgroup_there_is_no_collector(void **state)
{
    (void)state;
    struct sample_config config = tree_config("/proc", "/sys", NULL);
    assert_string_equal(drive_lacks(&cgroup_collector, &config), "no cgroup to watch is configured");
    config = tree_config(RECORDED_DIR "/cgroup-v2/proc", RECORDED_DIR "/cgroup-v2/sys", "/system.slice");
    assert_string_equal(drive_lacks(&cgroup_collector, &config), "cgroup '/system.slice' has no file that we know");
}

static void memory_that_runs_out_spoils_one_tick_at_most(void **state)
{
    (void)state;
    struct sample_config config = tree_config(RECORDED_DIR "/cgroup-v2/proc", RECORDED_DIR "/cgroup-v2/sys", "4242");
    starve_open(&cgroup_collector, &config);
    starve_read(&cgroup_collector, &config, "job_42");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_three_kinds_tell_the_same_of_a_job),
        cmocka_unit_test(controllers_that_are_missing_are_said_once),
        cmocka_unit_test(cgroup_that_ends_takes_its_row_along),
        cmocka_unit_test(cgroup_of_this_machine_is_read_until_it_ends),
        cmocka_unit_test(without_a_cgroup_there_is_no_collector),
        cmocka_unit_test(memory_that_runs_out_spoils_one_tick_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
