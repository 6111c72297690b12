/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <sha2.h>

#include "util/cleanup.h"

enum { FILE_READ_STEP_BYTES = 4096, FILE_TEMPORARY_TRIES = 16, FILE_TEMPORARY_STEM_MAX = 180 };

/* The path of the directory that holds `path`, which is cut there in place; returns the last component. */
static const char *file_split(char *path, const char **out_directory)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        *out_directory = ".";
        return path;
    }
    *out_directory = slash == path ? "/" : path;
    *slash = '\0';
    return slash + 1;
}

/* Reads until the end of `fd`. At the limit one byte more is asked for, to tell a file that fits from a longer one. */
static int file_read_rest(int fd, struct buf *out)
{
    for (;;) {
        char beyond;
        size_t room = out->max - out->length;
        size_t want = room < FILE_READ_STEP_BYTES ? room : FILE_READ_STEP_BYTES;
        char *to = want > 0 ? buf_reserve(out, want) : &beyond;
        if (to == NULL)
            return out->status;
        ssize_t got = read(fd, to, want > 0 ? want : 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            return 0;
        if (want == 0) {
            (void)buf_reserve(out, 1); /* makes the limit stick */
            return out->status;
        }
        buf_commit(out, (size_t)got);
    }
}

int file_read(int dir_fd, const char *path, struct buf *out, struct error *err)
{
    if (out->status != 0)
        return buf_status(out, err);
    /* Non-blocking: a FIFO that somebody put there must not hold us. Regular files don't care. */
    CLEANUP(fd_cleanup) int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_errno(err, "opening '%s'", path);
    struct stat status;
    if (fstat(fd, &status) != 0)
        return error_errno(err, "opening '%s'", path);
    if (S_ISFIFO(status.st_mode))
        return error_set(err, -EINVAL, "'%s' is a pipe, not a file", path);

    size_t start = out->length;
    int rc = file_read_rest(fd, out);
    if (rc == 0)
        return 0;
    buf_truncate(out, start);
    if (rc == out->status)
        return error_wrap(err, buf_status(out, err), "reading '%s'", path);
    errno = -rc;
    return error_errno(err, "reading '%s'", path);
}

int file_write_all(int fd, const void *bytes, size_t length, struct error *err)
{
    const char *at = bytes;
    while (length > 0) {
        ssize_t wrote = write(fd, at, length);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return error_errno(err, "writing %zu bytes", length);
        if (wrote == 0)
            return error_set(err, -EIO, "writing %zu bytes: the file system takes none and says no reason", length);
        at += wrote;
        length -= (size_t)wrote;
    }
    return 0;
}

/* A new file beside `name`. `out_name` has a stem to recognise it by, should a SIGKILL leave it behind. */
static int file_open_temporary(int dir_fd, const char *name, mode_t mode, char out_name[NAME_MAX + 1])
{
    for (int i = 0; i < FILE_TEMPORARY_TRIES; i++) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
            random = (uint64_t)getpid() << 8 | (uint64_t)i; /* early in boot: O_EXCL decides anyway */
        (void)snprintf(out_name, NAME_MAX + 1, ".%.*s.%016llx.tmp", FILE_TEMPORARY_STEM_MAX, name,
                       (unsigned long long)random);
        int fd = openat(dir_fd, out_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Writes, syncs and closes `fd`, which it takes: some file systems tell only at close() that the disk is full. */
static int file_write_synced(int fd, const void *bytes, size_t length, struct error *err)
{
    CLEANUP(fd_cleanup) int owned = fd;
    int rc = file_write_all(owned, bytes, length, err);
    if (rc != 0)
        return rc;
    if (fsync(owned) != 0)
        return error_errno(err, "writing it to disk");
    if (close(TAKE_FD(owned)) != 0)
        return error_errno(err, "closing");
    return 0;
}

int file_replace(const char *path, const void *bytes, size_t length, mode_t mode, struct error *err)
{
    CLEANUP(memory_cleanup) char *copy = strdup(path);
    if (copy == NULL)
        return error_set(err, -ENOMEM, "'%s'", path);
    const char *directory;
    const char *name = file_split(copy, &directory);
    if (name[0] == '\0')
        return error_set(err, -EINVAL, "'%s' names no file", path);
    /* Opened first: once the new file is in place, nothing but the sync itself may fail. */
    CLEANUP(fd_cleanup) int dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return error_errno(err, "opening directory '%s'", directory);

    char temporary[NAME_MAX + 1];
    int fd = file_open_temporary(dir_fd, name, mode, temporary);
    if (fd < 0)
        return error_errno(err, "creating a file in '%s'", directory);
    int rc = file_write_synced(fd, bytes, length, err);
    if (rc == 0 && renameat(dir_fd, temporary, dir_fd, name) != 0)
        rc = error_errno(err, "renaming the new file");
    if (rc != 0) {
        (void)unlinkat(dir_fd, temporary, 0); /* the first failure is the one to report */
        return error_wrap(err, rc, "'%s'", path);
    }
    if (fsync(dir_fd) != 0 && errno != EINVAL) /* EINVAL: a file system that can't sync directories */
        return error_errno(err, "'%s' is replaced, but may be lost with the power: syncing '%s'", path, directory);
    return 0;
}

static bool file_is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* One directory. Whatever mkdir() says (a read-only or foreign parent), one that is there is fine. */
static int file_make_directory(const char *path, mode_t mode, struct error *err)
{
    if (mkdir(path, mode) == 0)
        return 0;
    int reason = errno;
    if (file_is_directory(path))
        return 0;
    errno = reason == EEXIST ? ENOTDIR : reason;
    return error_errno(err, "creating directory '%s'", path);
}

int file_make_directories(const char *path, mode_t mode, struct error *err)
{
    if (path[0] == '\0')
        return error_set(err, -ENOENT, "creating directory '': it has no name");
    CLEANUP(memory_cleanup) char *copy = strdup(path);
    if (copy == NULL)
        return error_set(err, -ENOMEM, "'%s'", path);
    for (char *slash = strchr(copy + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int rc = file_make_directory(copy, mode | S_IWUSR | S_IXUSR, err); /* else its child couldn't be made */
        if (rc != 0)
            return rc;
        *slash = '/';
    }
    return file_make_directory(copy, mode, err);
}

static bool file_is_plain(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || character == '.' || character == '_' || character == '-';
}

static const char file_hex[] = "0123456789ABCDEF";

/* "%-" and the hash as hex digits. No escape looks so, thus no uncut name does. */
enum { FILE_HASH_BYTES = 16, FILE_HASH_TEXT_BYTES = 2 + 2 * FILE_HASH_BYTES };

/* The first half of SHA-256: long enough that nobody finds two texts with the same, on purpose or not. */
static void file_write_hash(const char *text, char out_name[FILE_HASH_TEXT_BYTES])
{
    SHA2_CTX hash;
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256Init(&hash);
    SHA256Update(&hash, (const uint8_t *)text, strlen(text));
    SHA256Final(digest, &hash);
    out_name[0] = '%';
    out_name[1] = '-';
    for (size_t i = 0; i < FILE_HASH_BYTES; i++) {
        out_name[2 + 2 * i] = file_hex[digest[i] >> 4];
        out_name[3 + 2 * i] = file_hex[digest[i] & 15];
    }
}

void file_safe_name(const char *text, struct buf *out)
{
    char name[FILE_NAME_MAX_BYTES];
    size_t length = 0;
    size_t cut = 0; /* where the name ends if it has to make room for the hash */
    for (const char *at = text; *at != '\0'; at++) {
        bool is_plain = file_is_plain(*at) && !(at == text && *at == '.');
        size_t bytes = is_plain ? 1 : 3;
        if (length + bytes > sizeof name) {
            file_write_hash(text, name + cut);
            length = cut + FILE_HASH_TEXT_BYTES;
            break;
        }
        unsigned char byte = (unsigned char)*at;
        name[length] = is_plain ? *at : '%';
        if (!is_plain) {
            name[length + 1] = file_hex[byte >> 4];
            name[length + 2] = file_hex[byte & 15];
        }
        length += bytes;
        if (length <= sizeof name - FILE_HASH_TEXT_BYTES)
            cut = length;
    }
    if (length == 0)
        name[length++] = '%'; /* the name of "": an escape has two digits after it */
    buf_bytes(out, name, length);
}

int file_lock(int fd, struct error *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET}; /* length 0: all of it */
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    if (errno == EAGAIN || errno == EACCES)
        return error_set(err, -EWOULDBLOCK, "locked by somebody else");
    return error_errno(err, "locking");
}

void file_unlock(int fd)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    (void)fcntl(fd, F_OFD_SETLK, &lock); /* fails only when `fd` isn't open, and then there is no lock either */
}

int file_private_directory(const char *path, struct error *err)
{
    if (mkdir(path, S_IRWXU) != 0 && errno != EEXIST)
        return error_errno(err, "creating directory '%s'", path);
    CLEANUP(fd_cleanup) int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return error_set(err, -ENOTDIR, "'%s' is a link or a file, not a directory", path);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        return error_errno(err, "opening directory '%s'", path);
    if (status.st_uid != geteuid())
        return error_set(err, -EPERM, "'%s' belongs to user %u, not to us", path, (unsigned)status.st_uid);
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return error_set(err, -EPERM, "'%s' may be written by others (mode %04o)", path, status.st_mode & 07777U);
    if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return error_errno(err, "'%s' may not be written", path);
    return 0;
}

int file_node_directory(struct buf *out, struct error *err)
{
    static const struct {
        const char *before_uid, *after_uid;
    } places[] = {{"/dev/shm/cicada-", ""}, {"/run/user/", "/cicada"}, {"/tmp/cicada-", ""}};
    CLEANUP(buf_cleanup) struct buf reasons;
    buf_init(&reasons, ERROR_TEXT_MAX_BYTES);
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
        char path[64];
        struct error reason = {0};
        (void)snprintf(path, sizeof path, "%s%u%s", places[i].before_uid, (unsigned)geteuid(), places[i].after_uid);
        if (file_private_directory(path, &reason) == 0) {
            buf_text(out, path);
            return buf_status(out, err);
        }
        buf_printf(&reasons, "%s%s", i > 0 ? "; " : "", reason.text);
    }
    return error_set(err, -EACCES, "no directory for this node's state: %s", buf_string(&reasons));
}
