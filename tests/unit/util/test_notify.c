/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/notify.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/scratch.h"

/* A manager's socket; `name` as in NOTIFY_SOCKET. */
static int manager_open(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    assert_true(length < sizeof address.sun_path);
    memcpy(address.sun_path, name, length);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, bytes), 0);
    return fd;
}

static void assert_hears(int fd, const char *expected)
{
    char text[256];
    ssize_t got = read(fd, text, sizeof text);
    assert_int_equal(got, strlen(expected));
    assert_memory_equal(text, expected, strlen(expected));
}

static void word_arrives_by_path_and_by_abstract_name(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char names[2][PATH_MAX];
    (void)scratch_path(&scratch, "socket", names[0]);
    (void)snprintf(names[1], sizeof names[1], "@cicada-test-%d", (int)getpid());
    for (size_t i = 0; i < 2; i++) {
        CLEANUP(fd_cleanup) int fd = manager_open(names[i]);
        assert_int_equal(notify_send(names[i], "READY=1\nSTATUS=fine", NULL), 0);
        assert_hears(fd, "READY=1\nSTATUS=fine");
    }
}

static void without_a_manager_nothing_is_sent(void **state)
{
    (void)state;
    assert_int_equal(notify_send(NULL, "READY=1", NULL), 0);
}

static void name_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    char longest[200];
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    const char *const names[] = {"", "relative", "@", "/", longest};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct error err = {0};
        assert_int_equal(notify_send(names[i], "READY=1", &err), -EINVAL);
        assert_non_null(strstr(err.text, "NOTIFY_SOCKET"));
    }
}

static void manager_that_is_not_there_or_does_not_listen_is_not_waited_for(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(notify_send("/nope/socket", "READY=1", &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nope/socket"));
    char name[64];
    (void)snprintf(name, sizeof name, "@cicada-test-%d", (int)getpid());
    CLEANUP(fd_cleanup) int fd = manager_open(name);
    int rc = 0;
    for (int i = 0; rc == 0 && i < 100000; i++)
        rc = notify_send(name, "STATUS=again", NULL);
    assert_int_equal(rc, -EAGAIN); /* its queue is full */
    assert_true(fd >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(word_arrives_by_path_and_by_abstract_name),
        cmocka_unit_test(without_a_manager_nothing_is_sent),
        cmocka_unit_test(name_that_makes_no_sense_is_refused),
        cmocka_unit_test(manager_that_is_not_there_or_does_not_listen_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
