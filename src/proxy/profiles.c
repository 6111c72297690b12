/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/profiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metric/name.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"

enum {
    PROFILES_PATH_MAX_BYTES = 8192,
    PROFILES_RUNS_MAX = 10000, /* of one key: where the search for a free name ends */
    PROFILES_MODE = 0644,
    PROFILES_DIRECTORY_MODE = 0755,
};

static const char profiles_suffix[] = ".profile";

struct profiles_work;

struct profiles {
    uv_loop_t *loop; /* NULL: files are touched at once */
    char *path;
    struct profile *list; /* [count], by start time */
    size_t count, capacity;
    size_t pending;
    struct profiles_work *running; /* by a worker: one at a time, so that two runs never choose one name */
    struct profiles_work *first, *last;
    bool is_loaded;
};

/* Profiles that a worker has read. */
struct profiles_found {
    struct profile *list;
    size_t count, capacity;
};

/* One piece of work. The worker touches only what is in here. */
struct profiles_work {
    uv_work_t request;
    struct profiles_work *next; /* in the queue */
    struct profiles *profiles;
    char *path; /* of the directory */
    struct profiles_found found;
    /* of a save: */
    char *key;
    char *text; /* the profile, [text_bytes] */
    size_t text_bytes;
    char *sample; /* lines for Extra-P, or NULL */
    char *command;
    struct profile saved;  /* file: the name that it got */
    bool has_ended_before; /* the file that is replaced is of this run after its end: it has had its sample */
    int status;
    struct error err;
    void (*on_saved)(void *context, const char *key, int status);
    void *context;
};

static void profile_fini(struct profile *profile)
{
    free(profile->file);
    free(profile->key);
    metric_job_fini(&profile->desc);
    *profile = (struct profile){0};
}

static void profiles_work_free(struct profiles_work *work)
{
    if (work == NULL)
        return;
    for (size_t i = 0; i < work->found.count; i++)
        profile_fini(&work->found.list[i]);
    free(work->found.list);
    profile_fini(&work->saved);
    free(work->path);
    free(work->key);
    free(work->text);
    free(work->sample);
    free(work->command);
    free(work);
}
DEFINE_CLEANUP(profiles_work, profiles_work_free);

int profiles_new(uv_loop_t *loop, const char *prefix, struct profiles **out_profiles, struct error *err)
{
    CLEANUP(profiles_cleanup) struct profiles *profiles = calloc(1, sizeof *profiles);
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, PROFILES_PATH_MAX_BYTES);
    buf_printf(&path, "%s/profiles", prefix);
    const char *path_text = buf_string(&path);
    int rc = buf_status(&path, err);
    if (rc < 0)
        return error_wrap(err, rc, "prefix '%s'", prefix);
    if (profiles != NULL)
        profiles->path = strdup(path_text);
    if (profiles == NULL || profiles->path == NULL)
        return error_set(err, -ENOMEM, "no memory for profiles");
    profiles->loop = loop;
    *out_profiles = TAKE(profiles);
    return 0;
}

void profiles_free(struct profiles *profiles)
{
    if (profiles == NULL)
        return;
    for (size_t i = 0; i < profiles->count; i++)
        profile_fini(&profiles->list[i]);
    free(profiles->list);
    free(profiles->path);
    free(profiles);
}

size_t profiles_pending(const struct profiles *profiles)
{
    return profiles->pending;
}

bool profiles_is_loaded(const struct profiles *profiles)
{
    return profiles->is_loaded;
}

size_t profiles_count(const struct profiles *profiles)
{
    return profiles->count;
}

const struct profile *profiles_at(const struct profiles *profiles, size_t index)
{
    return &profiles->list[index];
}

const char *profiles_path(const struct profiles *profiles)
{
    return profiles->path;
}

