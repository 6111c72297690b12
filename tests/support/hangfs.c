/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hangfs: a file system for tests whose statfs() hangs when it is told to, like that of a dead server.
 *
 *     hangfs DIRECTORY      mounts an empty file system and stays in the foreground
 *
 * Says on stdout, one word a line: "ready" when it is mounted, "held" for each statfs() that it leaves without an
 * answer. SIGUSR1: statfs() hangs from now on, says "hangs". SIGUSR2: it answers, also those that hang, says "answers".
 * SIGTERM: unmounts and ends; what hangs then fails. Once it is held, a caller can't be interrupted: SIGKILL doesn't
 * end it.
 *
 * Its numbers: 1,000 blocks of 4,096 bytes, 600 of them free, 500 available; 1,000,000 files, of which as many are in
 * use as statfs() has been answered, so that one can see whether it is still being asked.
 */
#define FUSE_USE_VERSION 31
#include <fuse_lowlevel.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum { HANGFS_HELD_MAX = 256 };

struct hangfs {
    bool is_hanging;
    unsigned answered; /* how many statfs() */
    size_t held_count;
    fuse_req_t held[HANGFS_HELD_MAX];
};

/* What the last signals asked for. Handlers run only while the loop waits in ppoll(). */
static volatile sig_atomic_t hangfs_signal;

static void hangfs_on_signal(int number)
{
    hangfs_signal = number;
}

static void hangfs_say(const char *word)
{
    (void)puts(word);
    (void)fflush(stdout); /* whoever listens has gone when it fails, and ends us next */
}

static void hangfs_answer(struct hangfs *fs, fuse_req_t request)
{
    fs->answered++;
    struct statvfs numbers = {
        .f_bsize = 4096,
        .f_frsize = 4096,
        .f_blocks = 1000,
        .f_bfree = 600,
        .f_bavail = 500,
        .f_files = 1000000,
        .f_ffree = 1000000 - fs->answered,
        .f_namemax = 255,
    };
    (void)fuse_reply_statfs(request, &numbers); /* fails when the caller is gone */
}

static void hangfs_statfs(fuse_req_t request, fuse_ino_t inode)
{
    (void)inode;
    struct hangfs *fs = fuse_req_userdata(request);
    if (!fs->is_hanging || fs->held_count == HANGFS_HELD_MAX) {
        hangfs_answer(fs, request);
        return;
    }
    fs->held[fs->held_count++] = request;
    hangfs_say("held");
}

static void hangfs_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *file)
{
    (void)file;
    struct stat root = {.st_ino = inode, .st_mode = S_IFDIR | 0755, .st_nlink = 2};
    if (inode == FUSE_ROOT_ID)
        (void)fuse_reply_attr(request, &root, 0);
    else
        (void)fuse_reply_err(request, ENOENT);
}

static const struct fuse_lowlevel_ops hangfs_ops = {
    .getattr = hangfs_getattr,
    .statfs = hangfs_statfs,
};

/* Obeys a signal; false when it ends us. */
static bool hangfs_obey(struct hangfs *fs, int number)
{
    fs->is_hanging = number == SIGUSR1;
    if (number == SIGUSR2) {
        for (size_t i = 0; i < fs->held_count; i++)
            hangfs_answer(fs, fs->held[i]);
        fs->held_count = 0;
    }
    if (number != SIGUSR1 && number != SIGUSR2)
        return false;
    hangfs_say(fs->is_hanging ? "hangs" : "answers");
    return true;
}

/* Serves requests until a signal ends us or somebody unmounts. */
static int hangfs_loop(struct fuse_session *session, struct hangfs *fs, const sigset_t *while_waiting)
{
    struct pollfd requests = {.fd = fuse_session_fd(session), .events = POLLIN};
    struct fuse_buf request = {0};
    int rc = 0;
    while (!fuse_session_exited(session)) {
        hangfs_signal = 0;
        if (ppoll(&requests, 1, NULL, while_waiting) < 0 && errno != EINTR)
            return -errno;
        if (hangfs_signal != 0) {
            if (!hangfs_obey(fs, hangfs_signal))
                break;
            continue;
        }
        rc = fuse_session_receive_buf(session, &request);
        if (rc <= 0 && rc != -EINTR)
            break;
        if (rc > 0)
            fuse_session_process_buf(session, &request);
    }
    free(request.mem);
    return rc < 0 ? rc : 0;
}

/* Blocks the signals that steer us; `*out_while_waiting` is the mask with which the loop waits. */
static void hangfs_catch_signals(sigset_t *out_while_waiting)
{
    static const int numbers[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP};
    struct sigaction action = {.sa_handler = hangfs_on_signal};
    sigset_t ours;
    (void)sigemptyset(&ours);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        (void)sigaddset(&ours, numbers[i]);
        (void)sigaction(numbers[i], &action, NULL);
    }
    (void)sigprocmask(SIG_BLOCK, &ours, out_while_waiting);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: hangfs DIRECTORY\n");
        return 2;
    }
    sigset_t while_waiting;
    hangfs_catch_signals(&while_waiting);

    struct hangfs fs = {0};
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    if (fuse_opt_add_arg(&args, argv[0]) != 0 || fuse_opt_add_arg(&args, "-ofsname=hangfs,subtype=hangfs") != 0)
        return 1;
    struct fuse_session *session = fuse_session_new(&args, &hangfs_ops, sizeof hangfs_ops, &fs);
    int rc = 1;
    if (session != NULL && fuse_session_mount(session, argv[1]) == 0) {
        hangfs_say("ready");
        rc = hangfs_loop(session, &fs, &while_waiting) < 0 ? 1 : 0;
        fuse_session_unmount(session);
    }
    if (session != NULL)
        fuse_session_destroy(session);
    fuse_opt_free_args(&args);
    return rc;
}
