/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/child.h"
#include "support/scratch.h"

enum {
    BIG_BYTES = 100000,
    TEXT_MAX_BYTES = 1 << 20,
    PIPE_MESSAGE_BYTES = 1 << 20,
};

/* What is in a file of the scratch directory. */
static void assert_content(const struct scratch *scratch, const char *name, const char *expected)
{
    char path[PATH_MAX];
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    assert_int_equal(file_read(AT_FDCWD, scratch_path(scratch, name, path), &text, NULL), 0);
    assert_string_equal(buf_string(&text), expected);
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode & 07777;
}

static void read_appends_all_of_a_file(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    static char big[BIG_BYTES];
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i % 251);
    scratch_write(&scratch, "big", big, sizeof big);
    scratch_write(&scratch, "empty", "", 0);

    CLEANUP(fd_cleanup) int dir_fd = open(scratch.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    buf_text(&text, "before ");
    assert_int_equal(file_read(dir_fd, "empty", &text, NULL), 0);
    assert_int_equal(file_read(dir_fd, "big", &text, NULL), 0);
    assert_int_equal(text.length, 7 + sizeof big);
    assert_memory_equal(text.data, "before ", 7);
    assert_memory_equal(text.data + 7, big, sizeof big);
}

static void read_takes_files_of_the_kernel(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    assert_int_equal(file_read(AT_FDCWD, "/proc/self/stat", &text, NULL), 0); /* stat() says 0 bytes */
    assert_true(text.length > 10);
    buf_reset(&text);
    assert_int_equal(file_read(AT_FDCWD, "/dev/null", &text, NULL), 0);
    assert_int_equal(text.length, 0);
}

static void read_stops_at_the_limit_of_the_text(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    scratch_write(&scratch, "f", "12345678", 8);
    (void)scratch_path(&scratch, "f", path);
    for (size_t room = 0; room < 12; room++) {
        CLEANUP(buf_cleanup) struct buf text;
        struct error err = {0};
        buf_init(&text, 2 + room);
        buf_text(&text, "x=");
        int rc = file_read(AT_FDCWD, path, &text, &err);
        assert_int_equal(rc, room < 8 ? -E2BIG : 0);
        assert_int_equal(text.length, room < 8 ? 2 : 10);
        assert_int_equal(buf_status(&text, NULL), rc);
        if (rc != 0)
            assert_non_null(strstr(err.text, path));
    }
}

static void read_says_what_it_could_not(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    assert_int_equal(mkfifo(scratch_path(&scratch, "fifo", path), S_IRUSR | S_IWUSR), 0);
    static const struct {
        const char *name;
        int rc;
    } cases[] = {{"missing", -ENOENT}, {"", -EISDIR}, {"fifo", -EINVAL}, {"missing/x", -ENOENT}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(buf_cleanup) struct buf text;
        struct error err = {0};
        buf_init(&text, TEXT_MAX_BYTES);
        buf_text(&text, "kept");
        int rc = file_read(AT_FDCWD, scratch_path(&scratch, cases[i].name, path), &text, &err);
        if (rc != cases[i].rc || strstr(err.text, path) == NULL)
            fail_msg("'%s': %d, %s", cases[i].name, rc, err.text);
        assert_string_equal(buf_string(&text), "kept");
    }
}

static void read_into_a_failed_text_fails(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, 1);
    buf_text(&text, "ab");
    assert_int_equal(file_read(AT_FDCWD, "/dev/null", &text, NULL), -E2BIG);
}

static int wake_fd = -1;
static volatile sig_atomic_t alarms;

/* The reader starts only when the writer has been interrupted. */
static void on_alarm(int number)
{
    (void)number;
    if (++alarms == 3 && write(wake_fd, "!", 1) != 1)
        abort();
}

