/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/filesystem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sample/probe.h"
#include "starve.h"

/* A scratch directory with a file "mounts" is the root of a recorded /proc. */
static void write_mounts(const struct scratch *scratch, const char *text)
{
    scratch_write(scratch, "mounts", text, strlen(text));
}

static void make_point(const struct scratch *scratch, const char *name)
{
    char path[PATH_MAX];
    assert_int_equal(mkdir(scratch_path(scratch, name, path), 0700), 0);
}

static struct collector *open_collector(const char *proc_path, const char *mount_prefix)
{
    struct sample_config config = {.proc_path = proc_path, .sys_path = "/sys", .mount_prefix = mount_prefix};
    return drive_open(&filesystem_collector, &config);
}

static const struct sample_row *find_row(struct collector *collector, const char *name)
{
    return lookup_row(filesystem_collector.table(collector), name);
}

/* Ticks until there is a row `name`, or none. What is asked longer than a second less `late_ns` is stuck. */
static const struct sample_row *tick_until(struct collector *collector, const char *name, bool is_there,
                                           int64_t late_ns)
{
    return drive_until(&filesystem_collector, collector, clock_boot_ns() + late_ns, name, is_there);
}

static void expect_notes(struct collector *collector, const char *text)
{
    drive_expect_notes(&filesystem_collector, collector, text);
}

static int64_t integer_of(const struct sample_row *row, enum filesystem_column column)
{
    assert_true(row->values[column].is_known);
    return row->values[column].integer;
}

static void row_tells_what_statvfs_says(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    write_mounts(&scratch, "/dev/sda1 /my\\040data ext4 rw 0 0\n");
    make_point(&scratch, "my data");
    struct statvfs expected;
    assert_int_equal(statvfs(scratch.path, &expected), 0);

    struct collector *collector = open_collector(scratch.path, scratch.path);
    const struct sample_row *row = tick_until(collector, "/my data", true, 0);
    assert_string_equal(row->label, "/dev/sda1");
    assert_string_equal(row->type, "ext4");
    assert_int_equal(integer_of(row, FILESYSTEM_SIZE), expected.f_blocks * expected.f_frsize);
    assert_true(integer_of(row, FILESYSTEM_USED) <= integer_of(row, FILESYSTEM_SIZE));
    assert_true(integer_of(row, FILESYSTEM_AVAILABLE) <= integer_of(row, FILESYSTEM_SIZE));
    assert_int_equal(integer_of(row, FILESYSTEM_IS_READ_ONLY), (expected.f_flag & ST_RDONLY) != 0);
    if (expected.f_files > 0)
        assert_int_equal(integer_of(row, FILESYSTEM_FILES), expected.f_files);

    filesystem_collector.close(collector);
}

static void changed_list_is_seen(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    make_point(&scratch, "a");
    make_point(&scratch, "b");
    write_mounts(&scratch, "/dev/sda1 /a ext4 rw 0 0\n");
    struct collector *collector = open_collector(scratch.path, scratch.path);
    (void)tick_until(collector, "/a", true, 0);
    assert_null(find_row(collector, "/b"));

    write_mounts(&scratch, "/dev/sda1 /a ext4 rw 0 0\n/dev/sdb1 /b ext4 rw 0 0\n");
    (void)tick_until(collector, "/b", true, 0);
    assert_false(find_row(collector, "/a")->is_first);

    write_mounts(&scratch, "/dev/sdb1 /b ext4 rw 0 0\n/dev/sdc1 /a xfs rw 0 0\n");
    (void)tick_until(collector, "/a", true, 0);
    (void)tick_until(collector, "/b", true, 0);
    assert_int_equal(filesystem_collector.table(collector)->rows_count, 2);

    write_mounts(&scratch, "");
    (void)tick_until(collector, "/b", false, 0);
    assert_int_equal(filesystem_collector.table(collector)->rows_count, 0);
    expect_notes(collector, "");

    filesystem_collector.close(collector);
}

static void mount_that_fails_has_no_row_and_is_named_once(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    make_point(&scratch, "good");
    write_mounts(&scratch, "/dev/sda1 /good ext4 rw 0 0\n"
                           "/dev/sdb1 /vanished ext4 rw 0 0\n"
                           "server:/x /mounts/x\\012y nfs rw 0 0\n");
    struct collector *collector = open_collector(scratch.path, scratch.path);
    (void)tick_until(collector, "/good", true, 0);
    (void)tick_until(collector, "/good", true, 0); /* the others are asked before it, so they have failed by now */
    assert_int_equal(filesystem_collector.table(collector)->rows_count, 1);
    expect_notes(collector, "'/mounts/x?y' (nfs) has no numbers: Not a directory\n");
    (void)tick_until(collector, "/good", true, 0);
    expect_notes(collector, "");
    filesystem_collector.close(collector);
}

static void machine_without_a_list_has_no_collector(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    struct sample_config config = {.proc_path = scratch.path, .sys_path = "/sys", .mount_prefix = ""};
    assert_non_null(strstr(drive_lacks(&filesystem_collector, &config), "/self/mounts'"));
}

