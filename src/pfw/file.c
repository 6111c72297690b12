/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pfw/pages.h"

struct pfw_file {
    int fd;
    bool is_compressed;
    bool is_torn;  /* behind `size` there may be part of a write that failed */
    uint64_t size; /* up to the end of the last whole piece */
    struct pfw_pages *pages;
};

static void file_cleanup(struct pfw_file **file)
{
    pfw_file_free(*file);
}

/* Size and number of names, without the times: asking for those makes NFS write back all that is cached. */
static int file_ask(int fd, struct statx *out_state, struct error *err)
{
    if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE | STATX_NLINK | STATX_INO, out_state) < 0)
        return error_errno(err, "asking for the size of the trace");
    return 0;
}

/* Cuts off what a failed write left, and gives the last plain line its newline again if that was overwritten. */
static int file_mend(struct pfw_file *file, struct error *err)
{
    if (ftruncate(file->fd, (off_t)file->size) < 0)
        return error_errno(err, "cutting off a part that was not written whole");
    if (!file->is_compressed && file->size > 0 && pwrite(file->fd, "\n", 1, (off_t)file->size - 1) != 1)
        return error_errno(err, "mending the last line");
    file->is_torn = false;
    return 0;
}

/* Where to write. Somebody else may have cut the file or appended to it: nothing of his is overwritten, no hole made.
 */
static int file_find_end(struct pfw_file *file, struct error *err)
{
    if (file->is_torn)
        return file_mend(file, err);
    struct statx state;
    int rc = file_ask(file->fd, &state, err);
    if (rc < 0)
        return rc;
    file->size = state.stx_size;
    return 0;
}

/* Writes the batch; what isn't whole is cut off again. */
static int file_write(struct pfw_file *file, const struct pfw_batch *batch, size_t *out_lines, struct error *err)
{
    size_t written = 0;
    int rc = 0;
    while (written < batch->length) {
        ssize_t count =
            pwrite(file->fd, batch->bytes + written, batch->length - written, (off_t)(batch->offset + written));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            if (count == 0)
                errno = EIO; /* a regular file takes something or says why not */
            rc = error_errno(err, "writing");
            break;
        }
        written += (size_t)count;
    }
    size_t whole = pfw_pages_whole(file->pages, written, out_lines);
    if (whole > 0)
        file->size = batch->offset + whole;
    if (written > whole) {
        file->is_torn = true;
        (void)file_mend(file, NULL); /* fails: the next append tries again before it writes */
    }
    return rc;
}

int pfw_file_new(int fd, bool is_compressed, struct pfw_file **out_file, struct error *err)
{
    CLEANUP(file_cleanup) struct pfw_file *file = malloc(sizeof *file);
    if (file == NULL) {
        close(fd);
        return error_set(err, -ENOMEM, "no memory for a trace");
    }
    *file = (struct pfw_file){.fd = fd, .is_compressed = is_compressed};
    file->pages = pfw_pages_new(is_compressed);
    if (file->pages == NULL)
        return error_set(err, -ENOMEM, "no memory for a trace");

    struct statx state;
    int rc = file_ask(fd, &state, err);
    if (rc < 0)
        return rc;
    if (!S_ISREG(state.stx_mode))
        return error_set(err, -EINVAL, "a trace must be a regular file");
    file->size = state.stx_size;
    *out_file = TAKE(file);
    return 0;
}

void pfw_file_free(struct pfw_file *file)
{
    if (file == NULL)
        return;
    if (file->fd >= 0)
        close(file->fd);
    pfw_pages_free(file->pages);
    free(file);
}

int pfw_file_append(struct pfw_file *file, const char *lines, size_t length, size_t *out_taken, struct error *err)
{
    *out_taken = 0;
    assert(length == 0 || lines[length - 1] == '\n');
    int rc = file_find_end(file, err);
    while (rc == 0 && *out_taken < length) {
        struct pfw_batch batch;
        rc = pfw_pages_lay(file->pages, file->size, lines + *out_taken, length - *out_taken, &batch);
        if (rc < 0)
            return error_set(err, rc, "no memory for a line of a trace");
        size_t taken;
        rc = file_write(file, &batch, &taken, err);
        *out_taken += taken;
    }
    return rc;
}

int pfw_file_sync(struct pfw_file *file, struct error *err)
{
    return fdatasync(file->fd) < 0 ? error_errno(err, "syncing") : 0;
}

bool pfw_file_is_at(const struct pfw_file *file, const char *path)
{
    struct stat mine, there;
    if (fstat(file->fd, &mine) < 0 || stat(path, &there) < 0)
        return false;
    return mine.st_nlink > 0 && mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

uint64_t pfw_file_size(const struct pfw_file *file)
{
    return file->size;
}
