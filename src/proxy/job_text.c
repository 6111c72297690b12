/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/job_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proxy/liveness.h"
#include "util/cursor.h"

enum { JOB_TEXT_ANCESTORS_MAX = 64, JOB_TEXT_PATH_BYTES = 32, JOB_TEXT_STAT_BYTES = 1024 };

/* Field 4 of /proc/<pid>/stat; 0 when it can't be read. */
static pid_t job_text_parent(pid_t pid)
{
    char path[JOB_TEXT_PATH_BYTES];
    char text[JOB_TEXT_STAT_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text) : -1;
    const char *name_end = got > 0 ? memrchr(text, ')', (size_t)got) : NULL;
    if (name_end == NULL)
        return 0;
    struct cursor fields = {.at = name_end + 1, .end = text + got};
    struct cursor state;
    uint64_t parent;
    return cursor_word(&fields, &state) && cursor_u64(&fields, &parent) ? (pid_t)parent : 0;
}

/* The start of `peer_pid`'s ancestor, or of itself, whose pid is the id; 0: the id is no such pid. */
static uint64_t job_text_launcher_start(const char *id, pid_t peer_pid)
{
    struct cursor digits = cursor_of(id, strlen(id));
    uint64_t launcher;
    if (!cursor_u64(&digits, &launcher) || !cursor_is_empty(&digits) || peer_pid <= 0)
        return 0;
    pid_t pid = peer_pid;
    for (int i = 0; i < JOB_TEXT_ANCESTORS_MAX && pid > 1; i++) {
        if ((uint64_t)pid == launcher)
            return liveness_start_ticks(pid);
        pid = job_text_parent(pid);
    }
    return 0;
}

int job_text_join_json(struct contributor *contributor, const json_t *object, pid_t peer_pid, int64_t now_wall_ms,
                       struct error *err)
{
    struct metric_job job;
    int rc = metric_job_from_json(object, &job, err);
    if (rc < 0)
        return rc;
    json_int_t start = json_integer_value(json_object_get(object, "launcher_start"));
    uint64_t launcher_start = start > 0 ? (uint64_t)start : job_text_launcher_start(job.id, peer_pid);
    rc = contributor_join(contributor, &job, launcher_start, now_wall_ms, err);
    metric_job_fini(&job);
    return rc;
}

int job_text_join(struct contributor *contributor, const char *text, size_t bytes, int64_t now_wall_ms,
                  struct error *err)
{
    json_error_t where;
    json_t *object = json_loadb(text, bytes, 0, &where);
    if (object == NULL)
        return error_set(err, -EINVAL, "description of a job: %s", where.text);
    int rc = job_text_join_json(contributor, object, 0, now_wall_ms, err);
    json_decref(object);
    return rc;
}
