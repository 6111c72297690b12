/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/claim.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/scratch.h"

/* Claims are the user's, on the whole node: a test's names must be its own. */
static struct scratch own;

static int test_setup(void **state)
{
    (void)state;
    own = scratch_new();
    return 0;
}

static int test_teardown(void **state)
{
    (void)state;
    scratch_cleanup(&own);
    return 0;
}

static void second_claim_is_refused_until_the_first_is_dropped(void **state)
{
    (void)state;
    struct claim first = CLAIM_NONE, second = CLAIM_NONE;
    struct error err = {0};
    assert_int_equal(claim_take("test", own.path, 0, &first, &err), 0);
    assert_int_equal(claim_take("test", own.path, 0, &second, &err), -EWOULDBLOCK);
    assert_null(second.path);
    assert_int_equal(claim_take("other", own.path, 0, &second, &err), 0); /* another kind, another claim */
    claim_drop(&second);
    claim_drop(&first);
    assert_int_equal(claim_take("test", own.path, 0, &second, &err), 0);
    claim_drop(&second);
}

static void dropping_removes_the_file_and_dropping_nothing_is_fine(void **state)
{
    (void)state;
    struct claim claim = CLAIM_NONE;
    claim_drop(&claim);
    assert_int_equal(claim_take("test", own.path, 0, &claim, NULL), 0);
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s", claim.path);
    assert_int_equal(access(path, F_OK), 0);
    claim_drop(&claim);
    assert_int_equal(access(path, F_OK), -1);
    assert_null(claim.path);
    claim_drop(&claim);
}

static void anybody_can_see_whether_a_claim_is_held(void **state)
{
    (void)state;
    int fd = -1;
    assert_int_equal(claim_find("test", own.path, &fd, NULL), -ENOENT);
    struct claim claim = CLAIM_NONE;
    assert_int_equal(claim_take("test", own.path, 0, &claim, NULL), 0);
    assert_int_equal(claim_find("test", own.path, &fd, NULL), 0);
    assert_true(claim_is_held(fd));
    claim_drop(&claim);
    assert_false(claim_is_held(fd));
    close(fd);
}

