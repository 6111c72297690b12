/* SPDX-License-Identifier: BSD-3-Clause */
#include "metric/job.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A field of the description: how it is called in JSON, where it is kept, how long it may be. */
struct job_text {
    const char *key;
    size_t offset;
    size_t max_bytes;
};

static const struct job_text job_texts[] = {
    {"jobid", offsetof(struct metric_job, id), METRIC_JOB_ID_MAX_BYTES},
    {"command", offsetof(struct metric_job, command), METRIC_JOB_COMMAND_MAX_BYTES},
    {"nodelist", offsetof(struct metric_job, nodelist), METRIC_JOB_TEXT_MAX_BYTES},
    {"partition", offsetof(struct metric_job, partition), METRIC_JOB_TEXT_MAX_BYTES},
    {"cluster", offsetof(struct metric_job, cluster), METRIC_JOB_TEXT_MAX_BYTES},
    {"run_dir", offsetof(struct metric_job, run_dir), METRIC_JOB_TEXT_MAX_BYTES},
};

enum { JOB_TEXTS = ARRAY_LENGTH(job_texts), JOB_TEXT_ID = 0 };

static char **job_text_of(struct metric_job *job, size_t index)
{
    return (char **)(void *)((char *)job + job_texts[index].offset);
}

static const char *job_text_at(const struct metric_job *job, size_t index)
{
    return *(char *const *)(const void *)((const char *)job + job_texts[index].offset);
}

void metric_job_fini(struct metric_job *job)
{
    for (size_t i = 0; i < JOB_TEXTS; i++)
        free(*job_text_of(job, i));
    *job = (struct metric_job){0};
}

int metric_job_init(struct metric_job *job, const char *id, struct error *err)
{
    *job = (struct metric_job){0};
    for (size_t i = 0; i < JOB_TEXTS; i++) {
        char *text = strdup(i == JOB_TEXT_ID ? id : "");
        if (text == NULL) {
            metric_job_fini(job);
            return error_set(err, -ENOMEM, "no memory for the description of a job");
        }
        *job_text_of(job, i) = text;
    }
    return 0;
}

static int job_read_text(const json_t *object, size_t index, struct metric_job *job, struct error *err)
{
    const struct job_text *row = &job_texts[index];
    const json_t *field = json_object_get(object, row->key);
    if (field == NULL || json_is_null(field))
        return 0;
    if (!json_is_string(field))
        return error_set(err, -EINVAL, "'%s' must be a text", row->key);
    size_t bytes = json_string_length(field);
    if (bytes > row->max_bytes)
        return error_set(err, -EINVAL, "'%s' has %zu bytes, more than %zu", row->key, bytes, row->max_bytes);
    if (strlen(json_string_value(field)) != bytes)
        return error_set(err, -EINVAL, "'%s' holds a NUL", row->key);
    char *text = strdup(json_string_value(field));
    if (text == NULL)
        return error_set(err, -ENOMEM, "no memory for '%s'", row->key);
    free(*job_text_of(job, index));
    *job_text_of(job, index) = text;
    return 0;
}

static int job_read_number(const json_t *object, const char *key, int64_t *out_number, struct error *err)
{
    const json_t *field = json_object_get(object, key);
    if (field == NULL || json_is_null(field))
        return 0;
    if (!json_is_integer(field) || json_integer_value(field) < 0)
        return error_set(err, -EINVAL, "'%s' must be a whole number from 0 on", key);
    *out_number = json_integer_value(field);
    return 0;
}

/* Into a description that is whole already; on failure some fields are read. */
static int job_read(const json_t *object, struct metric_job *job, struct error *err)
{
    for (size_t i = 0; i < JOB_TEXTS; i++) {
        int rc = job_read_text(object, i, job, err);
        if (rc < 0)
            return rc;
    }
    int64_t size = 0;
    int rc = job_read_number(object, "size", &size, err);
    if (rc == 0)
        rc = job_read_number(object, "start_time", &job->start_wall_ms, err);
    if (rc == 0)
        rc = job_read_number(object, "end_time", &job->end_wall_ms, err);
    job->size = (uint64_t)size;
    return rc;
}

