/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/paths.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/scratch.h"

static void short_host_ends_at_the_first_dot(void **state)
{
    (void)state;
    static const char long_name[] = "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg"; /* 64 */
    static const struct {
        const char *full, *host;
    } cases[] = {{"n1", "n1"},
                 {"n1.cluster.example", "n1"},
                 {"", "localhost"},
                 {".", "localhost"},
                 {".example", "localhost"},
                 {"a b", "a b"},
                 {long_name, long_name},
                 {"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggghhh", long_name}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char host[PATHS_HOST_MAX_BYTES + 1];
        memset(host, 'x', sizeof host);
        paths_short_host(cases[i].full, host);
        assert_string_equal(host, cases[i].host);
    }
}

static void files_are_named_after_host_and_log_dir(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char log_dir[PATH_MAX];
    (void)scratch_path(&scratch, "a/../a//b/", log_dir);
    struct paths paths;
    struct error err = {0};
    char real[PATH_MAX];
    assert_int_equal(mkdir(scratch_path(&scratch, "a", real), 0700), 0);
    assert_int_equal(paths_init(&paths, log_dir, true, &err), 0);
    assert_string_equal(paths.log_dir, scratch_path(&scratch, "a/b", real));
    char expected[PATH_MAX + 128];
    (void)snprintf(expected, sizeof expected, "%s/dftracer_server_%s.pid", real, paths.host_file);
    assert_string_equal(paths.pid_file, expected);
    assert_non_null(strstr(paths.out_file, ".out"));
    assert_non_null(strstr(paths.err_file, ".err"));
    paths_fini(&paths);
}

static void missing_log_dir_has_names_when_it_is_not_to_be_made(void **state)
{
    (void)state;
    struct paths paths;
    assert_int_equal(paths_init(&paths, "/nope/log", false, NULL), 0);
    assert_non_null(strstr(paths.pid_file, "/nope/log/dftracer_server_"));
    paths_fini(&paths);
}

static void log_dir_that_is_a_file_is_named(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    scratch_write(&scratch, "file", "x", 1);
    char path[PATH_MAX];
    struct paths paths = {0};
    struct error err = {0};
    assert_int_equal(paths_init(&paths, scratch_path(&scratch, "file", path), true, &err), -ENOTDIR);
    assert_non_null(strstr(err.text, path));
    assert_null(paths.pid_file);
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct paths paths = {0};
        allocation_fail_at(n);
        int rc = paths_init(&paths, "/tmp", false, NULL);
        if (!allocation_stop()) {
            assert_int_equal(rc, 0);
            paths_fini(&paths);
            break;
        }
        if (rc == 0) /* asprintf() allocates inside the C library, which doesn't fail here */
            paths_fini(&paths);
        else
            assert_int_equal(rc, -ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_host_ends_at_the_first_dot),
        cmocka_unit_test(files_are_named_after_host_and_log_dir),
        cmocka_unit_test(missing_log_dir_has_names_when_it_is_not_to_be_made),
        cmocka_unit_test(log_dir_that_is_a_file_is_named),
        cmocka_unit_test(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
