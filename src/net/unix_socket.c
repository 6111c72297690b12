/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket is bound and listens under a name of its own first, and then gets the path by a rename that replaces
 * nothing: so nobody finds it half made, and of two that start at once one sees that the other lives. A dead socket is
 * moved aside, looked at again (another one may have come in between), and only then removed.
 */
#include "net/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { UNIX_SOCKET_BACKLOG = 4096, UNIX_SOCKET_TRIES = 5, UNIX_SOCKET_NAME_BYTES = 32 };

#define UNIX_SOCKET_PATH_MAX_BYTES (sizeof((struct sockaddr_un *)0)->sun_path - 1)

static bool unix_socket_address(const char *path, struct sockaddr_un *out_address)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length == 0 || length > UNIX_SOCKET_PATH_MAX_BYTES)
        return false;
    memcpy(address.sun_path, path, length + 1);
    *out_address = address;
    return true;
}

int unix_socket_is_live(const char *path)
{
    struct sockaddr_un address;
    if (!unix_socket_address(path, &address))
        return -ENAMETOOLONG;
    CLEANUP(fd_cleanup) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EAGAIN)
        return 1; /* EAGAIN: its queue is full, which only a listener's can be */
    if (errno == ECONNREFUSED || errno == ENOENT)
        return 0;
    return errno == EPROTOTYPE ? 1 : -errno; /* a socket of another type, in use */
}

/* The directory of `path`, and the name in it. */
static int unix_socket_directory(const char *path, const char **out_name, struct error *err)
{
    char directory[sizeof(struct sockaddr_un)] = ".";
    const char *slash = strrchr(path, '/');
    *out_name = slash != NULL ? slash + 1 : path;
    if (slash != NULL) {
        size_t length = slash == path ? 1 : (size_t)(slash - path);
        memcpy(directory, path, length);
        directory[length] = '\0';
    }
    int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : error_errno(err, "the directory of socket '%s'", path);
}

static void unix_socket_temporary(char out_name[UNIX_SOCKET_NAME_BYTES])
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) < 0)
        number = (uint64_t)getpid(); /* a name that is taken fails, no more */
    (void)snprintf(out_name, UNIX_SOCKET_NAME_BYTES, ".cicada-%016llx", (unsigned long long)number);
}

/* Gives `from` the name `to` unless that exists; on failure errno stays. */
static int unix_socket_rename(int dir_fd, const char *from, const char *to)
{
    if (renameat2(dir_fd, from, dir_fd, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (linkat(dir_fd, from, dir_fd, to, 0) < 0) /* file systems without that flag, NFS for one */
        return -errno;
    return unlinkat(dir_fd, from, 0) < 0 ? -errno : 0;
}

/* Binds and listens at `name` within the directory, whatever the length of the directory's path. */
static int unix_socket_bind(int fd, int dir_fd, const char *name, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", dir_fd, name);
    /* The mode is the socket's at bind(): nobody else can connect at any moment, whatever the umask. */
    if (fchmod(fd, S_IRUSR | S_IWUSR) < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
        return error_errno(err, "binding");
    if (listen(fd, UNIX_SOCKET_BACKLOG) < 0) {
        int code = error_errno(err, "listening");
        (void)unlinkat(dir_fd, name, 0);
        return code;
    }
    return 0;
}

/* What is at the path and in the way: 0 when it was dead and has been removed. */
static int unix_socket_remove_dead(const char *path, int dir_fd, const char *name, struct error *err)
{
    struct stat before, after;
    if (fstatat(dir_fd, name, &before, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : error_errno(err, "looking at what is there");
    if (!S_ISSOCK(before.st_mode))
        return error_set(err, -EEXIST, "there is something else than a socket; remove it, or choose another path");
    int live = unix_socket_is_live(path);
    if (live == 1)
        return error_set(err, -EADDRINUSE, "another program listens there");
    if (live < 0) {
        errno = -live;
        return error_errno(err, "it can't be told whether another program listens there");
    }
    if (before.st_uid != geteuid())
        return error_set(err, -EPERM, "there is a dead socket of user %u", (unsigned)before.st_uid);

    char aside[UNIX_SOCKET_NAME_BYTES];
    unix_socket_temporary(aside);
    int rc = unix_socket_rename(dir_fd, name, aside);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return error_errno(err, "removing the dead socket");
    if (fstatat(dir_fd, aside, &after, AT_SYMLINK_NOFOLLOW) == 0 &&
        (after.st_ino != before.st_ino || after.st_dev != before.st_dev))
        (void)unix_socket_rename(dir_fd, aside, name); /* somebody was faster: put theirs back, and see it live */
    else
        (void)unlinkat(dir_fd, aside, 0);
    return 0;
}

/* Moves the socket from its temporary name to its path. */
static int unix_socket_publish(const char *path, int dir_fd, const char *from, const char *name, struct error *err)
{
    for (int i = 0; i < UNIX_SOCKET_TRIES; i++) {
        int rc = unix_socket_rename(dir_fd, from, name);
        if (rc != -EEXIST)
            return rc < 0 ? error_errno(err, "giving it its name") : 0;
        rc = unix_socket_remove_dead(path, dir_fd, name, err);
        if (rc < 0)
            return rc;
    }
    return error_set(err, -EADDRINUSE, "others keep taking the path");
}

int unix_socket_open(const char *path, struct unix_socket *out_socket, struct error *err)
{
    if (strlen(path) > UNIX_SOCKET_PATH_MAX_BYTES)
        return error_set(err, -ENAMETOOLONG,
                         "socket '%s': the path has %zu bytes, the kernel allows %zu; choose a shorter one", path,
                         strlen(path), UNIX_SOCKET_PATH_MAX_BYTES);
    const char *name;
    CLEANUP(fd_cleanup) int dir_fd = unix_socket_directory(path, &name, err);
    if (dir_fd < 0)
        return dir_fd;
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return error_set(err, -EINVAL, "socket '%s': that is no file's name", path);
    CLEANUP(fd_cleanup) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_errno(err, "socket '%s'", path);

    char temporary[UNIX_SOCKET_NAME_BYTES];
    unix_socket_temporary(temporary);
    int rc = unix_socket_bind(fd, dir_fd, temporary, err);
    if (rc < 0)
        return error_wrap(err, rc, "socket '%s'", path);
    struct stat file;
    rc = fstatat(dir_fd, temporary, &file, AT_SYMLINK_NOFOLLOW) < 0
             ? error_errno(err, "looking at it")
             : unix_socket_publish(path, dir_fd, temporary, name, err);
    if (rc < 0) {
        (void)unlinkat(dir_fd, temporary, 0);
        return error_wrap(err, rc, "socket '%s'", path);
    }
    *out_socket = (struct unix_socket){.fd = TAKE_FD(fd), .dev = file.st_dev, .inode = file.st_ino};
    return 0;
}

void unix_socket_unlink(const struct unix_socket *of, const char *path)
{
    struct stat file;
    if (lstat(path, &file) == 0 && S_ISSOCK(file.st_mode) && file.st_dev == of->dev && file.st_ino == of->inode)
        (void)unlink(path);
}