/* "42.profile" is called "42", too. */
static bool profile_is_called(const struct profile *profile, const char *id)
{
    size_t stem_bytes = strlen(profile->file) - (sizeof profiles_suffix - 1);
    return strcmp(profile->key, id) == 0 || strcmp(profile->desc.id, id) == 0 ||
           (strlen(id) == stem_bytes && memcmp(profile->file, id, stem_bytes) == 0);
}

const struct profile *profiles_find(const struct profiles *profiles, const char *id)
{
    for (size_t i = profiles->count; i > 0; i--) {
        if (profile_is_called(&profiles->list[i - 1], id))
            return &profiles->list[i - 1];
    }
    return NULL;
}

void profiles_forget(struct profiles *profiles, const char *file)
{
    for (size_t i = 0; i < profiles->count; i++) {
        if (strcmp(profiles->list[i].file, file) != 0)
            continue;
        profile_fini(&profiles->list[i]);
        profiles->count--;
        memmove(&profiles->list[i], &profiles->list[i + 1], (profiles->count - i) * sizeof *profiles->list);
        return;
    }
}

int profiles_read_file(const char *directory, const char *file, struct buf *out, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, PROFILES_PATH_MAX_BYTES);
    buf_printf(&path, "%s/%s", directory, file);
    const char *path_text = buf_string(&path);
    int rc = buf_status(&path, err);
    return rc < 0 ? rc : file_read(AT_FDCWD, path_text, out, err);
}

void profiles_samples_file(const char *command, struct buf *out)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_bytes = 0;
    if (EVP_Digest(command, strlen(command), digest, &digest_bytes, EVP_md5(), NULL) != 1)
        digest_bytes = 0; /* a machine that forbids MD5: one file for all commands, each line names its own */
    for (unsigned i = 0; i < digest_bytes; i++)
        buf_printf(out, "%02x", digest[i]);
    buf_text(out, ".jsonl");
}

/* Text of a job */

static void profiles_put_gauge(const struct metric_gauge *gauge, struct buf *out)
{
    buf_text(out, "{\"Gauge\":{\"min\":");
    buf_double(out, gauge->min);
    buf_text(out, ",\"max\":");
    buf_double(out, gauge->max);
    buf_text(out, ",\"hits\":");
    buf_double(out, gauge->hits);
    buf_text(out, ",\"total\":");
    buf_double(out, gauge->total);
    buf_text(out, "}}}");
}

static void profiles_put_metric(const struct metric *metric, struct buf *out)
{
    buf_text(out, "{\"name\":");
    buf_json_string(out, metric->name);
    buf_text(out, ",\"doc\":");
    buf_json_string(out, metric->doc);
    buf_text(out, ",\"ctype\":");
    if (metric->value.kind == METRIC_GAUGE) {
        profiles_put_gauge(&metric->value.gauge, out);
        return;
    }
    buf_text(out, "{\"Counter\":{\"ts\":");
    buf_i64(out, metric->value.wall_us);
    buf_text(out, ",\"value\":");
    buf_double(out, metric->value.counter);
    buf_text(out, "}}}");
}

/* Ranks that the launcher announced are all there that have been seen: MPI ranks, or whatever counted. */
static uint64_t profiles_ranks_seen(const struct job *job)
{
    struct job_counts counts = job_counts(job);
    return counts.ranks_peak > 0 ? counts.ranks_peak : counts.contributors_seen;
}

static bool profiles_has_counted(const struct job *job, const char *name)
{
    const struct metric *metric = registry_find(job_registry(job), name, strlen(name));
    return metric != NULL && metric->value.kind == METRIC_COUNTER && metric->value.counter > 0;
}

static bool profiles_is_complete(const struct job *job)
{
    return profiles_has_counted(job, "has_started") && profiles_has_counted(job, "has_finished") &&
           profiles_ranks_seen(job) >= job_description(job)->size;
}

