/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/procfile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum {
    PROCFILE_FIRST_BYTES = 4096,
    PROCFILE_PAGE_BYTES = 4096, /* the kernel's smallest */
};

int procfile_open(struct procfile *file, const char *root, const char *name, struct error *err)
{
    *file = PROCFILE_CLOSED;
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", root, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return error_set(err, -EMSGSIZE, "the path '%.100s…/%s' is too long", root, name);

    CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, "opening '%s'", path);
    file->path = strdup(path);
    if (file->path == NULL)
        return error_set(err, -ENOMEM, "opening '%s': no memory", path);
    file->fd = TAKE_FD(fd);
    return 0;
}

void procfile_close(struct procfile *file)
{
    fd_cleanup(&file->fd);
    free(file->path);
    free(file->text);
    *file = PROCFILE_CLOSED;
}

static int procfile_grow(struct procfile *file, struct error *err)
{
    size_t capacity = file->capacity == 0 ? PROCFILE_FIRST_BYTES : 2 * file->capacity;
    if (capacity > PROCFILE_MAX_BYTES)
        return error_set(err, -E2BIG, "'%s' is larger than %d bytes", file->path, PROCFILE_MAX_BYTES);
    char *text = realloc(file->text, capacity);
    if (text == NULL)
        return error_set(err, -ENOMEM, "reading '%s': no memory for %zu bytes", file->path, capacity);
    file->text = text;
    file->capacity = capacity;
    return 0;
}

/* Is what the first read() gave all there is? */
static bool procfile_is_whole(const struct procfile *file, size_t got)
{
    return file->line_max_bytes > 0 && got + file->line_max_bytes < PROCFILE_PAGE_BYTES;
}

int procfile_read(struct procfile *file, struct error *err)
{
    assert(file->fd >= 0);
    file->length = 0;
    /* The kernel gives long texts in pieces of a page or so: else only 0 bytes are the end. */
    for (size_t length = 0;;) {
        if (length == file->capacity) {
            int rc = procfile_grow(file, err);
            if (rc < 0)
                return rc;
        }
        ssize_t got = pread(file->fd, file->text + length, file->capacity - length, (off_t)length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_errno(err, "reading '%s'", file->path);
        length += (size_t)got;
        if (got == 0 || procfile_is_whole(file, length)) {
            file->length = length;
            return 0;
        }
    }
}

bool procfile_numbers(struct cursor *line, uint64_t *numbers, size_t max, size_t *out_count)
{
    size_t count = 0;
    bool is_good = true;
    for (; count < max; count++) {
        cursor_skip_blanks(line);
        if (cursor_is_empty(line))
            break;
        is_good = cursor_u64(line, &numbers[count]) && (cursor_is_empty(line) || *line->at == ' ' || *line->at == '\t');
        if (!is_good)
            break;
    }
    *out_count = count;
    return is_good;
}
