/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/retention.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/random.h"
#include "support/scratch.h"
#include "util/clock.h"
#include "util/file.h"

enum { ROUNDS = 2000, FILES_MAX = 30 };

static void the_oldest_go_and_what_is_needed_stays(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t keep_ms;
        uint64_t keep_bytes;
        const char *go; /* of files that changed at 10, 20, 30, 40; 100 bytes each; the second is needed */
    } cases[] = {
        {"no limits", 0, 0, "...."},           {"by age", 25, 0, "x.x."},  {"all are young", 1000, 0, "...."},
        {"by size", 0, 250, "x.x."},           {"nearly", 0, 400, "...."}, {"one too many", 0, 399, "x..."},
        {"only the needed one", 0, 1, "x.xx"}, {"both", 45, 300, "x..."},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct retention_file files[] = {{.changed_wall_ms = 10, .size_bytes = 100},
                                         {.changed_wall_ms = 20, .size_bytes = 100, .is_needed = true},
                                         {.changed_wall_ms = 30, .size_bytes = 100},
                                         {.changed_wall_ms = 40, .size_bytes = 100}};
        size_t chosen = retention_choose(files, 4, 56, cases[i].keep_ms, cases[i].keep_bytes);
        size_t expected = 0;
        for (size_t k = 0; k < 4; k++) {
            expected += cases[i].go[k] == 'x';
            if (files[k].must_go != (cases[i].go[k] == 'x'))
                fail_msg("%s: file %zu", cases[i].name, k);
        }
        assert_int_equal(chosen, expected);
    }
}

static void never_more_goes_than_must(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct retention_file files[FILES_MAX];
        size_t count = random_below(&random, FILES_MAX);
        uint64_t kept_bytes = 0;
        uint64_t limit = random_below(&random, 1000);
        for (size_t i = 0; i < count; i++)
            files[i] = (struct retention_file){.changed_wall_ms = (int64_t)i,
                                               .size_bytes = random_below(&random, 100),
                                               .is_needed = random_below(&random, 4) == 0};
        (void)retention_choose(files, count, 0, 0, limit);
        uint64_t last_gone_bytes = 0;
        for (size_t i = 0; i < count; i++) {
            assert_false(files[i].must_go && files[i].is_needed);
            if (files[i].must_go)
                last_gone_bytes = files[i].size_bytes;
            else
                kept_bytes += files[i].size_bytes;
        }
        if (last_gone_bytes > 0 && limit > 0)
            assert_true(kept_bytes + last_gone_bytes > limit);
    }
}

/* A prefix with profiles, in a loop. */
struct setting {
    uv_loop_t loop;
    struct scratch scratch;
    struct jobs *jobs;
    struct profiles *profiles;
    struct retention *retention;
};

static void put_profile(const struct setting *setting, const char *id, int64_t age_days)
{
    char name[100];
    char path[PATH_MAX];
    char text[200];
    (void)snprintf(name, sizeof name, "profiles/%s.profile", id);
    (void)snprintf(text, sizeof text, "{\"desc\":{\"jobid\":\"%s\",\"start_time\":%lld},\"counters\":[]}", id,
                   (long long)age_days);
    scratch_write(&setting->scratch, name, text, strlen(text));
    time_t changed = (time_t)(clock_wall_ns() / CLOCK_NS_PER_SECOND - age_days * 86400);
    const struct timespec times[2] = {{.tv_sec = changed}, {.tv_sec = changed}};
    assert_int_equal(utimensat(AT_FDCWD, scratch_path(&setting->scratch, name, path), times, 0), 0);
}

static void set_up(struct setting *setting)
{
    static const struct jobs_config config = {
        .hostname = "host", .jobs_max = 10, .metrics_per_job_max = 10, .metrics_max = 100, .linger_ns = 1};
    *setting = (struct setting){.scratch = scratch_new()};
    char path[PATH_MAX];
    assert_int_equal(uv_loop_init(&setting->loop), 0);
    assert_int_equal(jobs_new(&config, &setting->jobs, NULL), 0);
    assert_int_equal(file_make_directories(scratch_path(&setting->scratch, "profiles", path), 0755, NULL), 0);
    assert_int_equal(file_make_directories(scratch_path(&setting->scratch, "traces", path), 0755, NULL), 0);
}

static void run(struct setting *setting, unsigned days, unsigned mb)
{
    assert_int_equal(profiles_new(&setting->loop, setting->scratch.path, &setting->profiles, NULL), 0);
    profiles_load(setting->profiles);
    const struct retention_config config = {.loop = &setting->loop,
                                            .jobs = setting->jobs,
                                            .profiles = setting->profiles,
                                            .prefix = setting->scratch.path,
                                            .days = days,
                                            .mb = mb};
    assert_int_equal(retention_open(&config, &setting->retention, NULL), 0);
    assert_int_equal(uv_run(&setting->loop, UV_RUN_DEFAULT), 0);
    retention_tick(setting->retention, 1, clock_wall_ns() / CLOCK_NS_PER_MS);
    assert_int_equal(uv_run(&setting->loop, UV_RUN_DEFAULT), 0);
}

