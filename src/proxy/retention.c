/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/retention.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/work.h"
#include "util/buf.h"
#include "util/clock.h"
#include "util/log.h"

enum {
    RETENTION_PATH_MAX_BYTES = 8192,
    RETENTION_GO_MAX = 1000, /* files of one turn: a mistake has to be seen before all is gone */
    RETENTION_MAGIC_BYTES = 16,
};

#define RETENTION_EVERY_NS (60 * CLOCK_NS_PER_SECOND)
#define RETENTION_DAY_MS   INT64_C(86400000)

static const char retention_trace_suffix[] = ".trace";
static const char retention_aside_suffix[] = ".foreign";
/* The header of an SQLite file (its file format, section 1.3), NUL included: what our traces are. */
static const char retention_trace_magic[RETENTION_MAGIC_BYTES] = "SQLite format 3";

struct retention {
    uv_loop_t *loop;
    const struct jobs *jobs;
    struct profiles *profiles;
    char *traces_path;
    int64_t keep_ms;
    uint64_t keep_bytes;
    int64_t next_mono_ns;
    struct work *work; /* one at a time */
};

/* A file that is to go, as it was when that was decided. */
struct retention_victim {
    char *file;
    int64_t changed_wall_ms;
    uint64_t size_bytes;
    bool is_gone;
};

/* What a worker has. */
struct retention_task {
    struct retention *retention;
    char *path;                       /* directory */
    struct retention_victim *victims; /* [count]; NULL: set traces aside */
    size_t count;
    size_t gone;
    uint64_t gone_bytes;
    char *first; /* name of the first that was set aside */
    struct error err;
};

size_t retention_choose(struct retention_file *files, size_t count, int64_t now_wall_ms, int64_t keep_ms,
                        uint64_t keep_bytes)
{
    uint64_t total_bytes = 0;
    size_t chosen = 0;
    for (size_t i = 0; i < count; i++) {
        files[i].must_go = false;
        total_bytes += files[i].size_bytes; /* of real files: far from 2^64 */
    }
    for (size_t i = 0; i < count; i++) {
        bool is_old = keep_ms > 0 && now_wall_ms - files[i].changed_wall_ms > keep_ms;
        bool is_too_much = keep_bytes > 0 && total_bytes > keep_bytes;
        if (files[i].is_needed || (!is_old && !is_too_much))
            continue;
        files[i].must_go = true;
        total_bytes -= files[i].size_bytes;
        chosen++;
    }
    return chosen;
}

static void retention_task_free(struct retention_task *task)
{
    for (size_t i = 0; i < task->count; i++)
        free(task->victims[i].file);
    free(task->victims);
    free(task->path);
    free(task->first);
    free(task);
}

/* On the worker */

static void retention_remove(struct retention_task *task, int dir_fd, struct retention_victim *victim)
{
    struct stat info;
    if (fstatat(dir_fd, victim->file, &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(info.st_mode))
        return;
    int64_t changed_wall_ms = info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
    if (changed_wall_ms > victim->changed_wall_ms + 1000) /* another run has taken the name meanwhile */
        return;
    if (unlinkat(dir_fd, victim->file, 0) < 0) {
        (void)error_errno(&task->err, "removing '%s/%s'", task->path, victim->file);
        return;
    }
    victim->is_gone = true;
    task->gone++;
    task->gone_bytes += victim->size_bytes;
}

static bool retention_ends_with(const char *name, const char *ending)
{
    size_t name_bytes = strlen(name);
    size_t bytes = strlen(ending);
    return name_bytes > bytes && strcmp(name + name_bytes - bytes, ending) == 0;
}

/* Is it a trace, but not one of ours? An empty one may be one of ours that has just begun. */
static bool retention_is_foreign(int dir_fd, const char *name)
{
    char head[RETENTION_MAGIC_BYTES];
    CLEANUP(fd_cleanup) int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_size == 0)
        return false;
    ssize_t got = read(fd, head, sizeof head);
    return got >= 0 && (got < (ssize_t)sizeof head || memcmp(head, retention_trace_magic, sizeof head) != 0);
}

