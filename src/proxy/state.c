/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/state.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/file.h"
#include "util/log.h"

#define STATE_MAGIC UINT64_C(0x3165746174736b63) /* "ckstate1" */

enum { STATE_GENERATIONS = 2, STATE_PATH_MAX_BYTES = 4096, STATE_MODE = 0600 };

struct state_head {
    uint64_t magic;
    uint64_t generation;
    uint64_t body_bytes;
    uint64_t check;
};

struct state {
    char *paths[STATE_GENERATIONS];
    int lock_fd;
    uint64_t generation;
};

/* FNV-1a, 64 bit: Fowler, Noll, Vo; constants as in draft-eastlake-fnv. Taken a word at a time: only we read it. */
static uint64_t state_check(const char *bytes, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t at = 0; at < length; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, length - at < sizeof word ? length - at : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 32;
    }
    return hash;
}

static int state_open_lock(struct state *state, const char *path, struct error *err)
{
    state->lock_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, STATE_MODE);
    if (state->lock_fd < 0)
        return error_errno(err, "opening '%s'", path);
    int rc = file_lock(state->lock_fd, err);
    if (rc == -EWOULDBLOCK)
        return error_set(err, -EADDRINUSE, "'%s' is locked: a metric proxy of this user runs on this node already",
                         path);
    return rc;
}

int state_open(const char *directory, const char *hostname, struct state **out_state, struct error *err)
{
    CLEANUP(state_cleanup) struct state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return error_set(err, -ENOMEM, "no memory for the state");
    state->lock_fd = -1;
    CLEANUP(buf_cleanup) struct buf stem;
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&stem, STATE_PATH_MAX_BYTES);
    buf_init(&path, STATE_PATH_MAX_BYTES);
    buf_printf(&stem, "%s/proxy-", directory);
    file_safe_name(hostname, &stem);
    const char *stem_text = buf_string(&stem);
    int rc = buf_status(&stem, err);
    for (int i = 0; i < STATE_GENERATIONS && rc == 0; i++) {
        buf_reset(&path);
        buf_printf(&path, "%s.state.%d", stem_text, i);
        state->paths[i] = strdup(buf_string(&path));
        rc = state->paths[i] != NULL ? buf_status(&path, err) : error_set(err, -ENOMEM, "no memory for the state");
    }
    if (rc < 0)
        return rc;
    buf_reset(&path);
    buf_printf(&path, "%s.lock", stem_text);
    rc = state_open_lock(state, buf_string(&path), err);
    if (rc < 0)
        return rc;
    *out_state = TAKE(state);
    return 0;
}

void state_close(struct state *state)
{
    if (state == NULL)
        return;
    for (int i = 0; i < STATE_GENERATIONS; i++)
        free(state->paths[i]);
    if (state->lock_fd >= 0)
        close(state->lock_fd);
    free(state);
}

/* Writing */

static void state_put_u32(struct buf *out, uint32_t number)
{
    buf_bytes(out, &number, sizeof number);
}

static void state_put_text(struct buf *out, const char *text)
{
    size_t bytes = strlen(text);
    state_put_u32(out, (uint32_t)bytes); /* names, docs and descriptions are bounded far below that */
    buf_bytes(out, text, bytes);
}

static bool state_is_kept(const struct metric *metric)
{
    return metric->value.kind == METRIC_COUNTER && metric->value.counter > 0;
}

static void state_put_counters(struct buf *out, const struct registry *reg)
{
    uint32_t count = 0;
    for (size_t i = 0; i < registry_count(reg); i++)
        count += state_is_kept(registry_at(reg, i));
    state_put_u32(out, count);
    for (size_t i = 0; i < registry_count(reg); i++) {
        const struct metric *metric = registry_at(reg, i);
        if (!state_is_kept(metric))
            continue;
        state_put_text(out, metric->name);
        state_put_text(out, metric->doc);
        buf_bytes(out, &metric->value.counter, sizeof metric->value.counter);
        buf_bytes(out, &metric->value.wall_us, sizeof metric->value.wall_us);
    }
}

static void state_put_job(struct buf *out, const struct job *job)
{
    CLEANUP(buf_cleanup) struct buf description;
    buf_init(&description, STATE_MAX_BYTES);
    metric_job_to_json(job_description(job), &description);
    uint8_t kind = (uint8_t)job_kind(job);
    buf_bytes(out, &kind, sizeof kind);
    state_put_u32(out, job_uid(job));
    state_put_text(out, job_key(job));
    state_put_text(out, buf_string(&description)); /* "" without memory: read as a job of which nothing is known */
    state_put_counters(out, job_registry(job));
}