/* A child that takes the claim and dies. */
static void claim_in_a_child(int death)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct claim claim = CLAIM_NONE;
        int rc = claim_take("test", own.path, 0, &claim, NULL);
        if (rc == 0 && death != 0)
            (void)raise(death);
        _exit(rc == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(death != 0 ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void claim_of_a_killed_owner_is_taken_over(void **state)
{
    (void)state;
    claim_in_a_child(SIGKILL);
    int fd = -1;
    assert_int_equal(claim_find("test", own.path, &fd, NULL), 0); /* its file is left */
    assert_false(claim_is_held(fd));
    close(fd);
    struct claim claim = CLAIM_NONE;
    assert_int_equal(claim_take("test", own.path, 0, &claim, NULL), 0);
    claim_drop(&claim);
}

static void claim_is_not_inherited(void **state)
{
    (void)state;
    struct claim claim = CLAIM_NONE;
    assert_int_equal(claim_take("test", own.path, 0, &claim, NULL), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct claim again = CLAIM_NONE;
        _exit(claim_take("test", own.path, 0, &again, NULL) == -EWOULDBLOCK ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    claim_drop(&claim);
}

/* As when a thread of the process hangs in the kernel, and keeps its descriptors with it. */
static void dropped_claim_is_free_though_its_descriptor_is_still_open_somewhere(void **state)
{
    (void)state;
    struct claim claim = CLAIM_NONE, next = CLAIM_NONE;
    assert_int_equal(claim_take("test", own.path, 0, &claim, NULL), 0);
    int fd = -1;
    assert_int_equal(claim_find("test", own.path, &fd, NULL), 0);
    int copy = dup(claim.fd);
    assert_true(copy >= 0);
    claim_drop(&claim);
    assert_false(claim_is_held(fd));
    assert_int_equal(claim_take("test", own.path, 0, &next, NULL), 0);
    claim_drop(&next);
    close(copy);
    close(fd);
}

static void waiting_for_a_claim_ends_when_it_is_given_up_or_the_time_is_over(void **state)
{
    (void)state;
    struct claim claim = CLAIM_NONE, waiting = CLAIM_NONE;
    assert_int_equal(claim_take("test", own.path, 0, &claim, NULL), 0);
    assert_int_equal(claim_take("test", own.path, 20, &waiting, NULL), -EWOULDBLOCK);
    pid_t pid = fork();
    if (pid == 0) {
        struct claim other = CLAIM_NONE;
        _exit(claim_take("test", own.path, 20000, &other, NULL) == 0 ? 0 : 1);
    }
    claim_drop(&claim);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void removed_file_is_taken_anew_unless_somebody_else_has_it(void **state)
{
    (void)state;
    struct claim claim = CLAIM_NONE;
    assert_int_equal(claim_take("test", own.path, 0, &claim, NULL), 0);
    int fd = claim.fd;
    bool is_new;
    assert_true(claim_renew(&claim, &is_new));
    assert_false(is_new);
    assert_int_equal(unlink(claim.path), 0);
    assert_true(claim_renew(&claim, &is_new));
    assert_true(is_new);
    assert_int_equal(claim.fd, fd);
    struct claim second = CLAIM_NONE;
    assert_int_equal(claim_take("test", own.path, 0, &second, NULL), -EWOULDBLOCK);

    assert_int_equal(unlink(claim.path), 0);
    assert_int_equal(claim_take("test", own.path, 0, &second, NULL), 0);
    assert_false(claim_renew(&claim, &is_new));
    claim_drop(&claim); /* leaves the file of the new owner alone */
    assert_int_equal(access(second.path, F_OK), 0);
    claim_drop(&second);
}

/* Many processes take and drop the same claim: never do two have it. */
static void claims_that_come_and_go_are_never_held_twice(void **state)
{
    (void)state;
    enum { PROCESSES = 4, TURNS = 200 };
    char path[PATH_MAX];
    scratch_write(&own, "owner", "", 0);
    (void)scratch_path(&own, "owner", path);
    pid_t pids[PROCESSES];
    for (size_t i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] != 0)
            continue;
        char lock[PATH_MAX + 8];
        (void)snprintf(lock, sizeof lock, "%s.lock", path);
        for (int turn = 0; turn < TURNS; turn++) {
            struct claim claim = CLAIM_NONE;
            int rc = -EWOULDBLOCK;
            while (rc == -EWOULDBLOCK) /* without a pause, so that they meet as often as can be */
                rc = claim_take("test", own.path, 0, &claim, NULL);
            if (rc != 0 || mkdir(lock, 0700) != 0)
                _exit(1); /* somebody else is in */
            if (rmdir(lock) != 0)
                _exit(2);
            claim_drop(&claim);
        }
        _exit(0);
    }
    for (size_t i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(second_claim_is_refused_until_the_first_is_dropped, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(dropping_removes_the_file_and_dropping_nothing_is_fine, test_setup,
                                        test_teardown),
        cmocka_unit_test_setup_teardown(anybody_can_see_whether_a_claim_is_held, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(claim_of_a_killed_owner_is_taken_over, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(claim_is_not_inherited, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(dropped_claim_is_free_though_its_descriptor_is_still_open_somewhere, test_setup,
                                        test_teardown),
        cmocka_unit_test_setup_teardown(waiting_for_a_claim_ends_when_it_is_given_up_or_the_time_is_over, test_setup,
                                        test_teardown),
        cmocka_unit_test_setup_teardown(removed_file_is_taken_anew_unless_somebody_else_has_it, test_setup,
                                        test_teardown),
        cmocka_unit_test_setup_teardown(claims_that_come_and_go_are_never_held_twice, test_setup, test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
