/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/cursor.h"
#include "util/file.h"

enum { DAEMON_LOG_MODE = 0644, DAEMON_WORD_MAX_BYTES = 16384 };

static const char daemon_ready_word[] = "ready\n";
static const char daemon_failed_word[] = "failed\n";

/* What the starter's parent left open must not stay open in the daemon: whoever waits for the end of a pipe would wait
 * for the daemon's. `kept_fd` stays, and 0 to 2 until they are redirected. */
static void daemon_close_inherited(int kept_fd)
{
    unsigned kept = (unsigned)kept_fd;
    if ((kept == STDERR_FILENO + 1 || syscall(SYS_close_range, STDERR_FILENO + 1, kept - 1, 0) == 0) &&
        syscall(SYS_close_range, kept + 1, ~0U, 0) == 0)
        return;
    /* Before Linux 5.9: one by one those that are open. The limit of their number may be a thousand million. */
    CLEANUP(dir_cleanup) DIR *open_fds = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (open_fds != NULL && (entry = readdir(open_fds)) != NULL) {
        struct cursor name = cursor_of(entry->d_name, strlen(entry->d_name));
        uint64_t fd;
        if (cursor_u64(&name, &fd) && fd > STDERR_FILENO && fd != kept && fd != (uint64_t)dirfd(open_fds))
            close((int)fd);
    }
}

/* nohup and others hand down ignored signals, and a shell may block some. */
static void daemon_reset_signals(void)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    for (int number = 1; number < SIGRTMAX; number++)
        (void)sigaction(number, &usual, NULL); /* KILL and STOP can't be set, and needn't be */
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* can't fail with a valid set */
}

static int daemon_become(int pipe_fd, struct error *err)
{
    daemon_close_inherited(pipe_fd);
    daemon_reset_signals();
    CLEANUP(fd_cleanup) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0)
        return error_errno(err, "opening /dev/null");
    if (chdir("/") < 0) /* else the starter's directory could not be unmounted */
        return error_errno(err, "going to '/'");
    return 0;
}

int daemon_spawn(enum daemon_side *out_side, int *out_pipe, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, "making a pipe");
    pid_t child = fork();
    if (child < 0) {
        int rc = error_errno(err, "starting a process");
        close(ends[0]);
        close(ends[1]);
        return rc;
    }
    if (child > 0) {
        close(ends[1]);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
        *out_side = DAEMON_STARTER;
        *out_pipe = ends[0];
        return 0;
    }

    close(ends[0]);
    (void)setsid(); /* a new process leads no group, so this can't fail */
    pid_t grandchild = fork();
    if (grandchild != 0)
        _exit(grandchild < 0); /* without a grandchild the pipe ends, and the starter says so */
    *out_side = DAEMON_CHILD;
    *out_pipe = ends[1];
    return daemon_become(ends[1], err);
}

int daemon_report(int pipe_fd, bool is_ready, const char *text, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf word;
    buf_init(&word, DAEMON_WORD_MAX_BYTES);
    buf_text(&word, is_ready ? daemon_ready_word : daemon_failed_word);
    buf_text(&word, text);
    int rc = file_write_all(pipe_fd, word.data, word.length, err);
    if (is_ready)
        close(pipe_fd);
    return rc;
}

/* Everything up to the end of the pipe. */
static int daemon_read(int pipe_fd, int64_t timeout_ms, struct buf *word, struct error *err)
{
    int64_t deadline_ns = clock_mono_ns() + timeout_ms * CLOCK_NS_PER_MS;
    for (;;) {
        int64_t left_ms = (deadline_ns - clock_mono_ns()) / CLOCK_NS_PER_MS;
        struct pollfd wanted = {.fd = pipe_fd, .events = POLLIN};
        int ready = poll(&wanted, 1, left_ms > 0 ? (int)left_ms : 0);
        if (ready < 0 && errno != EINTR)
            return error_errno(err, "waiting for the daemon");
        if (ready == 0)
            return error_set(err, -ETIMEDOUT, "the daemon was not ready within %.1f s", (double)timeout_ms / 1000);
        char *to = buf_reserve(word, BUFSIZ);
        if (to == NULL)
            return buf_status(word, err);
        ssize_t got = ready > 0 ? read(pipe_fd, to, BUFSIZ) : 0;
        if (got < 0)
            return error_errno(err, "hearing from the daemon");
        if (ready > 0 && got == 0)
            return 0;
        buf_commit(word, (size_t)got);
    }
}

int daemon_wait(int pipe_fd, int64_t timeout_ms, struct buf *text, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf word;
    buf_init(&word, DAEMON_WORD_MAX_BYTES + BUFSIZ);
    int rc = daemon_read(pipe_fd, timeout_ms, &word, err);
    if (rc < 0)
        return rc;
    struct cursor said = cursor_of(word.data, word.length);
    if (cursor_accept_text(&said, daemon_failed_word))
        return error_set(err, -ECANCELED, "%.*s", (int)cursor_left(&said), said.at);
    if (!cursor_accept_text(&said, daemon_ready_word))
        return error_set(err, -ECHILD, "the daemon died before it was ready (killed, or a crash)");
    buf_bytes(text, said.at, cursor_left(&said));
    return 0;
}

static int daemon_redirect_one(const char *path, int to_fd, struct error *err)
{
    /* Non-blocking: neither opening nor writing a FIFO that somebody put there may hold us. */
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
    CLEANUP(fd_cleanup) int fd = open(path, flags, DAEMON_LOG_MODE);
    if (fd < 0 && errno == ENXIO)
        return error_set(err, -ENXIO, "'%s' is a pipe that nobody reads: remove it", path);
    if (fd < 0 && errno == EACCES)
        return error_errno(err, "opening '%s' (if it is another user's, choose another log directory)", path);
    if (fd < 0)
        return error_errno(err, "opening '%s'", path);
    if (dup2(fd, to_fd) < 0)
        return error_errno(err, "redirecting to '%s'", path);
    return 0;
}

int daemon_redirect(const char *out_path, const char *err_path, struct error *err)
{
    int rc = daemon_redirect_one(out_path, STDOUT_FILENO, err);
    return rc < 0 ? rc : daemon_redirect_one(err_path, STDERR_FILENO, err);
}