void profiles_job_to_json(const struct job *job, bool has_zeros, bool has_extras, struct buf *out)
{
    buf_text(out, "{\"desc\":");
    metric_job_to_json(job_description(job), out);
    buf_text(out, ",\"counters\":[");
    const struct registry *reg = job_registry(job);
    bool is_first = true;
    for (size_t i = 0; i < registry_count(reg); i++) {
        const struct metric *metric = registry_at(reg, i);
        if (!has_zeros && metric_is_zero(&metric->value))
            continue;
        if (!is_first)
            buf_char(out, ',');
        is_first = false;
        profiles_put_metric(metric, out);
    }
    buf_char(out, ']');
    if (has_extras) {
        buf_text(out, ",\"cicada\":{\"key\":");
        buf_json_string(out, job_key(job));
        buf_printf(out, ",\"ranks_expected\":%llu,\"ranks_seen\":%llu,\"is_complete\":%s}",
                   (unsigned long long)job_description(job)->size, (unsigned long long)profiles_ranks_seen(job),
                   profiles_is_complete(job) ? "true" : "false");
    }
    buf_char(out, '}');
}

/* One sample a metric, as Extra-P's JSON lines want them: how many processes, which metric, what it was. */
static char *profiles_sample_text(const struct job *job)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, PROFILES_FILE_MAX_BYTES);
    const struct registry *reg = job_registry(job);
    for (size_t i = 0; i < registry_count(reg); i++) {
        const struct metric *metric = registry_at(reg, i);
        if (metric_is_zero(&metric->value))
            continue;
        buf_printf(&text, "{\"params\":{\"size\":%llu},\"callpath\":\"main\",\"metric\":",
                   (unsigned long long)job_description(job)->size);
        buf_json_string(&text, metric->name);
        buf_text(&text, ",\"value\":");
        buf_double(&text, metric_shown(&metric->value));
        buf_text(&text, "}\n");
    }
    const char *string = buf_string(&text);
    return buf_status(&text, NULL) == 0 ? strdup(string) : NULL;
}

/* Reading what is there: on a worker */

static int profiles_compare(const void *a, const void *b)
{
    const struct profile *one = a;
    const struct profile *other = b;
    if (one->desc.start_wall_ms != other->desc.start_wall_ms)
        return one->desc.start_wall_ms < other->desc.start_wall_ms ? -1 : 1;
    return strcmp(one->file, other->file);
}

/* Fills in `profile` from a file's text; -EINVAL when it is no profile. */
static int profiles_parse(const struct buf *text, struct profile *profile, struct error *err)
{
    json_error_t where;
    json_t *object = json_loadb(text->data, text->length, 0, &where);
    if (object == NULL)
        return error_set(err, -EINVAL, "not JSON: %s", where.text);
    int rc = metric_job_from_json(json_object_get(object, "desc"), &profile->desc, err);
    if (rc == 0 && !json_is_array(json_object_get(object, "counters")))
        rc = error_set(err, -EINVAL, "no list of counters");
    const json_t *extras = json_object_get(object, "cicada");
    const char *key = json_string_value(json_object_get(extras, "key"));
    if (rc == 0) {
        profile->is_complete = json_is_true(json_object_get(extras, "is_complete"));
        profile->key = strdup(key != NULL ? key : profile->desc.id);
        if (profile->key == NULL)
            rc = error_set(err, -ENOMEM, "no memory for a profile");
    }
    json_decref(object);
    return rc;
}

static void profiles_set_aside(const char *directory, const char *file, const char *reason)
{
    CLEANUP(buf_cleanup) struct buf from;
    CLEANUP(buf_cleanup) struct buf to;
    buf_init(&from, PROFILES_PATH_MAX_BYTES);
    buf_init(&to, PROFILES_PATH_MAX_BYTES);
    buf_printf(&from, "%s/%s", directory, file);
    buf_printf(&to, "%s/%s.broken", directory, file);
    const char *from_text = buf_string(&from);
    const char *to_text = buf_string(&to);
    bool is_moved = buf_status(&from, NULL) == 0 && buf_status(&to, NULL) == 0 && rename(from_text, to_text) == 0;
    log_error("profile '%s': %s: %s", from_text, reason, is_moved ? "set aside as *.broken" : "left out");
}

