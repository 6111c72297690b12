/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "pfw/pages.h"

struct pfw_file {
    int fd;
    bool is_compressed;
    bool is_torn;  /* behind `size` there may be part of a write that failed */
    uint64_t size; /* up to the end of the last whole piece */
    ino_t inode;
    dev_t device;
    struct pfw_pages *pages;
};

static void file_cleanup(struct pfw_file **file)
{
    (void)pfw_file_close(*file, NULL); /* nothing has been written yet */
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

/* Goes on behind what somebody else made of the file; its last line may lack a newline. */
static int file_adopt(struct pfw_file *file, uint64_t size, struct error *err)
{
    if (!file->is_compressed && size > 0) {
        if (pwrite(file->fd, "\n", 1, (off_t)size) != 1)
            return error_errno(err, "writing");
        size++;
    }
    file->size = size;
    file->is_torn = false;
    return 0;
}

/* Where to write. Somebody else may have cut the file or appended to it: nothing of his is overwritten, no hole made.
 */
static int file_find_end(struct pfw_file *file, struct error *err)
{
    struct statx state;
    int rc = file_ask(file->fd, &state, err);
    if (rc < 0)
        return rc;
    if (file->is_torn && state.stx_size >= file->size)
        return file_mend(file, err);
    return state.stx_size != file->size ? file_adopt(file, state.stx_size, err) : 0;
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
    file->inode = state.stx_ino;
    file->device = makedev(state.stx_dev_major, state.stx_dev_minor);
    /* With O_APPEND, pwrite() would pay no heed to its offset. */
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || ((flags & O_APPEND) != 0 && fcntl(fd, F_SETFL, flags & ~O_APPEND) < 0))
        return error_errno(err, "looking at the trace's descriptor");
    rc = file_find_end(file, err);
    if (rc < 0)
        return rc;
    *out_file = TAKE(file);
    return 0;
}

int pfw_file_close(struct pfw_file *file, struct error *err)
{
    if (file == NULL)
        return 0;
    int rc = close(file->fd) < 0 ? error_errno(err, "closing") : 0;
    pfw_pages_free(file->pages);
    free(file);
    return rc;
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

enum pfw_file_place pfw_file_place(const struct pfw_file *file, const char *path)
{
    struct stat mine, there;
    int rc = stat(path, &there);
    if (rc == 0 && there.st_ino == file->inode && there.st_dev == file->device)
        return PFW_FILE_AT_PATH;
    bool is_path_empty = rc < 0 && (errno == ENOENT || errno == ENOTDIR);
    bool has_name = fstat(file->fd, &mine) < 0 || mine.st_nlink > 0;
    if (is_path_empty)
        return has_name ? PFW_FILE_ELSEWHERE : PFW_FILE_REMOVED;
    /* Another file at the path, or a path that can't be looked at, is no proof that ours has gone. */
    return has_name ? PFW_FILE_AT_PATH : PFW_FILE_REMOVED;
}

uint64_t pfw_file_size(const struct pfw_file *file)
{
    return file->size;
}
