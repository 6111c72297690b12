/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/cgrouppath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/file.h"

enum { CGROUPPATH_TEXT_MAX_BYTES = 1 << 16, CGROUPPATH_LINES_MAX = 32 };

/* The controllers of version 1 whose numbers we want. */
static const char *const cgrouppath_controllers[] = {"cpuacct", "cpu", "memory", "blkio", "pids"};

struct cgrouppath_lines {
    size_t count;
    struct cgrouppath_line list[CGROUPPATH_LINES_MAX];
};

/* Where version 2 may be mounted below /sys/fs/cgroup: as all there is, or beside version 1. */
static const char *const cgrouppath_v2_roots[] = {"", "/unified"};

static bool cgrouppath_is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool cgrouppath_is_same(struct cursor a, struct cursor b)
{
    return cursor_left(&a) == cursor_left(&b) && memcmp(a.at, b.at, cursor_left(&a)) == 0;
}

/* Takes the text up to `separator` and the separator itself. */
static bool cgrouppath_take(struct cursor *text, char separator, struct cursor *out_part)
{
    const char *end = memchr(text->at, separator, cursor_left(text));
    if (end == NULL)
        return false;
    *out_part = (struct cursor){.at = text->at, .end = end};
    text->at = end + 1;
    return true;
}

/* Takes the next part between slashes. */
static bool cgrouppath_component(struct cursor *path, struct cursor *out_component)
{
    while (cursor_accept(path, '/'))
        continue;
    if (cursor_is_empty(path))
        return false;
    const char *slash = memchr(path->at, '/', cursor_left(path));
    *out_component = (struct cursor){.at = path->at, .end = slash != NULL ? slash : path->end};
    path->at = out_component->end;
    return true;
}

/* A path that begins above the root of our name space has "..": its cgroup can't be seen from here. */
static bool cgrouppath_is_good(struct cursor path)
{
    if (cursor_is_empty(&path) || *path.at != '/' || memchr(path.at, '\0', cursor_left(&path)) != NULL)
        return false;
    struct cursor component;
    while (cgrouppath_component(&path, &component)) {
        if (cursor_equals(&component, ".."))
            return false;
    }
    return true;
}

bool cgrouppath_next_line(struct cursor *text, struct cgrouppath_line *out_line)
{
    struct cursor line;
    while (cursor_line(text, &line)) {
        struct cursor number;
        struct cursor controllers;
        if (cgrouppath_take(&line, ':', &number) && cgrouppath_take(&line, ':', &controllers) &&
            cgrouppath_is_good(line)) {
            *out_line = (struct cgrouppath_line){.controllers = controllers, .path = line};
            return true;
        }
    }
    return false;
}

/* Is it "job_" and a number, as Slurm calls a job's cgroup? */
static bool cgrouppath_is_job(struct cursor component)
{
    uint64_t job;
    return cursor_accept_text(&component, "job_") && cursor_u64(&component, &job) && cursor_is_empty(&component);
}

struct cursor cgrouppath_job(struct cursor path)
{
    struct cursor rest = path;
    struct cursor component;
    while (cgrouppath_component(&rest, &component)) {
        if (cgrouppath_is_job(component))
            return (struct cursor){.at = path.at, .end = component.end};
    }
    return path;
}

/* The last component; empty for the root. `*out_depth` is how many there are. */
static struct cursor cgrouppath_name(struct cursor path, size_t *out_depth)
{
    struct cursor name = {.at = path.end, .end = path.end};
    *out_depth = 0;
    while (cgrouppath_component(&path, &name))
        ++*out_depth;
    return name;
}

static bool cgrouppath_has_controller(struct cursor controllers, const char *wanted)
{
    struct cursor one;
    while (cgrouppath_take(&controllers, ',', &one)) {
        if (cursor_equals(&one, wanted))
            return true;
    }
    return cursor_equals(&controllers, wanted);
}

static bool cgrouppath_is_wanted(const struct cgrouppath_line *line)
{
    if (cursor_is_empty(&line->controllers))
        return true;
    for (size_t i = 0; i < ARRAY_LENGTH(cgrouppath_controllers); i++) {
        if (cgrouppath_has_controller(line->controllers, cgrouppath_controllers[i]))
            return true;
    }
    return false;
}