static int profiles_read_one(const char *directory, const char *file, struct profile *profile, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, PROFILES_FILE_MAX_BYTES);
    int rc = profiles_read_file(directory, file, &text, err);
    if (rc == 0)
        rc = profiles_parse(&text, profile, err);
    if (rc < 0)
        return rc;
    struct stat info;
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, PROFILES_PATH_MAX_BYTES);
    buf_printf(&path, "%s/%s", directory, file);
    if (stat(buf_string(&path), &info) == 0) {
        profile->changed_wall_ms = info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
        profile->size_bytes = (uint64_t)info.st_size;
    }
    profile->file = strdup(file);
    return profile->file != NULL ? 0 : error_set(err, -ENOMEM, "no memory for a profile");
}

static bool profiles_found_grow(struct profile **list, size_t *capacity, size_t count)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity > 0 ? *capacity * 2 : 16;
    struct profile *grown = realloc(*list, wanted * sizeof *grown);
    if (grown == NULL)
        return false;
    *list = grown;
    *capacity = wanted;
    return true;
}

static bool profiles_is_name(const char *name)
{
    size_t bytes = strlen(name);
    return name[0] != '.' && bytes >= sizeof profiles_suffix &&
           strcmp(name + bytes - (sizeof profiles_suffix - 1), profiles_suffix) == 0;
}

static void profiles_run_load(struct profiles_work *work)
{
    CLEANUP(dir_cleanup) DIR *dir = opendir(work->path);
    if (dir == NULL) {
        if (errno != ENOENT)
            log_error("profiles in '%s': %s", work->path, strerrordesc_np(errno));
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (!profiles_is_name(entry->d_name) ||
            !profiles_found_grow(&work->found.list, &work->found.capacity, work->found.count))
            continue;
        struct error err = {0};
        struct profile profile = {0};
        int rc = profiles_read_one(work->path, entry->d_name, &profile, &err);
        if (rc == 0) {
            work->found.list[work->found.count++] = profile;
            continue;
        }
        profile_fini(&profile);
        if (rc == -EINVAL || rc == -E2BIG)
            profiles_set_aside(work->path, entry->d_name, err.text);
        else
            log_error("profile '%s/%s': %s: left out", work->path, entry->d_name, err.text);
    }
}

/* Saving: on a worker */

/* May `file` be replaced: is it not there, or of the same run? */
static bool profiles_may_replace(struct profiles_work *work, const char *file)
{
    struct profile there = {0};
    struct error err = {0};
    int rc = profiles_read_one(work->path, file, &there, &err);
    bool is_same = rc == 0 && there.key != NULL && strcmp(there.key, work->saved.key) == 0 &&
                   there.desc.start_wall_ms == work->saved.desc.start_wall_ms;
    work->has_ended_before = is_same && there.desc.end_wall_ms != 0;
    profile_fini(&there);
    return rc == -ENOENT || is_same;
}

/* <key>.profile, or <key>.2.profile, …: the first name that no other run has. */
static int profiles_choose_file(struct profiles_work *work, struct buf *file)
{
    for (unsigned run = 1; run <= PROFILES_RUNS_MAX; run++) {
        buf_reset(file);
        file_safe_name(work->saved.key, file);
        if (run > 1)
            buf_printf(file, ".%u", run);
        buf_text(file, profiles_suffix);
        const char *name = buf_string(file);
        int rc = buf_status(file, &work->err);
        if (rc < 0)
            return rc;
        if (!profiles_may_replace(work, name))
            continue;
        if (run > 1)
            log_warn("job=%s there was a job with this id before: the profile of this one is '%s'", work->saved.key,
                     name);
        return 0;
    }
    return error_set(&work->err, -EEXIST, "job '%s': there are %d profiles of it already", work->saved.key,
                     PROFILES_RUNS_MAX);
}