static void retention_set_aside(struct retention_task *task, int dir_fd, const char *name)
{
    CLEANUP(buf_cleanup) struct buf aside;
    buf_init(&aside, RETENTION_PATH_MAX_BYTES);
    buf_printf(&aside, "%s%s", name, retention_aside_suffix);
    const char *aside_name = buf_string(&aside);
    if (buf_status(&aside, NULL) < 0 || renameat2(dir_fd, name, dir_fd, aside_name, 1 /* RENAME_NOREPLACE */) < 0) {
        (void)error_errno(&task->err, "setting '%s/%s' aside", task->path, name);
        return;
    }
    if (task->gone++ == 0)
        task->first = strdup(name);
}

static void retention_run(void *data)
{
    struct retention_task *task = data;
    CLEANUP(dir_cleanup) DIR *dir = opendir(task->path);
    if (dir == NULL)
        return; /* nothing has been saved yet */
    for (size_t i = 0; i < task->count; i++)
        retention_remove(task, dirfd(dir), &task->victims[i]);
    if (task->victims != NULL)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (retention_ends_with(entry->d_name, retention_trace_suffix) &&
            retention_is_foreign(dirfd(dir), entry->d_name))
            retention_set_aside(task, dirfd(dir), entry->d_name);
    }
}

/* Back on the loop */

static void retention_tell_removed(const struct retention_task *task)
{
    const char *first = NULL;
    const char *last = NULL;
    for (size_t i = 0; task->victims != NULL && i < task->count; i++) {
        if (!task->victims[i].is_gone)
            continue;
        first = first == NULL ? task->victims[i].file : first;
        last = task->victims[i].file;
    }
    if (first != NULL)
        log_info("retention path='%s' removed=%zu bytes=%" PRIu64 " from '%s' to '%s' (--keep-days, --keep-mb)",
                 task->path, task->gone, task->gone_bytes, first, last);
}

static void retention_on_done(void *data, bool is_wanted)
{
    struct retention_task *task = data;
    if (task->victims != NULL)
        retention_tell_removed(task);
    else if (task->gone > 0)
        log_warn("traces path='%s' %zu of another kind, which can't be read here, are set aside as *%s%s, the first "
                 "is '%s': the proxy that wrote them can",
                 task->path, task->gone, retention_trace_suffix, retention_aside_suffix,
                 task->first != NULL ? task->first : "");
    if (task->err.code != 0)
        log_error("retention %s", task->err.text);
    if (is_wanted) {
        task->retention->work = NULL;
        for (size_t i = 0; task->victims != NULL && i < task->count; i++) {
            if (task->victims[i].is_gone)
                profiles_forget(task->retention->profiles, task->victims[i].file);
        }
    }
    retention_task_free(task);
}

/* Takes `task`, whose path is `path`, and gives it to a worker. */
static int retention_start(struct retention *retention, struct retention_task *task, const char *path,
                           struct error *err)
{
    task->retention = retention;
    task->path = strdup(path);
    int rc = task->path != NULL ? 0 : error_set(err, -ENOMEM, "no memory for a path");
    const struct work_task work = {.run = retention_run, .done = retention_on_done, .data = task};
    if (rc == 0)
        rc = work_start(retention->loop, &work, &retention->work, err);
    if (rc < 0)
        retention_task_free(task);
    return rc;
}

int retention_open(const struct retention_config *config, struct retention **out_retention, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf traces;
    buf_init(&traces, RETENTION_PATH_MAX_BYTES);
    buf_printf(&traces, "%s/traces", config->prefix);
    const char *traces_path = buf_string(&traces);
    int rc = buf_status(&traces, err);
    if (rc < 0)
        return rc;
    struct retention *retention = calloc(1, sizeof *retention);
    struct retention_task *task = calloc(1, sizeof *task);
    char *path = strdup(traces_path);
    if (retention == NULL || task == NULL || path == NULL) {
        free(retention);
        free(task);
        free(path);
        return error_set(err, -ENOMEM, "no memory for retention");
    }
    *retention = (struct retention){.loop = config->loop,
                                    .jobs = config->jobs,
                                    .profiles = config->profiles,
                                    .traces_path = path,
                                    .keep_ms = config->days * RETENTION_DAY_MS,
                                    .keep_bytes = (uint64_t)config->mb << 20};
    rc = retention_start(retention, task, path, err);
    if (rc < 0) {
        retention_free(retention);
        return rc;
    }
    *out_retention = retention;
    return 0;
}