/* The path that tells best which job it is. */
static struct cursor cgrouppath_best(const struct cgrouppath_lines *lines)
{
    struct cursor best = lines->list[0].path;
    size_t best_depth = 0;
    bool is_best_job = false;
    for (size_t i = 0; i < lines->count; i++) {
        size_t depth;
        bool is_job = cgrouppath_is_job(cgrouppath_name(lines->list[i].path, &depth));
        if (is_job > is_best_job || (is_job == is_best_job && depth > best_depth)) {
            best = lines->list[i].path;
            best_depth = depth;
            is_best_job = is_job;
        }
    }
    return best;
}

/* Adds `<sys>/fs/cgroup<root><path>` if there is such a directory. */
static bool cgrouppath_add(struct cgrouppath *out_path, const char *controller, const char *sys_path, const char *root,
                           struct cursor path)
{
    char *directory = NULL;
    if (out_path->count == CGROUPPATH_PLACES_MAX || cursor_left(&path) > PATH_MAX ||
        asprintf(&directory, "%s/fs/cgroup%s%.*s", sys_path, root, (int)cursor_left(&path), path.at) < 0)
        return false;
    if (!cgrouppath_is_directory(directory)) {
        free(directory);
        return false;
    }
    out_path->places[out_path->count++] = (struct cgrouppath_place){.controller = controller, .directory = directory};
    return true;
}

static void cgrouppath_add_v2(struct cgrouppath *out_path, const char *sys_path, struct cursor path)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cgrouppath_v2_roots); i++) {
        char mark[PATH_MAX];
        (void)snprintf(mark, sizeof mark, "%s/fs/cgroup%s/cgroup.controllers", sys_path, cgrouppath_v2_roots[i]);
        if (access(mark, F_OK) == 0 && cgrouppath_add(out_path, NULL, sys_path, cgrouppath_v2_roots[i], path))
            return;
    }
}

/* A hierarchy with several controllers is mounted under all their names, usually with links for each. */
static void cgrouppath_add_v1(struct cgrouppath *out_path, const char *sys_path, const struct cgrouppath_line *line)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cgrouppath_controllers); i++) {
        const char *controller = cgrouppath_controllers[i];
        if (!cgrouppath_has_controller(line->controllers, controller))
            continue;
        char root[NAME_MAX];
        (void)snprintf(root, sizeof root, "/%s", controller);
        if (cgrouppath_add(out_path, controller, sys_path, root, line->path))
            continue;
        (void)snprintf(root, sizeof root, "/%.*s", (int)cursor_left(&line->controllers), line->controllers.at);
        (void)cgrouppath_add(out_path, controller, sys_path, root, line->path);
    }
}

static int cgrouppath_set_names(struct cgrouppath *out_path, struct cursor path, struct error *err)
{
    size_t depth;
    struct cursor name = cgrouppath_name(path, &depth);
    out_path->name = depth > 0 ? strndup(name.at, cursor_left(&name)) : strdup("/");
    out_path->path = strndup(path.at, cursor_left(&path));
    if (out_path->name != NULL && out_path->path != NULL)
        return 0;
    return error_set(err, -ENOMEM, "no memory for the path of a cgroup");
}

