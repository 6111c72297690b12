/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/child.h"
#include "support/scratch.h"

enum { WAIT_MS = 20000, TEXT_MAX_BYTES = 65536 };

/* What a daemon does between its birth and its end. */
typedef void daemon_body(int pipe_fd);

/* In the starter: the daemon's word, as daemon_wait() gives it. */
static int run_daemon(daemon_body *body, int64_t timeout_ms, struct buf *text, struct error *err)
{
    enum daemon_side side;
    int pipe_fd = -1;
    assert_int_equal(daemon_spawn(&side, &pipe_fd, err), 0);
    if (side == DAEMON_CHILD) {
        body(pipe_fd);
        _exit(0);
    }
    int rc = daemon_wait(pipe_fd, timeout_ms, text, err);
    close(pipe_fd);
    return rc;
}

static void says_ready(int pipe_fd)
{
    (void)daemon_report(pipe_fd, true, "first line\nsecond line\n", NULL);
}

static void says_why_not(int pipe_fd)
{
    (void)daemon_report(pipe_fd, false, "the disk is full", NULL);
}

static void dies(int pipe_fd)
{
    (void)pipe_fd;
    (void)raise(SIGKILL);
}

static void says_half_a_word(int pipe_fd)
{
    (void)!write(pipe_fd, "rea", 3);
}

static void starter_hears_that_the_daemon_is_ready(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    assert_int_equal(run_daemon(says_ready, WAIT_MS, &text, NULL), 0);
    assert_string_equal(buf_string(&text), "first line\nsecond line\n");
}

static void starter_hears_the_daemons_own_reason(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    struct error err = {0};
    assert_int_equal(run_daemon(says_why_not, WAIT_MS, &text, &err), -ECANCELED);
    assert_string_equal(err.text, "the disk is full");
    assert_int_equal(text.length, 0);
}

static void starter_notices_a_daemon_that_dies_without_a_word(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    struct error err = {0};
    assert_int_equal(run_daemon(dies, WAIT_MS, &text, &err), -ECHILD);
    assert_non_null(strstr(err.text, "died before it was ready"));
    assert_int_equal(run_daemon(says_half_a_word, WAIT_MS, &text, &err), -ECHILD);
}

/* Waits for the starter's end of the pipe to close, and leaves a note of what its own word met. */
static char note_path[PATH_MAX];

static void speaks_too_late(int pipe_fd)
{
    (void)signal(SIGPIPE, SIG_IGN);
    struct stat status;
    while (stat(note_path, &status) < 0)
        (void)usleep(1000);
    int rc = daemon_report(pipe_fd, true, "", NULL);
    int fd = open(note_path, O_WRONLY | O_CLOEXEC);
    (void)!write(fd, rc == -EPIPE ? "EPIPE" : "other", 5);
    close(fd);
}

static void starter_that_gives_up_is_no_longer_spoken_to(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    (void)scratch_path(&scratch, "note", note_path);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    struct error err = {0};
    assert_int_equal(run_daemon(speaks_too_late, 20, &text, &err), -ETIMEDOUT);
    assert_non_null(strstr(err.text, "was not ready within"));
    scratch_write(&scratch, "note", "", 0);
    struct stat status = {0};
    for (int i = 0; i < WAIT_MS && status.st_size == 0; i++) {
        assert_int_equal(stat(note_path, &status), 0);
        (void)usleep(1000);
    }
    char note[6] = "";
    CLEANUP(fd_cleanup) int fd = open(note_path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, note, 5), 5);
    assert_string_equal(note, "EPIPE");
}

static bool has_no_other_descriptor(int pipe_fd)
{
    for (int fd = STDERR_FILENO + 1; fd < 256; fd++) {
        if (fd != pipe_fd && fcntl(fd, F_GETFD) >= 0)
            return false;
    }
    return true;
}

static pid_t starter_session;

