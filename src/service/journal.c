/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "service/daemon.h"
#include "util/clock.h"
#include "util/file.h"

enum { JOURNAL_CHUNK_BYTES = 4096, JOURNAL_STACK_BYTES = 128 * 1024 };

struct journal {
    pthread_t thread;
    int read_fd;
    int write_fd;
    int wake_fd; /* an eventfd: one of the two below has been set */
    atomic_bool is_reopen_wanted;
    atomic_bool is_closing;
    const char *out_path;
    const char *err_path;
};

static void journal_reopen_now(struct journal *journal)
{
    struct error err = {0};
    if (journal->out_path == NULL)
        return; /* in the foreground the streams are somebody else's */
    if (daemon_redirect(journal->out_path, journal->err_path, &err) < 0)
        log_error("reopening the log files: %s; the old ones stay in use", err.text);
    else
        log_info("log files reopened");
}

/* Copies what is in the pipe. */
static void journal_copy(const struct journal *journal)
{
    char bytes[JOURNAL_CHUNK_BYTES];
    ssize_t got;
    while ((got = read(journal->read_fd, bytes, sizeof bytes)) > 0) {
        int rc = file_write_all(STDERR_FILENO, bytes, (size_t)got, NULL);
        (void)rc; /* nobody is left to be told */
    }
}

static void *journal_run(void *context)
{
    struct journal *journal = context;
    struct pollfd wanted[] = {{.fd = journal->read_fd, .events = POLLIN}, {.fd = journal->wake_fd, .events = POLLIN}};
    for (bool is_closing = false; !is_closing;) {
        if (poll(wanted, ARRAY_LENGTH(wanted), -1) < 0)
            continue;
        uint64_t asked;
        ssize_t got = read(journal->wake_fd, &asked, sizeof asked);
        (void)got;                                      /* nothing there: only lines have come */
        is_closing = atomic_load(&journal->is_closing); /* before the last copy, so that this is the last one */
        if (atomic_exchange(&journal->is_reopen_wanted, false))
            journal_reopen_now(journal);
        journal_copy(journal);
    }
    return NULL;
}

static int journal_start(struct journal *journal)
{
    pthread_attr_t attributes;
    int rc = pthread_attr_init(&attributes);
    if (rc != 0)
        return rc;
    sigset_t all, before;
    (void)sigfillset(&all);                                            /* can't fail */
    (void)pthread_attr_setstacksize(&attributes, JOURNAL_STACK_BYTES); /* fails: it gets the usual one */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);                 /* fails only for a bad `how` */
    rc = pthread_create(&journal->thread, &attributes, journal_run, journal);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return rc;
}

static void journal_free(struct journal *journal)
{
    if (journal == NULL)
        return;
    if (journal->read_fd >= 0)
        close(journal->read_fd);
    if (journal->write_fd >= 0)
        close(journal->write_fd);
    if (journal->wake_fd >= 0)
        close(journal->wake_fd);
    free(journal);
}

static void journal_cleanup(struct journal **journal)
{
    journal_free(*journal);
}

int journal_open(enum log_level level, const char *out_path, const char *err_path, struct journal **out_journal,
                 struct error *err)
{
    CLEANUP(journal_cleanup) struct journal *journal = calloc(1, sizeof *journal);
    if (journal == NULL)
        return error_set(err, -ENOMEM, "no memory for the log");
    *journal =
        (struct journal){.read_fd = -1, .write_fd = -1, .wake_fd = -1, .out_path = out_path, .err_path = err_path};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_errno(err, "making a pipe for the log");
    journal->read_fd = ends[0];
    journal->write_fd = ends[1];
    journal->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (journal->wake_fd < 0)
        return error_errno(err, "making a pipe for the log");
    int rc = journal_start(journal);
    if (rc != 0) {
        errno = rc;
        return error_errno(err, "starting a thread for the log");
    }
    log_open(journal->write_fd, level);
    *out_journal = TAKE(journal);
    return 0;
}

static void journal_wake(struct journal *journal)
{
    uint64_t once = 1;
    ssize_t written = write(journal->wake_fd, &once, sizeof once);
    (void)written; /* it fails only when the thread has been woken already, and often */
}

void journal_reopen(struct journal *journal)
{
    atomic_store(&journal->is_reopen_wanted, true);
    journal_wake(journal);
}

void journal_close(struct journal *journal, int64_t timeout_ms)
{
    if (journal == NULL)
        return;
    log_open(STDERR_FILENO, log_get_level());
    atomic_store(&journal->is_closing, true);
    journal_wake(journal);
    int64_t deadline_ns = clock_wall_ns() + timeout_ms * CLOCK_NS_PER_MS;
    struct timespec until = {.tv_sec = deadline_ns / CLOCK_NS_PER_SECOND, .tv_nsec = deadline_ns % CLOCK_NS_PER_SECOND};
    if (pthread_timedjoin_np(journal->thread, NULL, &until) == 0)
        journal_free(journal); /* else its thread hangs and still uses it; the process is about to end */
}