int metric_job_from_json(const json_t *object, struct metric_job *out_job, struct error *err)
{
    if (!json_is_object(object))
        return error_set(err, -EINVAL, "the description of a job must be an object");
    struct metric_job job;
    int rc = metric_job_init(&job, "", err);
    if (rc < 0)
        return rc;
    rc = job_read(object, &job, err);
    if (rc < 0) {
        metric_job_fini(&job);
        return error_wrap(err, rc, "description of a job");
    }
    *out_job = job;
    return 0;
}

static void job_put_text(const struct metric_job *job, size_t index, struct buf *out)
{
    buf_json_string(out, job_texts[index].key);
    buf_char(out, ':');
    buf_json_string(out, job_text_at(job, index));
    buf_char(out, ',');
}

void metric_job_to_json(const struct metric_job *job, struct buf *out)
{
    buf_char(out, '{');
    job_put_text(job, 0, out); /* jobid and command, then the size, as the existing proxy writes it */
    job_put_text(job, 1, out);
    buf_text(out, "\"size\":");
    buf_u64(out, job->size);
    buf_char(out, ',');
    for (size_t i = 2; i < JOB_TEXTS; i++)
        job_put_text(job, i, out);
    buf_text(out, "\"start_time\":");
    buf_i64(out, job->start_wall_ms);
    buf_text(out, ",\"end_time\":");
    buf_i64(out, job->end_wall_ms);
    buf_char(out, '}');
}

/* Is `node[0 … bytes)` one of the comma-separated nodes of `list`? */
static bool job_has_node(const char *list, const char *node, size_t bytes)
{
    while (*list != '\0') {
        size_t length = strcspn(list, ",");
        if (length == bytes && memcmp(list, node, bytes) == 0)
            return true;
        list += length + (list[length] == ',' ? 1 : 0);
    }
    return bytes == 0;
}

/*
 * Appends the nodes of `more` that `list` doesn't name. Lists with ranges, "n[1-4]", hold commas inside brackets; they
 * are compared as they are, since only the scheduler knows what it means by them.
 */
static int job_merge_nodes(char **list, const char *more, struct error *err)
{
    if ((*list)[0] == '\0' || strchr(*list, '[') != NULL || strchr(more, '[') != NULL) {
        if ((*list)[0] != '\0' || more[0] == '\0')
            return 0;
        char *copy = strdup(more);
        if (copy == NULL)
            return error_set(err, -ENOMEM, "no memory for a list of nodes");
        free(*list);
        *list = copy;
        return 0;
    }
    CLEANUP(buf_cleanup) struct buf merged;
    buf_init(&merged, METRIC_JOB_TEXT_MAX_BYTES);
    buf_text(&merged, *list);
    while (*more != '\0') {
        size_t length = strcspn(more, ",");
        if (!job_has_node(*list, more, length)) {
            buf_char(&merged, ',');
            buf_bytes(&merged, more, length);
        }
        more += length + (more[length] == ',' ? 1 : 0);
    }
    const char *nodes = buf_string(&merged);
    if (buf_status(&merged, NULL) == -E2BIG)
        return 0; /* a list that long stays as it was: it is for people */
    char *copy = buf_status(&merged, NULL) == 0 ? strdup(nodes) : NULL;
    if (copy == NULL)
        return error_set(err, -ENOMEM, "no memory for a list of nodes");
    free(*list);
    *list = copy;
    return 0;
}

int metric_job_merge(struct metric_job *into, const struct metric_job *from, struct error *err)
{
    int rc = job_merge_nodes(&into->nodelist, from->nodelist, err);
    for (size_t i = 0; i < JOB_TEXTS && rc == 0; i++) {
        if (job_text_at(into, i)[0] != '\0' || job_text_at(from, i)[0] == '\0')
            continue;
        char *text = strdup(job_text_at(from, i));
        if (text == NULL)
            return error_set(err, -ENOMEM, "no memory for the description of a job");
        free(*job_text_of(into, i));
        *job_text_of(into, i) = text;
    }
    if (from->size > into->size)
        into->size = from->size;
    if (into->start_wall_ms == 0 || (from->start_wall_ms != 0 && from->start_wall_ms < into->start_wall_ms))
        into->start_wall_ms = from->start_wall_ms;
    bool has_ended = into->end_wall_ms != 0 && from->end_wall_ms != 0;
    if (!has_ended)
        into->end_wall_ms = 0;
    else if (from->end_wall_ms > into->end_wall_ms)
        into->end_wall_ms = from->end_wall_ms;
    return rc;
}
