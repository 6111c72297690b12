/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/auth_token.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/file.h"

enum { AUTH_TOKEN_RANDOM_BYTES = 32, AUTH_TOKEN_PATH_MAX_BYTES = 4096 };

static int auth_token_check_file(int fd, struct error *err)
{
    struct stat file;
    if (fstat(fd, &file) < 0)
        return error_errno(err, "looking at it");
    if (!S_ISREG(file.st_mode))
        return error_set(err, -EINVAL, "it is no regular file");
    if (file.st_uid != geteuid() && file.st_uid != 0)
        return error_set(err, -EPERM, "it belongs to user %u", (unsigned)file.st_uid);
    if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return error_set(err, -EPERM, "others may use it (mode %03o); run chmod 600", (unsigned)file.st_mode & 0777);
    return 0;
}

static int auth_token_take(const char *text, size_t length, struct auth_token *out_token, struct error *err)
{
    if (length > 0 && text[length - 1] == '\n')
        length--;
    if (length < AUTH_TOKEN_MIN_BYTES || length > AUTH_TOKEN_MAX_BYTES)
        return error_set(err, -EINVAL, "a token has %d to %d characters, this one %zu", AUTH_TOKEN_MIN_BYTES,
                         AUTH_TOKEN_MAX_BYTES, length);
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return error_set(err, -EINVAL, "a token has printable ASCII characters and no blanks");
    *out_token = (struct auth_token){.length = length};
    memcpy(out_token->text, text, length);
    return 0;
}

static int auth_token_read_open(int fd, struct auth_token *out_token, struct error *err)
{
    char text[AUTH_TOKEN_MAX_BYTES + 2];
    int rc = auth_token_check_file(fd, err);
    if (rc < 0)
        return rc;
    size_t length = 0;
    while (length < sizeof text) {
        ssize_t got = read(fd, text + length, sizeof text - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_errno(err, "reading it");
        if (got == 0)
            break;
        length += (size_t)got;
    }
    return auth_token_take(text, length, out_token, err);
}

int auth_token_read(const char *path, struct auth_token *out_token, struct error *err)
{
    /* A link could lead to what root, but not its maker, may read; a pipe would wait. */
    CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_errno(err, "token '%s'", path);
    int rc = auth_token_read_open(fd, out_token, err);
    return rc < 0 ? error_wrap(err, rc, "token '%s'", path) : 0;
}

static int auth_token_write(int fd, struct error *err)
{
    uint8_t random[AUTH_TOKEN_RANDOM_BYTES];
    char text[2 * AUTH_TOKEN_RANDOM_BYTES + 2];
    if (RAND_bytes(random, sizeof random) != 1)
        return error_set(err, -EIO, "libcrypto has no random bytes");
    for (size_t i = 0; i < sizeof random; i++)
        (void)snprintf(text + 2 * i, sizeof text - 2 * i, "%02x%s", random[i], i + 1 == sizeof random ? "\n" : "");
    int rc = file_write_all(fd, text, strlen(text), err);
    if (rc == 0 && fsync(fd) < 0)
        rc = error_errno(err, "writing it");
    return rc;
}

/* Written under another name first, and then named without replacing: nobody reads half a token, or one of two. */
static int auth_token_create(const char *path, struct error *err)
{
    char temporary[AUTH_TOKEN_PATH_MAX_BYTES];
    int length = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (length < 0 || (size_t)length >= sizeof temporary)
        return error_set(err, -ENAMETOOLONG, "the path is too long");
    CLEANUP(fd_cleanup) int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return error_errno(err, "creating it");
    int rc = auth_token_write(fd, err);
    if (rc == 0 && renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    if (rc == 0 && (errno == EINVAL || errno == ENOSYS) && link(temporary, path) == 0)
        rc = 0; /* a file system without that flag */
    else if (rc == 0 && errno != EEXIST)
        rc = error_errno(err, "creating it");
    (void)unlink(temporary);
    return rc; /* 0 as well when another one was faster: that is the token then */
}

int auth_token_read_or_create(const char *path, struct auth_token *out_token, struct error *err)
{
    int rc = auth_token_read(path, out_token, err);
    if (rc != -ENOENT)
        return rc;
    rc = auth_token_create(path, err);
    if (rc < 0)
        return error_wrap(err, rc, "token '%s'", path);
    return auth_token_read(path, out_token, err);
}