static void state_put_all(struct buf *out, const struct jobs *jobs, const struct segments *segments)
{
    state_put_u32(out, (uint32_t)segments_folded_count(segments));
    for (size_t i = 0; i < segments_folded_count(segments); i++)
        buf_bytes(out, segments_folded_at(segments, i), SEGMENT_ID_BYTES);
    state_put_u32(out, (uint32_t)jobs_count(jobs));
    for (size_t i = 0; i < jobs_count(jobs); i++)
        state_put_job(out, jobs_at(jobs, i));
}

int state_write(struct state *state, const struct jobs *jobs, const struct segments *segments, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, STATE_MAX_BYTES);
    struct state_head head = {.magic = STATE_MAGIC, .generation = state->generation + 1};
    buf_bytes(&text, &head, sizeof head);
    state_put_all(&text, jobs, segments);
    int rc = buf_status(&text, err);
    if (rc < 0)
        return error_wrap(err, rc, "state");
    head.body_bytes = text.length - sizeof head;
    head.check = state_check(text.data + sizeof head, text.length - sizeof head);
    memcpy(text.data, &head, sizeof head);

    const char *path = state->paths[head.generation % STATE_GENERATIONS];
    /* As if to read as well: opening a FIFO must not wait for somebody who does. */
    int flags = O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    CLEANUP(fd_cleanup) int fd = open(path, flags, STATE_MODE);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_errno(err, "opening '%s'", path);
    if (!S_ISREG(status.st_mode))
        return error_set(err, -EINVAL, "'%s' is no file: remove it", path);
    rc = file_write_all(fd, text.data, text.length, err);
    if (rc < 0)
        return error_wrap(err, rc, "'%s'", path);
    state->generation = head.generation;
    return 0;
}

/* Reading: a place in the body that can't pass its end; the first failure sticks. */

struct state_read {
    const char *at;
    const char *end;
    bool has_failed;
};

static void state_get(struct state_read *read, void *out, size_t bytes)
{
    memset(out, 0, bytes);
    if (read->has_failed || bytes > (size_t)(read->end - read->at)) {
        read->has_failed = true;
        return;
    }
    memcpy(out, read->at, bytes);
    read->at += bytes;
}

static uint32_t state_get_u32(struct state_read *read)
{
    uint32_t number;
    state_get(read, &number, sizeof number);
    return number;
}

/* Borrowed from the body, not NUL-terminated. */
static const char *state_get_text(struct state_read *read, size_t *out_bytes)
{
    size_t bytes = state_get_u32(read);
    if (read->has_failed || bytes > (size_t)(read->end - read->at)) {
        read->has_failed = true;
        bytes = 0;
    }
    const char *text = read->at;
    read->at += bytes;
    *out_bytes = bytes;
    return text;
}

/* The counters of a job go into its bases; `reg` is NULL when there is no room for the job. */
static int state_load_counters(struct state_read *read, struct registry *reg, struct error *err)
{
    uint32_t count = state_get_u32(read);
    for (uint32_t i = 0; i < count && !read->has_failed; i++) {
        size_t name_bytes;
        size_t doc_bytes;
        const char *name = state_get_text(read, &name_bytes);
        const char *doc = state_get_text(read, &doc_bytes);
        double counter;
        int64_t wall_us;
        state_get(read, &counter, sizeof counter);
        state_get(read, &wall_us, sizeof wall_us);
        if (read->has_failed || reg == NULL)
            continue;
        CLEANUP(memory_cleanup) char *doc_text = strndup(doc, doc_bytes);
        struct metric *metric = NULL;
        int rc = doc_text == NULL ? error_set(err, -ENOMEM, "no memory for the state")
                                  : registry_find_or_add(reg, name, name_bytes, doc_text, METRIC_COUNTER, &metric, err);
        if (rc == -ENOMEM)
            return rc;
        if (metric != NULL)
            metric->base = metric_counter(counter, wall_us);
    }
    return 0;
}

