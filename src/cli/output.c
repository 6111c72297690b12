/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
    OUTPUT_CHUNK_BYTES = 64 << 10,
    OUTPUT_GZIP_WINDOW_BITS = 15 + 16, /* zlib: the largest window, and gzip's header */
    OUTPUT_GZIP_MEMORY_LEVEL = 8,      /* zlib's usual one */
    OUTPUT_PART_TRIES_MAX = 100,
};

struct output_gzip {
    z_stream stream;
    unsigned char bytes[OUTPUT_CHUNK_BYTES];
};

static int output_start_gzip(struct output *output, struct error *err)
{
    output->gzip = calloc(1, sizeof *output->gzip);
    if (output->gzip == NULL)
        return error_set(err, -ENOMEM, "no memory to compress");
    if (deflateInit2(&output->gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, OUTPUT_GZIP_WINDOW_BITS,
                     OUTPUT_GZIP_MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK)
        return 0;
    free(output->gzip);
    output->gzip = NULL;
    return error_set(err, -ENOMEM, "no memory to compress");
}

/*
 * Calls `make` with names beside the result's until there is one that nobody else has: neither another conversion to
 * this path, nor one that was left, nor a user's own. `make` returns 0, or -1 with errno set.
 */
static int output_name_part(struct output *output, int (*make)(struct output *output, const char *part_path),
                            struct error *err)
{
    for (unsigned tries = 0; tries < OUTPUT_PART_TRIES_MAX; tries++) {
        char *part_path;
        if (asprintf(&part_path, "%s.%ld-%u.part", output->path, (long)getpid(), tries) < 0)
            return error_set(err, -ENOMEM, "'%s'", output->path);
        if (make(output, part_path) == 0) {
            output->part_path = part_path;
            return 0;
        }
        int rc = error_errno(err, "'%s'", part_path);
        free(part_path);
        if (rc != -EEXIST)
            return rc;
    }
    return error_set(err, -EEXIST, "'%s': remove the files that end in .part beside it", output->path);
}

static int output_make_part(struct output *output, const char *part_path)
{
    output->fd = open(part_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return output->fd < 0 ? -1 : 0;
}

static int output_link_part(struct output *output, const char *part_path)
{
    char own_path[64];
    (void)snprintf(own_path, sizeof own_path, "/proc/self/fd/%d", output->fd);
    return linkat(AT_FDCWD, own_path, AT_FDCWD, part_path, AT_SYMLINK_FOLLOW);
}

/* A file without a name: whatever ends us takes it away. False where the file system or /proc can't do that. */
static bool output_open_unnamed(struct output *output)
{
    char *directory = strdup(output->path);
    if (directory == NULL)
        return false;
    output->fd = open(dirname(directory), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    free(directory);
    if (output->fd >= 0 && access("/proc/self/fd", X_OK) != 0)
        fd_cleanup(&output->fd);
    output->is_unnamed = output->fd >= 0;
    return output->is_unnamed;
}

static int output_open_part(struct output *output, struct error *err)
{
    return output_open_unnamed(output) ? 0 : output_name_part(output, output_make_part, err);
}

static int output_open_file(struct output *output, const char *path, struct error *err)
{
    struct stat status;
    bool is_special = stat(path, &status) == 0 && !S_ISREG(status.st_mode);
    output->path = strdup(path);
    if (output->path == NULL)
        return error_set(err, -ENOMEM, "'%s'", path);
    if (!is_special)
        return output_open_part(output, err);
    output->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return output->fd < 0 ? error_errno(err, "'%s'", path) : 0;
}

int output_open(struct output *output, const char *path, bool is_gzip, struct error *err)
{
    *output = (struct output){.fd = -1};
    buf_init(&output->text, SIZE_MAX);
    int rc = 0;
    if (path == NULL || strcmp(path, "-") == 0)
        output->fd = STDOUT_FILENO;
    else
        rc = output_open_file(output, path, err);
    if (rc == 0 && is_gzip)
        rc = output_start_gzip(output, err);
    if (rc < 0)
        output_close(output);
    return rc;
}

void output_guard_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY); /* the lowest free number: this one */
    }
}

bool output_is_file(const char *path, const struct stat *status)
{
    struct stat other;
    return stat(path, &other) == 0 && S_ISREG(other.st_mode) && other.st_dev == status->st_dev &&
           other.st_ino == status->st_ino;
}

static int output_write(struct output *output, const void *bytes, size_t length, struct error *err)
{
    const char *at = bytes;
    while (length > 0 && !output->is_reader_gone) {
        ssize_t put = write(output->fd, at, length);
        if (put >= 0) {
            at += put;
            length -= (size_t)put;
        } else if (errno == EPIPE) {
            output->is_reader_gone = true;
        } else if (errno != EINTR) {
            return error_errno(err, "writing '%s'", output->path != NULL ? output->path : "standard output");
        }
    }
    return 0;
}

static int output_compress(struct output *output, bool is_last, struct error *err)
{
    z_stream *stream = &output->gzip->stream;
    size_t done = 0;
    do {
        size_t left = output->text.length - done;
        size_t some = left < UINT32_MAX / 2 ? left : UINT32_MAX / 2; /* zlib counts in 32 bits */
        bool is_end = is_last && some == left;
        stream->next_in = left > 0 ? (Bytef *)output->text.data + done : NULL;
        stream->avail_in = (uInt)some;
        do {
            stream->next_out = output->gzip->bytes;
            stream->avail_out = sizeof output->gzip->bytes;
            (void)deflate(stream, is_end ? Z_FINISH : Z_NO_FLUSH); /* fails only for a stream that is none */
            int rc = output_write(output, output->gzip->bytes, sizeof output->gzip->bytes - stream->avail_out, err);
            if (rc < 0)
                return rc;
        } while (stream->avail_out == 0);
        done += some;
    } while (done < output->text.length);
    return 0;
}

static int output_empty(struct output *output, bool is_last, struct error *err)
{
    int rc = buf_status(&output->text, err);
    if (rc < 0)
        return rc;
    output->bytes += output->text.length;
    if (output->gzip != NULL)
        rc = output_compress(output, is_last, err);
    else
        rc = output_write(output, output->text.data, output->text.length, err);
    buf_reset(&output->text);
    return rc;
}

int output_drain(struct output *output, struct error *err)
{
    if (output->text.length < OUTPUT_CHUNK_BYTES && output->text.status == 0)
        return 0;
    return output_empty(output, false, err);
}

int output_finish(struct output *output, struct error *err)
{
    int rc = output_empty(output, true, err);
    if (rc < 0 || output->path == NULL)
        return rc;
    if (output->is_unnamed) {
        rc = output_name_part(output, output_link_part, err);
        if (rc < 0)
            return rc;
    }
    int fd = TAKE_FD(output->fd);
    if (close(fd) != 0)
        return error_errno(err, "writing '%s'", output->path);
    if (output->part_path == NULL)
        return 0;
    if (rename(output->part_path, output->path) != 0)
        return error_errno(err, "naming '%s' '%s'", output->part_path, output->path);
    free(output->part_path);
    output->part_path = NULL;
    return 0;
}

void output_close(struct output *output)
{
    if (output->path != NULL)
        fd_cleanup(&output->fd);
    if (output->part_path != NULL)
        (void)unlink(output->part_path); /* half a file is no use; one that can't be removed stays */
    if (output->gzip != NULL)
        (void)deflateEnd(&output->gzip->stream); /* says that it was not finished, which we know */
    free(output->gzip);
    free(output->path);
    free(output->part_path);
    buf_fini(&output->text);
    *output = (struct output){.fd = -1};
}
