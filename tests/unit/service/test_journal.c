/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/child.h"
#include "support/scratch.h"
#include "util/buf.h"
#include "util/clock.h"
#include "util/file.h"

enum { CLOSE_MS = 20000, TEXT_MAX_BYTES = 16 << 20 };

/* Descriptors 1 and 2 go to files of the scratch directory; in a child, since the test itself needs them. */
struct streams {
    char out[PATH_MAX];
    char err[PATH_MAX];
};

static void streams_of(const struct scratch *scratch, struct streams *out_streams)
{
    (void)scratch_path(scratch, "out", out_streams->out);
    (void)scratch_path(scratch, "err", out_streams->err);
}

static bool redirect(const char *path)
{
    CLEANUP(fd_cleanup) int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return fd >= 0 && dup2(fd, STDERR_FILENO) >= 0;
}

static size_t count_lines(const char *path, const char *word)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    if (file_read(AT_FDCWD, path, &text, NULL) < 0)
        return 0;
    size_t count = 0;
    for (const char *at = buf_string(&text); (at = strstr(at, word)) != NULL; at += strlen(word))
        count++;
    return count;
}

static int logs_and_closes(void *context)
{
    struct streams streams;
    streams_of(context, &streams);
    CHILD_CHECK(redirect(streams.err));
    struct journal *journal = NULL;
    CHILD_CHECK(journal_open(LOG_LEVEL_INFO, NULL, NULL, &journal, NULL) == 0);
    for (int i = 0; i < 100; i++)
        log_info("line %d", i);
    log_debug("too much");
    journal_close(journal, CLOSE_MS);
    CHILD_CHECK(count_lines(streams.err, "INFO line ") == 100);
    CHILD_CHECK(count_lines(streams.err, "too much") == 0);
    log_info("afterwards, directly");
    CHILD_CHECK(count_lines(streams.err, "afterwards, directly") == 1);
    return 0;
}

static void lines_are_all_written_when_it_is_closed(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    child_run(logs_and_closes, &scratch);
}

static int reopens(void *context)
{
    struct streams streams;
    streams_of(context, &streams);
    CHILD_CHECK(redirect(streams.err));
    struct journal *journal = NULL;
    CHILD_CHECK(journal_open(LOG_LEVEL_INFO, streams.out, streams.err, &journal, NULL) == 0);
    char old[PATH_MAX + 8];
    (void)snprintf(old, sizeof old, "%s.old", streams.err);
    CHILD_CHECK(rename(streams.err, old) == 0);
    journal_reopen(journal);
    struct stat status;
    int64_t deadline_ns = clock_mono_ns() + CLOSE_MS * CLOCK_NS_PER_MS;
    while (stat(streams.out, &status) < 0 || stat(streams.err, &status) < 0)
        CHILD_CHECK(clock_mono_ns() < deadline_ns);
    log_info("to the new file");
    journal_close(journal, CLOSE_MS);
    CHILD_CHECK(count_lines(streams.err, "to the new file") == 1);
    CHILD_CHECK(count_lines(old, "to the new file") == 0);
    return 0;
}

static void reopening_makes_new_files(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    child_run(reopens, &scratch);
}

static int reopens_in_vain(void *context)
{
    struct streams streams;
    streams_of(context, &streams);
    CHILD_CHECK(redirect(streams.err));
    struct journal *journal = NULL;
    CHILD_CHECK(journal_open(LOG_LEVEL_INFO, "/nope/out", "/nope/err", &journal, NULL) == 0);
    journal_reopen(journal);
    int64_t deadline_ns = clock_mono_ns() + CLOSE_MS * CLOCK_NS_PER_MS;
    while (count_lines(streams.err, "the old ones stay in use") == 0)
        CHILD_CHECK(clock_mono_ns() < deadline_ns);
    journal_close(journal, CLOSE_MS);
    return 0;
}

static void reopening_that_fails_keeps_the_old_files_and_says_so(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    child_run(reopens_in_vain, &scratch);
}

/* Descriptor 2 is a pipe that nobody reads: what a log directory on a dead file system is to its writer. */
static int logs_into_a_dead_end(void *context)
{
    (void)context;
    int ends[2];
    CHILD_CHECK(pipe2(ends, O_CLOEXEC) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    struct journal *journal = NULL;
    CHILD_CHECK(journal_open(LOG_LEVEL_INFO, NULL, NULL, &journal, NULL) == 0);
    for (int i = 0; i < 100000; i++)
        log_info("line %d, which nobody will ever read", i); /* would hang here, if it waited */
    int64_t start_ns = clock_mono_ns();
    journal_close(journal, 100);
    CHILD_CHECK(clock_mono_ns() - start_ns < CLOSE_MS * CLOCK_NS_PER_MS);
    _exit(0); /* its thread hangs still, and the sanitizer would wait for it */
}

static void who_logs_never_waits(void **state)
{
    (void)state;
    child_run(logs_into_a_dead_end, NULL);
}

static void closing_nothing_is_fine(void **state)
{
    (void)state;
    journal_close(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_all_written_when_it_is_closed),
        cmocka_unit_test(reopening_makes_new_files),
        cmocka_unit_test(reopening_that_fails_keeps_the_old_files_and_says_so),
        cmocka_unit_test(who_logs_never_waits),
        cmocka_unit_test(closing_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