static void this_machine_has_file_systems(void **state)
{
    (void)state;
    struct collector *collector = open_collector("/proc", "");
    const struct sample_row *root = tick_until(collector, "/", true, 0);
    assert_true(integer_of(root, FILESYSTEM_SIZE) > 0);
    assert_null(find_row(collector, "/proc"));
    filesystem_collector.close(collector);
}

/* The helper program hangfs, mounted on a directory of its own. */
struct hangfs {
    pid_t pid;
    int says_fd;
    struct scratch scratch;
    const char *point;
};

static bool hangfs_program(char *path, size_t size)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    (void)snprintf(path, size, "%s/hangfs", dirname(self));
    return access(path, X_OK) == 0;
}

/* Waits for a word; others before it are of other programs that look at all mounts. */
static void hangfs_expect(const struct hangfs *fs, const char *word)
{
    char line[16] = "";
    while (strcmp(line, word) != 0) {
        struct pollfd says = {.fd = fs->says_fd, .events = POLLIN};
        size_t length = 0;
        do {
            assert_int_equal(poll(&says, 1, DRIVE_DEADLINE_MS), 1);
            assert_int_equal(read(fs->says_fd, &line[length], 1), 1);
        } while (line[length++] != '\n' && length < sizeof line - 1);
        line[length] = '\0';
    }
}

static void hangfs_tell(const struct hangfs *fs, int number, const char *word)
{
    assert_int_equal(kill(fs->pid, number), 0);
    hangfs_expect(fs, word);
}

static bool hangfs_has_spoken(const struct hangfs *fs)
{
    struct pollfd says = {.fd = fs->says_fd, .events = POLLIN};
    return poll(&says, 1, 1) == 1;
}

static void skip_without_hangfs(void)
{
    char program[PATH_MAX];
    if (hangfs_program(program, sizeof program) && access("/dev/fuse", R_OK | W_OK) == 0)
        return;
    print_message("skipped: needs libfuse3-dev at build time, and a /dev/fuse that we may open\n");
    skip();
}