static void tear_down(struct setting *setting)
{
    retention_free(setting->retention);
    profiles_free(setting->profiles);
    jobs_free(setting->jobs);
    assert_int_equal(uv_loop_close(&setting->loop), 0);
    scratch_cleanup(&setting->scratch);
}

static bool has_file(const struct setting *setting, const char *name)
{
    char path[PATH_MAX];
    return access(scratch_path(&setting->scratch, name, path), F_OK) == 0;
}

static void old_profiles_go_but_not_that_of_a_job_that_is_here(void **state)
{
    (void)state;
    struct setting setting;
    set_up(&setting);
    put_profile(&setting, "old", 11);
    put_profile(&setting, "running", 12);
    put_profile(&setting, "young", 9);
    scratch_write(&setting.scratch, "profiles/x.jsonl", "{}\n", 3);
    struct metric_job description;
    struct job *job;
    assert_int_equal(metric_job_init(&description, "running", NULL), 0);
    assert_int_equal(jobs_join(setting.jobs, 0, &description, 0, 1, &job, NULL), 0);
    metric_job_fini(&description);
    run(&setting, 10, 0);
    assert_false(has_file(&setting, "profiles/old.profile"));
    assert_true(has_file(&setting, "profiles/running.profile"));
    assert_true(has_file(&setting, "profiles/young.profile"));
    assert_true(has_file(&setting, "profiles/x.jsonl"));
    assert_int_equal(profiles_count(setting.profiles), 2);
    assert_null(profiles_find(setting.profiles, "old"));
    tear_down(&setting);
}

static void past_the_size_the_oldest_go(void **state)
{
    (void)state;
    static char large[700 << 10];
    struct setting setting;
    set_up(&setting);
    for (int i = 1; i <= 3; i++) {
        char name[16];
        char path[PATH_MAX];
        (void)snprintf(name, sizeof name, "job%d", i);
        put_profile(&setting, name, i);
        (void)snprintf(name, sizeof name, "profiles/job%d", i);
        char whole[32];
        (void)snprintf(whole, sizeof whole, "%s.profile", name);
        memset(large, ' ', sizeof large);
        int fd = open(scratch_path(&setting.scratch, whole, path), O_WRONLY | O_APPEND);
        struct stat info;
        assert_int_equal(fstat(fd, &info), 0);
        assert_int_equal(file_write_all(fd, large, sizeof large, NULL), 0);
        const struct timespec times[2] = {info.st_mtim, info.st_mtim};
        assert_int_equal(futimens(fd, times), 0);
        close(fd);
    }
    run(&setting, 0, 1);
    assert_true(has_file(&setting, "profiles/job1.profile"));
    assert_false(has_file(&setting, "profiles/job2.profile"));
    assert_false(has_file(&setting, "profiles/job3.profile"));
    tear_down(&setting);
}

static void traces_of_another_kind_are_set_aside_once(void **state)
{
    (void)state;
    static const char ours[100] = "SQLite format 3";
    struct setting setting;
    set_up(&setting);
    scratch_write(&setting.scratch, "traces/42.trace", "binary rubbish of some length", 29);
    scratch_write(&setting.scratch, "traces/7.trace", "x", 1);
    scratch_write(&setting.scratch, "traces/8.trace", "", 0);
    scratch_write(&setting.scratch, "traces/ours.trace", ours, sizeof ours);
    scratch_write(&setting.scratch, "traces/note.txt", "x", 1);
    run(&setting, 1, 1);
    assert_true(has_file(&setting, "traces/42.trace.foreign"));
    assert_true(has_file(&setting, "traces/7.trace.foreign"));
    assert_true(has_file(&setting, "traces/8.trace"));
    assert_true(has_file(&setting, "traces/ours.trace"));
    assert_true(has_file(&setting, "traces/note.txt"));
    assert_false(has_file(&setting, "traces/42.trace"));
    tear_down(&setting);
}

static void it_may_end_while_a_worker_is_at_it(void **state)
{
    (void)state;
    struct setting setting;
    set_up(&setting);
    scratch_write(&setting.scratch, "traces/42.trace", "x", 1);
    assert_int_equal(profiles_new(&setting.loop, setting.scratch.path, &setting.profiles, NULL), 0);
    const struct retention_config config = {
        .loop = &setting.loop, .jobs = setting.jobs, .profiles = setting.profiles, .prefix = setting.scratch.path};
    assert_int_equal(retention_open(&config, &setting.retention, NULL), 0);
    retention_free(setting.retention);
    setting.retention = NULL;
    assert_int_equal(uv_run(&setting.loop, UV_RUN_DEFAULT), 0);
    tear_down(&setting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_go_and_what_is_needed_stays),
        cmocka_unit_test(never_more_goes_than_must),
        cmocka_unit_test(old_profiles_go_but_not_that_of_a_job_that_is_here),
        cmocka_unit_test(past_the_size_the_oldest_go),
        cmocka_unit_test(traces_of_another_kind_are_set_aside_once),
        cmocka_unit_test(it_may_end_while_a_worker_is_at_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