static int state_find_job(struct jobs *jobs, enum job_kind kind, uint32_t uid, const char *key, const char *json,
                          size_t json_bytes, int64_t now_mono_ns, struct job **out_job)
{
    *out_job = NULL;
    if (kind != JOB_REAL) {
        *out_job = jobs_at(jobs, kind == JOB_MAIN ? 0 : 1);
        return 0;
    }
    struct error err = {0};
    struct metric_job description;
    json_t *object = json_loadb(json, json_bytes, 0, NULL);
    int rc =
        object != NULL ? metric_job_from_json(object, &description, &err) : metric_job_init(&description, key, &err);
    json_decref(object);
    if (rc == 0) {
        rc = jobs_restore(jobs, uid, key, &description, now_mono_ns, out_job, &err);
        metric_job_fini(&description);
    }
    if (rc < 0 && rc != -ENOMEM)
        log_warn("job=%s %s: what it counted is in the node and in main", key, err.text);
    return rc == -ENOMEM ? rc : 0;
}

static int state_load_job(struct state_read *read, struct jobs *jobs, int64_t now_mono_ns, struct error *err)
{
    uint8_t kind;
    state_get(read, &kind, sizeof kind);
    uint32_t uid = state_get_u32(read);
    size_t key_bytes;
    size_t json_bytes;
    const char *key = state_get_text(read, &key_bytes);
    const char *json = state_get_text(read, &json_bytes);
    if (read->has_failed || kind > JOB_REAL)
        return 0;
    CLEANUP(memory_cleanup) char *key_text = strndup(key, key_bytes);
    struct job *job = NULL;
    int rc = key_text == NULL
                 ? -ENOMEM
                 : state_find_job(jobs, (enum job_kind)kind, uid, key_text, json, json_bytes, now_mono_ns, &job);
    if (rc < 0)
        return error_set(err, rc, "no memory for the state");
    return state_load_counters(read, job != NULL ? job_registry(job) : NULL, err);
}

static int state_load_body(struct state_read *read, struct jobs *jobs, struct segments *segments, int64_t now_mono_ns,
                           struct error *err)
{
    int rc = 0;
    uint32_t ids = state_get_u32(read);
    for (uint32_t i = 0; i < ids && !read->has_failed && rc == 0; i++) {
        uint8_t id[SEGMENT_ID_BYTES];
        state_get(read, id, sizeof id);
        if (!read->has_failed)
            rc = segments_restore_folded(segments, id, err);
    }
    uint32_t count = state_get_u32(read);
    for (uint32_t i = 0; i < count && !read->has_failed && rc == 0; i++)
        rc = state_load_job(read, jobs, now_mono_ns, err);
    return rc;
}

/* Reads one file; `*out_generation` is 0 when it doesn't count. */
static int state_read_file(const char *path, struct buf *text, uint64_t *out_generation, struct error *err)
{
    *out_generation = 0;
    int rc = file_read(AT_FDCWD, path, text, err);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return rc;
    struct state_head head = {0};
    if (text->length >= sizeof head)
        memcpy(&head, text->data, sizeof head);
    bool is_whole = head.magic == STATE_MAGIC && head.body_bytes == text->length - sizeof head &&
                    state_check(text->data + sizeof head, head.body_bytes) == head.check;
    if (is_whole)
        *out_generation = head.generation;
    else if (text->length > 0)
        log_warn("the state in '%s' is not whole, as when its proxy died while it wrote it: the one before it counts",
                 path);
    return 0;
}

int state_load(struct state *state, struct jobs *jobs, struct segments *segments, int64_t now_mono_ns,
               struct error *err)
{
    CLEANUP(buf_cleanup) struct buf newest;
    buf_init(&newest, STATE_MAX_BYTES);
    for (int i = 0; i < STATE_GENERATIONS; i++) {
        CLEANUP(buf_cleanup) struct buf text;
        buf_init(&text, STATE_MAX_BYTES);
        uint64_t generation;
        struct error failure = {0};
        int rc = state_read_file(state->paths[i], &text, &generation, &failure);
        if (rc == -ENOMEM)
            return error_set(err, rc, "%s", failure.text);
        if (rc < 0)
            log_error("%s: what was counted before may be missing", failure.text);
        if (generation <= state->generation)
            continue;
        state->generation = generation;
        struct buf older = newest;
        newest = text;
        text = older;
    }
    if (state->generation == 0)
        return 0;
    struct state_read read = {.at = newest.data + sizeof(struct state_head), .end = newest.data + newest.length};
    int rc = state_load_body(&read, jobs, segments, now_mono_ns, err);
    if (rc == 0 && read.has_failed)
        log_error("the state in '%s' ends too early: what was counted before may be missing",
                  state->paths[state->generation % STATE_GENERATIONS]);
    return rc;
}