static void hangfs_start(struct hangfs *fs)
{
    char program[PATH_MAX];
    assert_true(hangfs_program(program, sizeof program));
    *fs = (struct hangfs){.scratch = scratch_new()};
    fs->point = fs->scratch.path;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    fs->pid = fork();
    assert_true(fs->pid >= 0);
    if (fs->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* a test that fails leaves no mount */
        (void)dup2(fds[1], STDOUT_FILENO);
        (void)execl(program, program, fs->point, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(close(fds[1]), 0);
    fs->says_fd = fds[0];
    hangfs_expect(fs, "ready\n");
}

static void hangfs_stop(struct hangfs *fs)
{
    assert_int_equal(kill(fs->pid, SIGTERM), 0);
    assert_int_equal(waitpid(fs->pid, NULL, 0), fs->pid);
    assert_int_equal(close(fs->says_fd), 0);
    scratch_cleanup(&fs->scratch);
}

static size_t count_threads(void)
{
    size_t count = 0;
    CLEANUP(dir_cleanup) DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    return count;
}

/* Ticks until hangfs at `point` has been asked once more, at times at which a mount has had its rest. */
static void tick_until_asked(struct collector *collector, const char *point)
{
    int64_t late_ns = PROBE_STUCK_AFTER_NS * 95 / 100;
    int64_t asked = integer_of(tick_until(collector, point, true, late_ns), FILESYSTEM_FILES_USED);
    int64_t until_ns = clock_mono_ns() + DRIVE_DEADLINE_MS * CLOCK_NS_PER_MS;
    while (integer_of(tick_until(collector, point, true, late_ns), FILESYSTEM_FILES_USED) == asked)
        assert_true(clock_mono_ns() < until_ns);
}

static void mount_that_hangs_takes_one_thread_and_nothing_else(void **state)
{
    (void)state;
    skip_without_hangfs();
    struct collector *collector = open_collector("/proc", "");
    (void)tick_until(collector, "/", true, 0);
    size_t threads = count_threads();
    struct hangfs fs;
    hangfs_start(&fs); /* after the list was read: the kernel has to tell that it changed */
    struct hangfs other;
    hangfs_start(&other);
    const struct sample_row *row = tick_until(collector, fs.point, true, 0);
    assert_int_equal(integer_of(row, FILESYSTEM_SIZE), 1000 * 4096);
    assert_int_equal(integer_of(row, FILESYSTEM_USED), 400 * 4096);
    assert_int_equal(integer_of(row, FILESYSTEM_AVAILABLE), 500 * 4096);
    assert_int_equal(integer_of(row, FILESYSTEM_FILES), 1000000);
    assert_true(integer_of(row, FILESYSTEM_FILES_USED) > 0);
    assert_string_equal(row->label, "hangfs");

    hangfs_tell(&fs, SIGUSR1, "hangs\n");
    char notes[256];
    (void)snprintf(notes, sizeof notes, "'%s' (fuse.hangfs) doesn't answer: left out until it does\n", fs.point);
    while (!hangfs_has_spoken(&fs))
        (void)tick_until(collector, "/", true, 0);
    hangfs_expect(&fs, "held\n");
    (void)tick_until(collector, fs.point, false, 2 * PROBE_STUCK_AFTER_NS);
    expect_notes(collector, notes);
    for (int ticks = 0; ticks < 50; ticks++) {
        tick_until_asked(collector, other.point);
        assert_null(find_row(collector, fs.point));
        assert_true(count_threads() <= threads + 1);
    }
    expect_notes(collector, "");

    hangfs_tell(&fs, SIGUSR2, "answers\n");
    (void)snprintf(notes, sizeof notes, "'%s' (fuse.hangfs) answers again\n", fs.point);
    (void)tick_until(collector, fs.point, true, 0);
    expect_notes(collector, notes);
    int64_t until_ns = clock_mono_ns() + DRIVE_DEADLINE_MS * CLOCK_NS_PER_MS;
    while (count_threads() > threads)
        assert_true(clock_mono_ns() < until_ns);

    filesystem_collector.close(collector);
    hangfs_stop(&fs);
    hangfs_stop(&other);
}

/* In a process of its own: holds the lock, hangs in the mount, says so through `ready_fd`. Never returns. */
static void hold_lock_and_hang(const char *lock_path, const char *point, int ready_fd)
{
    struct sample_config config = {.proc_path = "/proc", .sys_path = "/sys", .mount_prefix = ""};
    struct collector *collector = NULL;
    int fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || file_lock(fd, NULL) < 0 || filesystem_collector.open(&config, &collector, NULL) < 0)
        _exit(1);
    CLEANUP(buf_cleanup) struct buf notes;
    buf_init(&notes, 1 << 16);
    while (strstr(buf_string(&notes), point) == NULL) {
        if (filesystem_collector.read(collector, clock_boot_ns() + 2 * PROBE_STUCK_AFTER_NS, NULL) < 0)
            _exit(2);
        filesystem_collector.take_notes(collector, &notes);
        (void)poll(NULL, 0, 1);
    }
    (void)!write(ready_fd, "!", 1);
    for (;;)
        (void)pause();
}

static void killed_process_leaves_its_locks_though_a_thread_hangs(void **state)
{
    (void)state;
    skip_without_hangfs();
    struct hangfs fs;
    hangfs_start(&fs);
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char lock_path[PATH_MAX];
    (void)scratch_path(&scratch, "lock", lock_path);
    hangfs_tell(&fs, SIGUSR1, "hangs\n");
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        hold_lock_and_hang(lock_path, fs.point, ready[1]);
    struct pollfd hangs = {.fd = ready[0], .events = POLLIN};
    assert_int_equal(poll(&hangs, 1, DRIVE_DEADLINE_MS), 1);
    hangfs_expect(&fs, "held\n");

    int fd = open(lock_path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(file_lock(fd, NULL), -EWOULDBLOCK);
    assert_int_equal(kill(pid, SIGKILL), 0);
    int64_t until_ns = clock_mono_ns() + DRIVE_DEADLINE_MS * CLOCK_NS_PER_MS;
    while (file_lock(fd, NULL) != 0) {
        assert_true(clock_mono_ns() < until_ns);
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* its thread still hangs, or this test shows nothing */

    hangfs_tell(&fs, SIGUSR2, "answers\n");
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(close(fd), 0);
    assert_int_equal(close(ready[0]), 0);
    assert_int_equal(close(ready[1]), 0);
    hangfs_stop(&fs);
}

static void memory_that_runs_out_spoils_one_tick_at_most(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    make_point(&scratch, "a");
    make_point(&scratch, "b");
    write_mounts(&scratch, "/dev/sda1 /a ext4 rw 0 0\n/dev/sdb1 /b ext4 rw 0 0\n");
    struct sample_config config = {.proc_path = scratch.path, .sys_path = "/sys", .mount_prefix = scratch.path};
    starve_open(&filesystem_collector, &config);
    starve_read(&filesystem_collector, &config, "/b");
}

/* Mounts of ours that hang are nobody else's business: without root they can't be hidden from other programs. */
static int hide_mounts(void **state)
{
    (void)state;
    if (unshare(CLONE_NEWNS) == 0)
        assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* This one forks, which thread sanitizer allows only before there are threads. */
        cmocka_unit_test(killed_process_leaves_its_locks_though_a_thread_hangs),
        cmocka_unit_test(row_tells_what_statvfs_says),
        cmocka_unit_test(changed_list_is_seen),
        cmocka_unit_test(mount_that_fails_has_no_row_and_is_named_once),
        cmocka_unit_test(machine_without_a_list_has_no_collector),
        cmocka_unit_test(this_machine_has_file_systems),
        cmocka_unit_test(mount_that_hangs_takes_one_thread_and_nothing_else),
        cmocka_unit_test(memory_that_runs_out_spoils_one_tick_at_most),
    };
    return cmocka_run_group_tests(tests, hide_mounts, NULL);
}
