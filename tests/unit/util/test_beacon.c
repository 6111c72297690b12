/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/beacon.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/scratch.h"
#include "util/cleanup.h"

enum { FOREIGN_UID = 54321 };

static const struct beacon example = {
    .pid = 4711,
    .address = "127.0.0.1:1338",
    .http_socket = "/tmp/a=b.socket.http",
    .token_file = "/scratch/ann/.proxyprofiles/root.token",
};

static void what_was_written_is_read(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    struct beacon beacon = {0};
    struct error err = {0};
    assert_int_equal(beacon_write(scratch_path(&scratch, "s", path), &example, &err), 0);
    assert_int_equal(beacon_read(path, &beacon, &err), 0);
    assert_int_equal(beacon.pid, example.pid);
    assert_string_equal(beacon.address, example.address);
    assert_string_equal(beacon.http_socket, example.http_socket);
    assert_string_equal(beacon.token_file, example.token_file);
    beacon_remove(path);
    assert_int_equal(beacon_read(path, &beacon, &err), -ENOENT);
    assert_int_equal(scratch_entries(&scratch), 0);
    beacon_remove(path); /* none there: no harm */
}

static void field_that_would_be_two_lines_is_refused(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    struct beacon beacon = example;
    struct error err = {0};
    (void)snprintf(beacon.token_file, sizeof beacon.token_file, "/a\npid=1");
    assert_int_equal(beacon_write(scratch_path(&scratch, "s", path), &beacon, &err), -EINVAL);
    assert_non_null(strstr(err.text, "token_file"));
    assert_int_equal(scratch_entries(&scratch), 0);
}

static void file_that_no_proxy_wrote_is_refused_and_others_keys_are_passed_over(void **state)
{
    (void)state;
    static char long_value[BEACON_FIELD_BYTES + 32] = "pid=1\naddress=";
    memset(long_value + strlen(long_value), 'x', BEACON_FIELD_BYTES);
    const struct {
        const char *text;
        int rc;
    } cases[] = {
        {"", -EINVAL},
        {"address=127.0.0.1:1\n", -EINVAL},
        {"pid=0\n", -EINVAL},
        {"pid=-1\n", -EINVAL},
        {"pid=99999999999\n", -EINVAL},
        {"pid=12x\n", -EINVAL},
        {"hello\n", -EINVAL},
        {"pid=1\n\n", -EINVAL},
        {long_value, -EINVAL},
        {"pid=12", 0},
        {"version=2\npid=12\naddress=\nanything=else\n", 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
        char path[PATH_MAX];
        struct beacon beacon = {.pid = 7};
        struct error err = {0};
        scratch_write(&scratch, "s.beacon", cases[i].text, strlen(cases[i].text));
        int rc = beacon_read(scratch_path(&scratch, "s", path), &beacon, &err);
        if (rc != cases[i].rc)
            fail_msg("'%.40s': %d %s", cases[i].text, rc, err.text);
        assert_int_equal(beacon.pid, rc == 0 ? 12 : 7); /* untouched on failure */
    }
}

static void file_of_somebody_else_and_a_link_are_not_trusted(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    char link_path[PATH_MAX];
    struct beacon beacon = {0};
    scratch_write(&scratch, "s.beacon", "pid=1\n", 6);
    assert_int_equal(symlink(scratch_path(&scratch, "s.beacon", path), scratch_path(&scratch, "l.beacon", link_path)),
                     0);
    assert_int_equal(beacon_read(scratch_path(&scratch, "l", link_path), &beacon, NULL), -EPERM);
    if (geteuid() != 0)
        return; /* only root can give files away */
    assert_int_equal(chown(path, FOREIGN_UID, FOREIGN_UID), 0);
    assert_int_equal(beacon_read(scratch_path(&scratch, "s", path), &beacon, NULL), -EPERM);
}

static void socket_is_where_proxy_path_says_or_has_the_users_number(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, BEACON_TEXT_MAX_BYTES);
    assert_int_equal(setenv("PROXY_PATH", "/x/y", 1), 0);
    beacon_socket_path(&path);
    assert_string_equal(buf_string(&path), "/x/y");
    assert_int_equal(setenv("PROXY_PATH", "", 1), 0);
    char expected[64];
    (void)snprintf(expected, sizeof expected, "/tmp/metric-proxy-%u.socket", (unsigned)getuid());
    buf_reset(&path);
    beacon_socket_path(&path);
    assert_string_equal(buf_string(&path), expected);
    assert_int_equal(unsetenv("PROXY_PATH"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(field_that_would_be_two_lines_is_refused),
        cmocka_unit_test(file_that_no_proxy_wrote_is_refused_and_others_keys_are_passed_over),
        cmocka_unit_test(file_of_somebody_else_and_a_link_are_not_trusted),
        cmocka_unit_test(socket_is_where_proxy_path_says_or_has_the_users_number),
    };
    return cmocka_run_group_tests_name("beacon", tests, NULL, NULL);
}