/* Appends the samples of a complete run. A sample that is cut off by a full disk is the reader's to pass over. */
static int profiles_append_sample(struct profiles_work *work)
{
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, PROFILES_PATH_MAX_BYTES);
    buf_printf(&path, "%s/", work->path);
    profiles_samples_file(work->command, &path);
    const char *path_text = buf_string(&path);
    int rc = buf_status(&path, &work->err);
    if (rc < 0)
        return rc;
    CLEANUP(fd_cleanup) int fd = open(path_text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, PROFILES_MODE);
    if (fd < 0)
        return error_errno(&work->err, "opening '%s'", path_text);
    return file_write_all(fd, work->sample, strlen(work->sample), &work->err);
}

static void profiles_run_save(struct profiles_work *work)
{
    CLEANUP(buf_cleanup) struct buf file;
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&file, PROFILES_PATH_MAX_BYTES);
    buf_init(&path, PROFILES_PATH_MAX_BYTES);
    work->status = file_make_directories(work->path, PROFILES_DIRECTORY_MODE, &work->err);
    if (work->status == 0)
        work->status = profiles_choose_file(work, &file);
    if (work->status < 0)
        return;
    buf_printf(&path, "%s/%s", work->path, buf_string(&file));
    work->status = buf_status(&path, &work->err);
    if (work->status == 0)
        work->status = file_replace(buf_string(&path), work->text, work->text_bytes, PROFILES_MODE, &work->err);
    if (work->status == 0 && work->sample != NULL && !work->has_ended_before)
        work->status = profiles_append_sample(work);
    work->saved.file = strdup(buf_string(&file));
    work->saved.size_bytes = work->text_bytes;
    work->saved.changed_wall_ms = clock_wall_ns() / CLOCK_NS_PER_MS;
    if (work->status == 0 && work->saved.file == NULL)
        work->status = error_set(&work->err, -ENOMEM, "no memory for a profile");
}

/* Back on the loop */

/* Puts a profile into the index, in place of the one with the same file. Takes it. */
static void profiles_index(struct profiles *profiles, struct profile *profile)
{
    for (size_t i = 0; i < profiles->count; i++) {
        if (strcmp(profiles->list[i].file, profile->file) != 0)
            continue;
        profile_fini(&profiles->list[i]);
        profiles->list[i] = *profile;
        *profile = (struct profile){0};
        return;
    }
    if (!profiles_found_grow(&profiles->list, &profiles->capacity, profiles->count))
        return; /* the file is there; only the list lacks it until the next start */
    profiles->list[profiles->count++] = *profile;
    *profile = (struct profile){0};
}

static void profiles_sort(struct profiles *profiles)
{
    if (profiles->count > 1)
        qsort(profiles->list, profiles->count, sizeof *profiles->list, profiles_compare);
}

static void profiles_finish(struct profiles_work *work)
{
    struct profiles *profiles = work->profiles;
    if (work->key == NULL) {
        /* What was saved while this was read is newer. */
        struct profile *saved = profiles->list;
        size_t saved_count = profiles->count;
        profiles->list = work->found.list;
        profiles->count = work->found.count;
        profiles->capacity = work->found.capacity;
        work->found = (struct profiles_found){0};
        for (size_t i = 0; i < saved_count; i++) {
            profiles_index(profiles, &saved[i]);
            profile_fini(&saved[i]);
        }
        free(saved);
        profiles->is_loaded = true;
    } else if (work->status == 0) {
        profiles_index(profiles, &work->saved);
    } else {
        log_error("job=%s profile: %s", work->key, work->err.text);
    }
    profiles_sort(profiles);
    if (work->on_saved != NULL)
        work->on_saved(work->context, work->key, work->status);
    profiles_work_free(work);
}

static void profiles_do(struct profiles_work *work)
{
    if (work->key == NULL)
        profiles_run_load(work);
    else
        profiles_run_save(work);
}