void retention_free(struct retention *retention)
{
    if (retention == NULL)
        return;
    work_abandon(retention->work);
    free(retention->traces_path);
    free(retention);
}

/* The profile is of a job that is here. */
static bool retention_is_needed(const struct retention *retention, const struct profile *profile)
{
    for (size_t i = 0; i < jobs_count(retention->jobs); i++) {
        if (strcmp(job_key(jobs_at(retention->jobs, i)), profile->key) == 0)
            return true;
    }
    return false;
}

/* A profile's place in the list, by its age. */
struct retention_aged {
    int64_t changed_wall_ms;
    size_t index;
};

static int retention_compare(const void *a, const void *b)
{
    const struct retention_aged *one = a;
    const struct retention_aged *other = b;
    return one->changed_wall_ms < other->changed_wall_ms ? -1 : one->changed_wall_ms > other->changed_wall_ms;
}

/* Those that must go, as victims; how many. Without memory none do, and the next turn tries again. */
static size_t retention_pick(const struct retention *retention, const struct retention_aged *aged,
                             struct retention_file *files, struct retention_victim *victims, int64_t now_wall_ms)
{
    size_t count = profiles_count(retention->profiles);
    for (size_t i = 0; i < count; i++) {
        const struct profile *profile = profiles_at(retention->profiles, aged[i].index);
        files[i] =
            (struct retention_file){.changed_wall_ms = profile->changed_wall_ms, .size_bytes = profile->size_bytes};
    }
    /* Looking a job up for each profile costs: only for those that are to go. */
    size_t picked = 0;
    bool is_again = retention_choose(files, count, now_wall_ms, retention->keep_ms, retention->keep_bytes) > 0;
    while (is_again) {
        is_again = false;
        for (size_t i = 0; i < count; i++) {
            const struct profile *profile = profiles_at(retention->profiles, aged[i].index);
            if (files[i].must_go && !files[i].is_needed && retention_is_needed(retention, profile))
                files[i].is_needed = is_again = true;
        }
        if (is_again)
            (void)retention_choose(files, count, now_wall_ms, retention->keep_ms, retention->keep_bytes);
    }
    for (size_t i = 0; i < count && picked < RETENTION_GO_MAX; i++) {
        const struct profile *profile = profiles_at(retention->profiles, aged[i].index);
        char *file = files[i].must_go ? strdup(profile->file) : NULL;
        if (file != NULL)
            victims[picked++] = (struct retention_victim){
                .file = file, .changed_wall_ms = profile->changed_wall_ms, .size_bytes = profile->size_bytes};
    }
    return picked;
}

static void retention_look(struct retention *retention, int64_t now_wall_ms)
{
    size_t count = profiles_count(retention->profiles);
    CLEANUP(memory_cleanup) struct retention_aged *aged = calloc(count, sizeof *aged);
    CLEANUP(memory_cleanup) struct retention_file *files = calloc(count, sizeof *files);
    struct retention_victim *victims = calloc(RETENTION_GO_MAX, sizeof *victims);
    struct retention_task *task = calloc(1, sizeof *task);
    if (aged == NULL || files == NULL || victims == NULL || task == NULL) {
        free(victims);
        free(task);
        return;
    }
    for (size_t i = 0; i < count; i++)
        aged[i] = (struct retention_aged){.changed_wall_ms = profiles_at(retention->profiles, i)->changed_wall_ms,
                                          .index = i};
    qsort(aged, count, sizeof *aged, retention_compare);
    task->victims = victims;
    task->count = retention_pick(retention, aged, files, victims, now_wall_ms);
    struct error err = {0};
    if (task->count == 0)
        retention_task_free(task);
    else if (retention_start(retention, task, profiles_path(retention->profiles), &err) < 0)
        log_error("retention %s: tried again in a minute", err.text);
}

void retention_tick(struct retention *retention, int64_t now_mono_ns, int64_t now_wall_ms)
{
    if (now_mono_ns < retention->next_mono_ns || retention->work != NULL || !profiles_is_loaded(retention->profiles))
        return;
    retention->next_mono_ns = now_mono_ns + RETENTION_EVERY_NS;
    if (profiles_count(retention->profiles) > 0)
        retention_look(retention, now_wall_ms);
}