static int write_while_interrupted(void *context)
{
    int *fds = context;
    struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART: write() returns early or with EINTR */
    struct itimerval often = {.it_interval = {.tv_usec = 2000}, .it_value = {.tv_usec = 2000}};
    static char message[PIPE_MESSAGE_BYTES];
    memset(message, 'm', sizeof message);
    CHILD_CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHILD_CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    struct error err = {0};
    int rc = file_write_all(fds[1], message, sizeof message, &err);
    struct itimerval never = {0};
    (void)setitimer(ITIMER_REAL, &never, NULL);
    CHILD_CHECK(rc == 0);
    CHILD_CHECK(alarms >= 3);
    return 0;
}

static void write_goes_on_after_signals(void **state)
{
    (void)state;
    int fds[2];
    int wake[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(pipe2(wake, O_CLOEXEC), 0);
    wake_fd = wake[1];
    pid_t reader = fork();
    assert_true(reader >= 0);
    if (reader == 0) {
        char bytes[4096];
        size_t total = 0;
        close(fds[1]);
        bool is_awake = read(wake[0], bytes, 1) == 1;
        for (ssize_t got = 1; got > 0; total += (size_t)got)
            got = read(fds[0], bytes, sizeof bytes);
        _exit(is_awake && total == PIPE_MESSAGE_BYTES ? 0 : 1);
    }
    close(fds[0]);
    child_run(write_while_interrupted, fds);
    close(fds[1]);
    int status;
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    close(wake[0]);
    close(wake[1]);
}

/* Files may grow to `bytes` from now on; beyond that writes fail with EFBIG instead of a signal. */
static bool limit_file_size(rlim_t bytes)
{
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    return signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

static int write_beyond_the_size_limit(void *context)
{
    const struct scratch *scratch = context;
    char path[PATH_MAX];
    static char big[BIG_BYTES];
    struct error err = {0};
    CHILD_CHECK(limit_file_size(1000));
    CLEANUP(fd_cleanup) int fd = open(scratch_path(scratch, "f", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHILD_CHECK(fd >= 0);
    CHILD_CHECK(file_write_all(fd, big, sizeof big, &err) == -EFBIG);
    CHILD_CHECK(lseek(fd, 0, SEEK_CUR) == 1000);
    CHILD_CHECK(strstr(err.text, "File too large") != NULL);
    return 0;
}

static void write_that_fails_after_a_short_one_says_why(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    child_run(write_beyond_the_size_limit, &scratch);
}

static void replace_makes_and_replaces_a_file(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    (void)scratch_path(&scratch, "f", path);
    mode_t old_mask = umask(022);
    int rc = file_replace(path, "first", 5, 0660, NULL);
    (void)umask(old_mask);
    assert_int_equal(rc, 0);
    assert_content(&scratch, "f", "first");
    assert_int_equal(mode_of(path), 0640);

    /* Who has the old one open goes on reading it. */
    CLEANUP(fd_cleanup) int old_fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(file_replace(path, "second", 6, 0600, NULL), 0);
    char old[16] = {0};
    assert_int_equal(read(old_fd, old, sizeof old), 5);
    assert_string_equal(old, "first");
    assert_content(&scratch, "f", "second");
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(file_replace(path, "", 0, 0600, NULL), 0);
    assert_content(&scratch, "f", "");
    assert_int_equal(scratch_entries(&scratch), 1);
}

static void replace_works_in_the_current_directory(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    CLEANUP(fd_cleanup) int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(chdir(scratch.path), 0);
    int rc = file_replace("f", "x", 1, 0600, NULL);
    assert_int_equal(fchdir(here), 0);
    assert_int_equal(rc, 0);
    assert_content(&scratch, "f", "x");
}

static void replace_does_not_follow_a_link(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char link_path[PATH_MAX];
    char target[PATH_MAX];
    scratch_write(&scratch, "target", "untouched", 9);
    assert_int_equal(symlink(scratch_path(&scratch, "target", target), scratch_path(&scratch, "link", link_path)), 0);
    assert_int_equal(file_replace(link_path, "new", 3, 0600, NULL), 0);
    assert_content(&scratch, "target", "untouched");
    assert_content(&scratch, "link", "new");
    assert_int_not_equal(readlink(link_path, target, sizeof target), 6);
}

static void replace_takes_the_longest_names(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char name[NAME_MAX + 2];
    char path[PATH_MAX];
    memset(name, 'n', sizeof name);
    name[NAME_MAX] = '\0';
    assert_int_equal(file_replace(scratch_path(&scratch, name, path), "x", 1, 0600, NULL), 0);
    name[NAME_MAX] = 'n';
    name[NAME_MAX + 1] = '\0';
    assert_int_equal(file_replace(scratch_path(&scratch, name, path), "x", 1, 0600, NULL), -ENAMETOOLONG);
    assert_int_equal(scratch_entries(&scratch), 1);
}

static void replace_refuses_what_is_no_file(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    struct error err = {0};
    assert_int_equal(mkdir(scratch_path(&scratch, "d", path), 0700), 0);
    assert_int_equal(file_replace(path, "x", 1, 0600, &err), -EISDIR);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(file_replace(scratch_path(&scratch, "d/", path), "x", 1, 0600, &err), -EINVAL);
    assert_int_equal(file_replace("", "x", 1, 0600, &err), -EINVAL);
    assert_int_equal(file_replace(scratch_path(&scratch, "no/f", path), "x", 1, 0600, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/no'"));
    assert_int_equal(scratch_entries(&scratch), 1);
}

/* In the child: replaces "<directory>/f", which holds "old", by something big, and looks at what is left. */
static int check_failed_replace(const char *directory, int expected_rc)
{
    char path[PATH_MAX];
    static char big[BIG_BYTES];
    struct error err = {0};
    (void)snprintf(path, sizeof path, "%s/f", directory);
    int rc = file_replace(path, big, sizeof big, 0600, &err);
    if (rc != expected_rc)
        (void)fprintf(stderr, "%d: %s\n", rc, err.text);
    CHILD_CHECK(rc == expected_rc);
    CHILD_CHECK(strstr(err.text, directory) != NULL);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    CHILD_CHECK(file_read(AT_FDCWD, path, &text, NULL) == 0);
    CHILD_CHECK(strcmp(buf_string(&text), "old") == 0);
    struct scratch place;
    (void)snprintf(place.path, sizeof place.path, "%s", directory);
    CHILD_CHECK(scratch_entries(&place) == 1);
    return 0;
}

static int replace_beyond_the_size_limit(void *context)
{
    const struct scratch *scratch = context;
    CHILD_CHECK(limit_file_size(1000));
    return check_failed_replace(scratch->path, -EFBIG);
}

static int replace_in_a_read_only_directory(void *context)
{
    const struct scratch *scratch = context;
    char path[PATH_MAX];
    CHILD_CHECK(chmod(scratch->path, 0555) == 0);
    CHILD_CHECK(chmod(scratch_path(scratch, "f", path), 0644) == 0);
    CHILD_CHECK(child_leave_root());
    return check_failed_replace(scratch->path, -EACCES);
}

static int replace_on_a_full_file_system(void *context)
{
    const struct scratch *scratch = context;
    if (!child_enter_mounts()) {
        (void)printf("mounts are not allowed here\n");
        return CHILD_SKIP;
    }
    CHILD_CHECK(child_mount_tmpfs(scratch->path, "64k"));
    char path[PATH_MAX];
    CHILD_CHECK(file_replace(scratch_path(scratch, "f", path), "old", 3, 0600, NULL) == 0);
    return check_failed_replace(scratch->path, -ENOSPC);
}

static void replace_that_fails_leaves_the_old_file(void **state)
{
    int (*body)(void *) = *state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    scratch_write(&scratch, "f", "old", 3);
    child_run(body, &scratch);
}

/* The linker sends file.c's fsync() here: what was synced, in that order, and which of them fails. */
static char synced[8];
static size_t synced_count;
static size_t sync_that_fails;

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    if (synced_count == sizeof synced)
        synced_count = 0; /* of a test that doesn't look */
    synced[synced_count++] = S_ISDIR(status.st_mode) ? 'd' : 'f';
    if (synced_count == sync_that_fails) {
        errno = EIO;
        return -1;
    }
    return __real_fsync(fd);
}

static void replace_syncs_the_file_and_then_its_directory(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char file[PATH_MAX];
    (void)scratch_path(&scratch, "f", file);
    sync_that_fails = synced_count = 0;
    assert_int_equal(file_replace(file, "old", 3, 0600, NULL), 0);
    assert_int_equal(synced_count, 2);
    assert_memory_equal(synced, "fd", 2);

    struct error err = {0};
    synced_count = 0;
    sync_that_fails = 1; /* a disk that lost what was written: nothing is replaced by it */
    assert_int_equal(file_replace(file, "new", 3, 0600, &err), -EIO);
    assert_content(&scratch, "f", "old");
    assert_int_equal(scratch_entries(&scratch), 1);

    synced_count = 0;
    sync_that_fails = 2; /* the new one is there, but may be lost with the power: that is said */
    assert_int_equal(file_replace(file, "new", 3, 0600, &err), -EIO);
    assert_non_null(strstr(err.text, "may be lost with the power"));
    assert_content(&scratch, "f", "new");
    sync_that_fails = 0;
}

static void files_survive_every_failed_allocation(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char file[PATH_MAX];
    char directory[PATH_MAX];
    (void)scratch_path(&scratch, "f", file);
    (void)scratch_path(&scratch, "a/b", directory);
    assert_int_equal(file_replace(file, "old", 3, 0600, NULL), 0);
    for (size_t step = 0; step < 3; step++) {
        for (size_t n = 0;; n++) {
            CLEANUP(buf_cleanup) struct buf text;
            buf_init(&text, TEXT_MAX_BYTES);
            allocation_fail_at(n);
            int rc = step == 0   ? file_read(AT_FDCWD, file, &text, NULL)
                     : step == 1 ? file_replace(file, "new", 3, 0600, NULL)
                                 : file_make_directories(directory, 0700, NULL);
            bool has_failed = allocation_stop();
            assert_int_equal(rc, has_failed ? -ENOMEM : 0);
            if (!has_failed)
                break;
            assert_int_equal(text.length, 0);
            assert_content(&scratch, "f", step < 2 ? "old" : "new");
            assert_int_equal(scratch_entries(&scratch), 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_appends_all_of_a_file),
        cmocka_unit_test(read_takes_files_of_the_kernel),
        cmocka_unit_test(read_stops_at_the_limit_of_the_text),
        cmocka_unit_test(read_says_what_it_could_not),
        cmocka_unit_test(read_into_a_failed_text_fails),
        cmocka_unit_test(write_goes_on_after_signals),
        cmocka_unit_test(write_that_fails_after_a_short_one_says_why),
        cmocka_unit_test(replace_makes_and_replaces_a_file),
        cmocka_unit_test(replace_works_in_the_current_directory),
        cmocka_unit_test(replace_does_not_follow_a_link),
        cmocka_unit_test(replace_takes_the_longest_names),
        cmocka_unit_test(replace_refuses_what_is_no_file),
        {"replace beyond the size limit leaves the old file", replace_that_fails_leaves_the_old_file, NULL, NULL,
         replace_beyond_the_size_limit},
        {"replace in a read-only directory leaves the old file", replace_that_fails_leaves_the_old_file, NULL, NULL,
         replace_in_a_read_only_directory},
        {"replace on a full file system leaves the old file", replace_that_fails_leaves_the_old_file, NULL, NULL,
         replace_on_a_full_file_system},
        cmocka_unit_test(replace_syncs_the_file_and_then_its_directory),
        cmocka_unit_test(files_survive_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