static void profiles_on_work(uv_work_t *request)
{
    profiles_do(request->data);
}

static void profiles_run_next(struct profiles *profiles);

static void profiles_on_worked(uv_work_t *request, int status)
{
    (void)status; /* work is never cancelled */
    struct profiles_work *work = request->data;
    struct profiles *profiles = work->profiles;
    profiles->running = NULL;
    profiles->pending--;
    profiles_finish(work);
    profiles_run_next(profiles);
}

/* Gives the next work to a worker, or does it when there are none. */
static void profiles_run_next(struct profiles *profiles)
{
    while (profiles->running == NULL && profiles->first != NULL) {
        struct profiles_work *work = profiles->first;
        profiles->first = work->next;
        if (profiles->loop != NULL &&
            uv_queue_work(profiles->loop, &work->request, profiles_on_work, profiles_on_worked) == 0) {
            profiles->running = work;
            continue;
        }
        profiles->pending--;
        profiles_do(work);
        profiles_finish(work);
    }
}

/* Takes `work`. */
static void profiles_begin(struct profiles *profiles, struct profiles_work *work)
{
    work->request.data = work;
    work->next = NULL;
    if (profiles->first == NULL)
        profiles->first = work;
    else
        profiles->last->next = work;
    profiles->last = work;
    profiles->pending++;
    profiles_run_next(profiles);
}

static struct profiles_work *profiles_work_new(struct profiles *profiles)
{
    CLEANUP(profiles_work_cleanup) struct profiles_work *work = calloc(1, sizeof *work);
    if (work == NULL)
        return NULL;
    work->profiles = profiles;
    work->path = strdup(profiles->path);
    return work->path != NULL ? TAKE(work) : NULL;
}

void profiles_load(struct profiles *profiles)
{
    struct profiles_work *work = profiles_work_new(profiles);
    if (work == NULL) {
        log_error("no memory to read the profiles in '%s'", profiles->path);
        return;
    }
    profiles_begin(profiles, work);
}

/* The text, and what the index will hold. */
static int profiles_fill(struct profiles_work *work, const struct job *job, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, PROFILES_FILE_MAX_BYTES);
    profiles_job_to_json(job, true, true, &text);
    const struct metric_job *desc = job_description(job);
    int rc = buf_status(&text, err);
    if (rc == 0)
        rc = metric_job_init(&work->saved.desc, desc->id, err);
    if (rc == 0)
        rc = metric_job_merge(&work->saved.desc, desc, err);
    if (rc < 0)
        return rc;
    work->saved.desc.end_wall_ms = desc->end_wall_ms;
    work->saved.is_complete = profiles_is_complete(job);
    work->saved.key = strdup(job_key(job));
    work->key = strdup(job_key(job));
    work->command = strdup(desc->command);
    if (work->saved.key == NULL || work->key == NULL || work->command == NULL)
        return error_set(err, -ENOMEM, "no memory for the profile of job '%s'", job_key(job));
    if (work->saved.is_complete && desc->end_wall_ms != 0 && desc->command[0] != '\0')
        work->sample = profiles_sample_text(job); /* without memory there is one sample fewer */
    work->text_bytes = text.length;
    work->text = TAKE(text.data);
    buf_init(&text, 0);
    return 0;
}

int profiles_save(struct profiles *profiles, const struct job *job,
                  void (*on_saved)(void *context, const char *key, int status), void *context, struct error *err)
{
    CLEANUP(profiles_work_cleanup) struct profiles_work *work = profiles_work_new(profiles);
    if (work == NULL)
        return error_set(err, -ENOMEM, "no memory for the profile of job '%s'", job_key(job));
    int rc = profiles_fill(work, job, err);
    if (rc < 0)
        return rc;
    work->on_saved = on_saved;
    work->context = context;
    profiles_begin(profiles, TAKE(work));
    return 0;
}
