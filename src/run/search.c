/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/search.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cursor.h"

static bool search_is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISDIR(status.st_mode) && access(path, X_OK) == 0;
}

int search_program(const char *command, struct buf *out_path, struct error *err)
{
    const char *list = getenv("PATH");
    bool has_slash = strchr(command, '/') != NULL;
    bool is_there = has_slash && access(command, F_OK) == 0;
    size_t before = out_path->length;
    struct cursor rest = cursor_of(list, list != NULL && !has_slash ? strlen(list) : 0);
    if (has_slash)
        buf_text(out_path, command);
    if (has_slash && search_is_program(command))
        return buf_status(out_path, err);
    while (!cursor_is_empty(&rest)) {
        const char *colon = memchr(rest.at, ':', cursor_left(&rest));
        const char *end = colon != NULL ? colon : rest.end;
        buf_truncate(out_path, before);
        buf_printf(out_path, "%.*s%s%s", (int)(end - rest.at), rest.at, end > rest.at ? "/" : "", command);
        rest.at = colon != NULL ? colon + 1 : rest.end;
        if (search_is_program(buf_string(out_path) + before))
            return buf_status(out_path, err);
        is_there = is_there || access(buf_string(out_path) + before, F_OK) == 0;
    }
    return is_there ? error_set(err, -EACCES, "'%s' can't be executed: is it a program, and may you run it?", command)
                    : error_set(err, -ENOENT, "command '%s' not found", command);
}