/* Says what of the starter has come along. */
static void looks_at_itself(int pipe_fd)
{
    char here[PATH_MAX];
    sigset_t blocked;
    struct sigaction hup;
    (void)sigprocmask(SIG_BLOCK, NULL, &blocked);
    (void)sigaction(SIGHUP, NULL, &hup);
    bool is_right = has_no_other_descriptor(pipe_fd) && getcwd(here, sizeof here) != NULL && strcmp(here, "/") == 0 &&
                    getsid(0) != getpid() && getsid(0) != starter_session && sigismember(&blocked, SIGTERM) == 0 &&
                    hup.sa_handler == SIG_DFL && open("/dev/tty", O_RDWR | O_CLOEXEC) < 0;
    (void)daemon_report(pipe_fd, is_right, is_right ? "" : "something has come along", NULL);
}

/* A kernel before 5.9, when it is wanted. */
static bool is_old_kernel;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (is_old_kernel && number == SYS_close_range) {
        errno = ENOSYS;
        return -1;
    }
    return __real_syscall(number, a, b, c, d, e, f);
}

static void assert_nothing_comes_along(void)
{
    starter_session = getsid(0);
    int inherited = dup2(STDOUT_FILENO, 77); /* not close-on-exec, as a launcher leaves it */
    assert_int_equal(inherited, 77);
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &term, NULL), 0);
    (void)signal(SIGHUP, SIG_IGN); /* nohup */
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    struct error err = {0};
    int rc = run_daemon(looks_at_itself, WAIT_MS, &text, &err);
    (void)signal(SIGHUP, SIG_DFL);
    assert_int_equal(sigprocmask(SIG_UNBLOCK, &term, NULL), 0);
    close(inherited);
    assert_int_equal(rc, 0);
}

static void nothing_of_the_starter_comes_along(void **state)
{
    (void)state;
    assert_nothing_comes_along();
}

static void nothing_comes_along_on_an_old_kernel_either(void **state)
{
    (void)state;
    is_old_kernel = true;
    assert_nothing_comes_along();
    is_old_kernel = false;
}

static int redirects(void *context)
{
    const struct scratch *scratch = context;
    char out[PATH_MAX], err_path[PATH_MAX];
    (void)scratch_path(scratch, "out", out);
    (void)scratch_path(scratch, "err", err_path);
    CHILD_CHECK(daemon_redirect(out, err_path, NULL) == 0);
    CHILD_CHECK(write(STDOUT_FILENO, "o", 1) == 1 && write(STDERR_FILENO, "e", 1) == 1);
    CHILD_CHECK(rename(out, err_path) == 0);
    CHILD_CHECK(daemon_redirect(out, err_path, NULL) == 0);
    CHILD_CHECK(write(STDOUT_FILENO, "oo", 2) == 2 && write(STDERR_FILENO, "ee", 2) == 2);
    struct stat status;
    CHILD_CHECK(stat(out, &status) == 0 && status.st_size == 2);
    CHILD_CHECK(stat(err_path, &status) == 0 && status.st_size == 3); /* what was there stays */
    struct error err = {0};
    CHILD_CHECK(daemon_redirect("/nope/out", err_path, &err) == -ENOENT);
    CHILD_CHECK(strstr(err.text, "'/nope/out'") != NULL);
    return 0;
}

static void redirection_appends_and_may_be_repeated(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    child_run(redirects, &scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starter_hears_that_the_daemon_is_ready),
        cmocka_unit_test(starter_hears_the_daemons_own_reason),
        cmocka_unit_test(starter_notices_a_daemon_that_dies_without_a_word),
        cmocka_unit_test(starter_that_gives_up_is_no_longer_spoken_to),
        cmocka_unit_test(nothing_of_the_starter_comes_along),
        cmocka_unit_test(nothing_comes_along_on_an_old_kernel_either),
        cmocka_unit_test(redirection_appends_and_may_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