/* Finds the cgroup of a process from the text of its /proc/<pid>/cgroup. */
static int cgrouppath_of_process(struct cursor text, const char *sys_path, struct cgrouppath *out_path,
                                 struct error *err)
{
    struct cgrouppath_lines lines = {0};
    struct cgrouppath_line line;
    while (lines.count < CGROUPPATH_LINES_MAX && cgrouppath_next_line(&text, &line)) {
        line.path = cgrouppath_job(line.path);
        if (cgrouppath_is_wanted(&line))
            lines.list[lines.count++] = line;
    }
    if (lines.count == 0)
        return error_set(err, -ENODEV, "the process is in no cgroup that is visible here");
    struct cursor best = cgrouppath_best(&lines);
    size_t depth;
    struct cursor name = cgrouppath_name(best, &depth);
    for (size_t i = 0; i < lines.count; i++) {
        if (!cgrouppath_is_same(cgrouppath_name(lines.list[i].path, &depth), name))
            continue;
        if (cursor_is_empty(&lines.list[i].controllers))
            cgrouppath_add_v2(out_path, sys_path, lines.list[i].path);
        else
            cgrouppath_add_v1(out_path, sys_path, &lines.list[i]);
    }
    if (out_path->count == 0)
        return error_set(err, -ENODEV, "no directory of cgroup '%.*s' under '%s/fs/cgroup'", (int)cursor_left(&best),
                         best.at, sys_path);
    return cgrouppath_set_names(out_path, best, err);
}

/* Cuts off where cgroups are mounted, and the controller's directory where they are of version 1. */
static struct cursor cgrouppath_relative(const char *cgroup, const char *sys_path)
{
    struct cursor path = cursor_of(cgroup, strlen(cgroup));
    struct cursor rest = path;
    if (!cursor_accept_text(&rest, sys_path) || !cursor_accept_text(&rest, "/fs/cgroup"))
        return path;
    path = rest;
    char mark[PATH_MAX];
    (void)snprintf(mark, sizeof mark, "%s/fs/cgroup/cgroup.controllers", sys_path);
    struct cursor hierarchy;
    if (access(mark, F_OK) != 0 && cgrouppath_component(&rest, &hierarchy))
        path = rest;
    return path;
}

static int cgrouppath_of_path(const char *cgroup, const char *sys_path, struct cgrouppath *out_path, struct error *err)
{
    struct cursor path = cgrouppath_relative(cgroup, sys_path);
    if (cgroup[0] == '\0' || (!cursor_is_empty(&path) && !cgrouppath_is_good(path)))
        return error_set(err, -ENODEV, "'%s' is no cgroup: give 'self', a pid, or a path that starts with '/'", cgroup);
    cgrouppath_add_v2(out_path, sys_path, path);
    for (size_t i = 0; i < ARRAY_LENGTH(cgrouppath_controllers); i++) {
        const char *controller = cgrouppath_controllers[i];
        struct cgrouppath_line line = {.controllers = cursor_of(controller, strlen(controller)), .path = path};
        cgrouppath_add_v1(out_path, sys_path, &line);
    }
    if (out_path->count == 0)
        return error_set(err, -ENODEV, "no cgroup '%s' under '%s/fs/cgroup'", cgroup, sys_path);
    return cgrouppath_set_names(out_path, path, err);
}

static bool cgrouppath_is_pid(const char *cgroup)
{
    return cgroup[0] != '\0' && strspn(cgroup, "0123456789") == strlen(cgroup);
}

int cgrouppath_find(const char *proc_path, const char *sys_path, const char *cgroup, struct cgrouppath *out_path,
                    struct error *err)
{
    *out_path = (struct cgrouppath){0};
    int rc;
    if (strcmp(cgroup, "self") == 0 || cgrouppath_is_pid(cgroup)) {
        char file[PATH_MAX];
        CLEANUP(buf_cleanup) struct buf text;
        buf_init(&text, CGROUPPATH_TEXT_MAX_BYTES);
        (void)snprintf(file, sizeof file, "%s/%s/cgroup", proc_path, cgroup);
        rc = file_read(AT_FDCWD, file, &text, err);
        if (rc < 0)
            return rc == -ENOMEM ? rc : error_wrap(err, -ENODEV, "looking for the cgroup of process '%s'", cgroup);
        rc = cgrouppath_of_process(cursor_of(text.data, text.length), sys_path, out_path, err);
    } else {
        rc = cgrouppath_of_path(cgroup, sys_path, out_path, err);
    }
    if (rc < 0)
        cgrouppath_fini(out_path);
    return rc;
}

void cgrouppath_fini(struct cgrouppath *path)
{
    for (size_t i = 0; i < path->count; i++)
        free(path->places[i].directory);
    free(path->name);
    free(path->path);
    *path = (struct cgrouppath){0};
}
