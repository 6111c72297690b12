/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/clock.h"
#include "util/file.h"

enum { CLAIM_FILE_MODE = 0600, CLAIM_POLL_MS = 5 };

static int claim_path(const char *kind, const char *name, char **out_path, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, PATH_MAX);
    int rc = file_node_directory(&path, err);
    if (rc < 0)
        return rc;
    buf_printf(&path, "/%s-", kind);
    file_safe_name(name, &path);
    rc = buf_status(&path, err);
    if (rc < 0)
        return rc;
    *out_path = strdup(buf_string(&path));
    return *out_path != NULL ? 0 : error_set(err, -ENOMEM, "no memory for a path");
}

/* Whoever gives a claim up removes its file, so a file that was opened may be nobody's by the time it is locked. */
static bool claim_is_at(int fd, const char *path)
{
    struct stat ours, theirs;
    return fstat(fd, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_ino == theirs.st_ino &&
           ours.st_dev == theirs.st_dev;
}

/* One attempt: -EINTR when the file was removed under our hands, -EWOULDBLOCK when another process holds the lock. */
static int claim_try(const char *path, int *out_fd, struct error *err)
{
    CLEANUP(fd_cleanup) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, CLAIM_FILE_MODE);
    if (fd < 0)
        return error_errno(err, "opening '%s'", path);
    int rc = file_lock(fd, err);
    if (rc < 0)
        return error_wrap(err, rc, "'%s'", path);
    if (!claim_is_at(fd, path))
        return error_set(err, -EINTR, "'%s' was removed", path);
    *out_fd = TAKE_FD(fd);
    return 0;
}

int claim_take(const char *kind, const char *name, int64_t wait_ms, struct claim *out_claim, struct error *err)
{
    CLEANUP(memory_cleanup) char *path = NULL;
    int rc = claim_path(kind, name, &path, err);
    if (rc < 0)
        return rc;
    int64_t deadline_ns = clock_mono_ns() + wait_ms * CLOCK_NS_PER_MS;
    int fd = -1;
    for (;;) {
        rc = claim_try(path, &fd, err);
        if (rc == -EINTR)
            continue; /* each turn somebody else has made progress */
        if (rc != -EWOULDBLOCK || clock_mono_ns() >= deadline_ns)
            break;
        (void)poll(NULL, 0,
                   CLAIM_POLL_MS); /* a nap: a lock of this kind that is waited for can't be given a deadline */
    }
    if (rc < 0)
        return rc;
    *out_claim = (struct claim){.path = TAKE(path), .fd = fd};
    return 0;
}

void claim_drop(struct claim *claim)
{
    if (claim->path != NULL) {
        if (claim_is_at(claim->fd, claim->path))
            (void)unlink(claim->path); /* a file that stays does no harm: the lock is what counts */
        /* Explicitly: a thread that hangs in the kernel may keep the descriptor open long after our end. */
        file_unlock(claim->fd);
        close(claim->fd);
        free(claim->path);
    }
    *claim = CLAIM_NONE;
}

bool claim_renew(struct claim *claim, bool *out_is_new)
{
    *out_is_new = false;
    struct stat ours;
    if (fstat(claim->fd, &ours) == 0 && ours.st_nlink > 0)
        return true; /* removed, or replaced, it would have no name; nobody moves it. Cheaper than a look at the path */
    CLEANUP(fd_cleanup) int fd = -1;
    if (claim_try(claim->path, &fd, NULL) < 0)
        return false;
    file_unlock(claim->fd);
    *out_is_new = true;
    return dup3(fd, claim->fd, O_CLOEXEC) >= 0;
}

int claim_find(const char *kind, const char *name, int *out_fd, struct error *err)
{
    CLEANUP(memory_cleanup) char *path = NULL;
    int rc = claim_path(kind, name, &path, err);
    if (rc < 0)
        return rc;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return error_errno(err, "opening '%s'", path);
    *out_fd = fd;
    return 0;
}

bool claim_is_held(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
