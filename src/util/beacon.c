/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/beacon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/cursor.h"
#include "util/file.h"

enum { BEACON_MODE = 0644 };

static const char beacon_suffix[] = ".beacon";

/* Keys whose values are texts. */
static const struct {
    const char *key;
    size_t offset;
} beacon_fields[] = {
    {"address", offsetof(struct beacon, address)},
    {"http_socket", offsetof(struct beacon, http_socket)},
    {"token_file", offsetof(struct beacon, token_file)},
};

void beacon_socket_path(struct buf *out)
{
    const char *path = getenv("PROXY_PATH");
    if (path != NULL && path[0] != '\0')
        buf_text(out, path);
    else
        buf_printf(out, "/tmp/metric-proxy-%u.socket", (unsigned)getuid());
}

/* Appends the path of the beacon; "" without memory, which no file has. */
static const char *beacon_path(const char *socket_path, struct buf *out)
{
    buf_text(out, socket_path);
    buf_text(out, beacon_suffix);
    return buf_string(out);
}

int beacon_write(const char *socket_path, const struct beacon *beacon, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, BEACON_TEXT_MAX_BYTES);
    buf_printf(&text, "pid=%" PRIdMAX "\n", (intmax_t)beacon->pid);
    for (size_t i = 0; i < ARRAY_LENGTH(beacon_fields); i++) {
        const char *value = (const char *)beacon + beacon_fields[i].offset;
        if (strchr(value, '\n') != NULL)
            return error_set(err, -EINVAL, "'%s' has a newline, which no %s may have", value, beacon_fields[i].key);
        buf_printf(&text, "%s=%s\n", beacon_fields[i].key, value);
    }
    int rc = buf_status(&text, err);
    if (rc < 0)
        return rc;
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, BEACON_TEXT_MAX_BYTES);
    return file_replace(beacon_path(socket_path, &path), text.data, text.length, BEACON_MODE, err);
}

static bool beacon_take(struct cursor line, struct beacon *beacon)
{
    uint64_t pid;
    if (cursor_accept_text(&line, "pid=")) {
        bool is_number = cursor_u64(&line, &pid) && cursor_is_empty(&line) && pid <= INT32_MAX;
        beacon->pid = is_number ? (pid_t)pid : 0;
        return is_number;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(beacon_fields); i++) {
        struct cursor value = line;
        if (!cursor_accept_text(&value, beacon_fields[i].key) || !cursor_accept(&value, '='))
            continue;
        char *field = (char *)beacon + beacon_fields[i].offset;
        size_t length = cursor_left(&value);
        if (length >= BEACON_FIELD_BYTES || memchr(value.at, '\0', length) != NULL)
            return false;
        memcpy(field, value.at, length);
        field[length] = '\0';
        return true;
    }
    return memchr(line.at, '=', cursor_left(&line)) != NULL; /* a key of another version */
}

int beacon_read(const char *socket_path, struct beacon *out_beacon, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf path;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&path, BEACON_TEXT_MAX_BYTES);
    buf_init(&text, BEACON_TEXT_MAX_BYTES);
    const char *name = beacon_path(socket_path, &path);
    struct stat status;
    if (lstat(name, &status) < 0)
        return error_errno(err, "'%s'", name);
    if (!S_ISREG(status.st_mode) || (status.st_uid != getuid() && status.st_uid != 0))
        return error_set(err, -EPERM, "'%s' is not a file of this user or of root", name);
    int rc = file_read(AT_FDCWD, name, &text, err);
    if (rc < 0)
        return rc;
    struct beacon beacon = {0};
    struct cursor rest = cursor_of(text.data, text.length);
    for (struct cursor line; cursor_line(&rest, &line);) {
        if (!beacon_take(line, &beacon))
            return error_set(err, -EINVAL, "'%s': '%.*s' is no line that a proxy writes", name,
                             (int)(cursor_left(&line) < 80 ? cursor_left(&line) : 80), line.at);
    }
    if (beacon.pid == 0)
        return error_set(err, -EINVAL, "'%s' names no process", name);
    *out_beacon = beacon;
    return 0;
}

void beacon_remove(const char *socket_path)
{
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, BEACON_TEXT_MAX_BYTES);
    (void)unlink(beacon_path(socket_path, &path)); /* gone already is as good */
}
