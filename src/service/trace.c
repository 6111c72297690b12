/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/cursor.h"

enum {
    TRACE_PATH_MAX_BYTES = 2 * PATH_MAX,
    TRACE_MODE = 0644,
    TRACE_NAMES_WAIT_MS = 10000,
    TRACE_NUMBERS_MAX = 100000
};

/* Two services that choose their names at once would choose the same one: they take turns through this claim. */
static const char trace_names_kind[] = "names";
static const char trace_file_kind[] = "trace";

/* The names of one prefix on one host. */
struct trace_names {
    char *directory; /* without links */
    char *base;      /* "<prefix>_<host>" */
    const char *suffix;
};

struct trace_numbers {
    uint64_t *numbers; /* [count], rising */
    size_t count;
};

static void trace_names_fini(struct trace_names *names)
{
    free(names->directory);
    free(names->base);
}

static void trace_numbers_fini(struct trace_numbers *numbers)
{
    free(numbers->numbers);
}

static int trace_names_init(const struct trace_request *request, struct trace_names *out_names, struct error *err)
{
    const char *slash = strrchr(request->prefix, '/');
    size_t length = slash == request->prefix ? 1 : (size_t)(slash - request->prefix);
    CLEANUP(memory_cleanup) char *directory = strndup(request->prefix, length);
    if (directory == NULL)
        return error_set(err, -ENOMEM, "no memory for a path");
    out_names->directory = realpath(directory, NULL);
    if (out_names->directory == NULL)
        return error_errno(err, "the directory of the trace, '%s' (from DFTRACER_LOG_FILE)", directory);
    if (asprintf(&out_names->base, "%s_%s", slash + 1, request->host) < 0) {
        out_names->base = NULL;
        return error_set(err, -ENOMEM, "no memory for a path");
    }
    return 0;
}

/* Path number `number`, returned owned, or NULL without memory; 0 is the one without a number. */
static char *trace_path(const struct trace_names *names, uint64_t number)
{
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, TRACE_PATH_MAX_BYTES);
    buf_printf(&path, "%s/%s", names->directory, names->base);
    if (number != 0)
        buf_printf(&path, ".%" PRIu64, number);
    buf_text(&path, names->suffix);
    const char *text = buf_string(&path);
    return path.status == 0 ? strdup(text) : NULL;
}

static int trace_no_memory(struct error *err)
{
    return error_set(err, -ENOMEM, "no memory for the path of a trace");
}

/* The number in "<base>.<n><suffix>"; false when `name` is none of ours. */
static bool trace_number(const struct trace_names *names, const char *name, uint64_t *out_number)
{
    struct cursor cursor = cursor_of(name, strlen(name));
    return cursor_accept_text(&cursor, names->base) && cursor_accept(&cursor, '.') && !cursor_is_empty(&cursor) &&
           *cursor.at >= '1' && *cursor.at <= '9' && cursor_u64(&cursor, out_number) &&
           cursor_equals(&cursor, names->suffix) && *out_number < UINT64_MAX;
}

static int trace_compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The numbers that are taken. */
static int trace_numbers_read(const struct trace_names *names, struct trace_numbers *out_numbers, struct error *err)
{
    CLEANUP(dir_cleanup) DIR *dir = opendir(names->directory);
    if (dir == NULL)
        return error_errno(err, "reading the directory of the trace, '%s'", names->directory);
    size_t capacity = 0;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL && out_numbers->count < TRACE_NUMBERS_MAX) {
        uint64_t number;
        if (!trace_number(names, entry->d_name, &number))
            continue;
        if (out_numbers->count == capacity) {
            capacity = capacity == 0 ? 16 : capacity * 2;
            uint64_t *numbers = realloc(out_numbers->numbers, capacity * sizeof *numbers);
            if (numbers == NULL)
                return error_set(err, -ENOMEM, "no memory for the list of traces");
            out_numbers->numbers = numbers;
        }
        out_numbers->numbers[out_numbers->count++] = number;
    }
    if (out_numbers->count > 1)
        qsort(out_numbers->numbers, out_numbers->count, sizeof *out_numbers->numbers, trace_compare);
    return 0;
}

/* Renames without ever replacing: another node of the same short name may have made the file a moment ago. */
static int trace_rename(const char *from, const char *to, struct error *err)
{
    if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != ENOSYS && errno != EINVAL)
        return error_errno(err, "renaming '%s' to '%s'", from, to);
    /* What a file system without that flag has instead, and what one without hard links has. */
    struct stat there;
    int rc = link(from, to);
    if (rc == 0)
        rc = unlink(from);
    else if (errno != EEXIST && lstat(to, &there) < 0 && errno == ENOENT)
        rc = rename(from, to);
    return rc == 0 ? 0 : error_errno(err, "renaming '%s' to '%s'", from, to);
}

static uint64_t trace_numbers_next(const struct trace_numbers *numbers)
{
    return numbers->count > 0 ? numbers->numbers[numbers->count - 1] + 1 : 1;
}

static int trace_create(const char *path, int *out_fd, struct error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, TRACE_MODE);
    if (fd < 0)
        return error_errno(err, "creating the trace '%s'", path);
    *out_fd = fd;
    return 0;
}

/* The first number whose file can be ours. */
static int trace_open_numbered(const struct trace_names *names, const struct trace_numbers *numbers,
                               struct trace *out_trace, struct error *err)
{
    uint64_t number = trace_numbers_next(numbers);
    for (int rc = -EEXIST; rc == -EEXIST; number++) {
        CLEANUP(memory_cleanup) char *path = trace_path(names, number);
        if (path == NULL)
            return trace_no_memory(err);
        rc = claim_take(trace_file_kind, path, 0, &out_trace->claim, err);
        if (rc < 0)
            return rc;
        rc = trace_create(path, &out_trace->fd, err);
        if (rc == 0)
            out_trace->path = TAKE(path);
        else
            claim_drop(&out_trace->claim);
        if (rc < 0 && rc != -EEXIST)
            return rc;
    }
    return 0;
}

/* The path without a number is ours: what lies there makes room. */
static int trace_open_first(const struct trace_names *names, const struct trace_numbers *numbers, const char *path,
                            struct buf *notes, int *out_fd, struct error *err)
{
    struct stat there;
    if (lstat(path, &there) == 0) {
        if (there.st_uid != geteuid())
            return error_set(err, -EEXIST, "'%s' belongs to another user", path);
        CLEANUP(memory_cleanup) char *kept = trace_path(names, trace_numbers_next(numbers));
        if (kept == NULL)
            return trace_no_memory(err);
        int rc = trace_rename(path, kept, err);
        if (rc < 0)
            return rc;
        buf_printf(notes, "an earlier trace was renamed to '%s'\n", kept);
    }
    return trace_create(path, out_fd, err);
}

/* Does a service write this file now? */
static bool trace_has_owner(const char *path)
{
    CLEANUP(fd_cleanup) int fd = -1;
    return claim_find(trace_file_kind, path, &fd, NULL) == 0 && claim_is_held(fd);
}

/* Removes one trace, unless a service takes it at this moment. */
static bool trace_remove(const char *path)
{
    struct claim claim = CLAIM_NONE;
    if (claim_take(trace_file_kind, path, 0, &claim, NULL) < 0)
        return false;
    bool is_removed = unlink(path) == 0;
    claim_drop(&claim);
    return is_removed;
}

/* Removes the oldest of the numbered traces that nobody writes, until `keep` of them are left. */
static void trace_remove_oldest(const struct trace_names *names, unsigned keep, struct buf *notes)
{
    CLEANUP(trace_numbers_fini) struct trace_numbers numbers = {0};
    if (trace_numbers_read(names, &numbers, NULL) < 0)
        return; /* they stay, which harms nobody */
    size_t kept = 0;
    for (size_t i = numbers.count; i > 0; i--) { /* from the newest, so that the first `keep` are those that stay */
        CLEANUP(memory_cleanup) char *path = trace_path(names, numbers.numbers[i - 1]);
        if (path == NULL)
            return;
        if (trace_has_owner(path))
            continue;
        if (kept < keep)
            kept++;
        else if (trace_remove(path))
            buf_printf(notes, "an old trace, '%s', was removed: DFTRACER_KEEP is %u\n", path, keep);
    }
}

/* The path without a number, if nobody writes it. */
static int trace_open_unnumbered(const struct trace_names *names, const struct trace_numbers *numbers, const char *path,
                                 struct buf *notes, struct trace *out_trace, struct error *err)
{
    CLEANUP(memory_cleanup) char *copy = strdup(path);
    if (copy == NULL)
        return trace_no_memory(err);
    int rc = claim_take(trace_file_kind, path, 0, &out_trace->claim, err);
    if (rc < 0)
        return rc;
    rc = trace_open_first(names, numbers, path, notes, &out_trace->fd, err);
    if (rc < 0)
        claim_drop(&out_trace->claim);
    else
        out_trace->path = TAKE(copy);
    return rc;
}

/* Chooses and creates the file, while nobody else of this prefix does. */
static int trace_choose(const struct trace_names *names, const char *path, struct buf *notes, struct trace *out_trace,
                        struct error *err)
{
    CLEANUP(trace_numbers_fini) struct trace_numbers numbers = {0};
    int rc = trace_numbers_read(names, &numbers, err);
    if (rc < 0)
        return rc;
    rc = trace_open_unnumbered(names, &numbers, path, notes, out_trace, err);
    if (rc != -EWOULDBLOCK && rc != -EEXIST)
        return rc;
    const char *why = rc == -EEXIST ? "belongs to another user" : "is being written by another service of this host";
    rc = trace_open_numbered(names, &numbers, out_trace, err);
    if (rc == 0)
        buf_printf(notes, "'%s' %s: this service writes '%s'\n", path, why, out_trace->path);
    return rc;
}

int trace_open(const struct trace_request *request, struct buf *notes, struct trace *out_trace, struct error *err)
{
    CLEANUP(trace_names_fini) struct trace_names names = {.suffix = request->is_compressed ? ".pfw.gz" : ".pfw"};
    CLEANUP(claim_drop) struct claim turn = CLAIM_NONE;
    struct trace trace = TRACE_NONE;
    int rc = trace_names_init(request, &names, err);
    if (rc < 0)
        return rc;
    CLEANUP(memory_cleanup) char *path = trace_path(&names, 0);
    if (path == NULL)
        return trace_no_memory(err);
    rc = claim_take(trace_names_kind, path, TRACE_NAMES_WAIT_MS, &turn, err);
    if (rc == 0)
        rc = trace_choose(&names, path, notes, &trace, err);
    if (rc < 0) {
        trace_close(&trace);
        return rc;
    }
    trace_remove_oldest(&names, request->keep, notes);
    *out_trace = trace;
    return 0;
}

void trace_close(struct trace *trace)
{
    if (trace->fd >= 0)
        close(trace->fd);
    free(trace->path);
    claim_drop(&trace->claim);
    *trace = TRACE_NONE;
}
