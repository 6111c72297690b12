/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/alarms_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/work.h"
#include "proxy/alarms_text.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"

enum { ALARMS_FILE_MODE = 0644, ALARMS_FILE_DIRECTORY_MODE = 0755, ALARMS_FILE_PATH_MAX_BYTES = 8192 };

#define ALARMS_FILE_AGAIN_NS (10 * CLOCK_NS_PER_SECOND)
#define ALARMS_FILE_LOG_NS   (60 * CLOCK_NS_PER_SECOND)

struct alarms_file {
    uv_loop_t *loop;
    char *path;
    struct alarms *alarms;
    struct work *work; /* a read or a write; one at a time */
    bool is_read;
    bool is_dirty;       /* something is to be written */
    bool is_reading;     /* the list changes since it is read, not since somebody wants it */
    bool must_set_aside; /* before the next write */
    int64_t again_mono_ns;
    struct log_repeat repeat;
    bool is_closing;
    void (*on_closed)(void *context);
    void *context;
};

/* What a worker has. */
struct alarms_file_task {
    struct alarms_file *file;
    char *path;
    bool is_write;
    bool must_set_aside;
    struct buf text; /* read, or to be written */
    int rc;
    struct error err;
};

static void alarms_file_task_free(struct alarms_file_task *task)
{
    buf_fini(&task->text);
    free(task->path);
    free(task);
}

/* On the worker */

static void alarms_file_set_aside(const char *path)
{
    CLEANUP(buf_cleanup) struct buf aside;
    buf_init(&aside, ALARMS_FILE_PATH_MAX_BYTES);
    buf_printf(&aside, "%s.broken", path);
    const char *aside_path = buf_string(&aside);
    bool is_moved = buf_status(&aside, NULL) == 0 && rename(path, aside_path) == 0;
    log_error("alarms file='%s' %s", path, is_moved ? "set aside as *.broken" : "could not be set aside");
}

static void alarms_file_make_parent(const char *path)
{
    char *parent = strdup(path);
    char *slash = parent != NULL ? strrchr(parent, '/') : NULL;
    if (slash != NULL && slash != parent) {
        *slash = '\0';
        if (file_make_directories(parent, ALARMS_FILE_DIRECTORY_MODE, NULL) < 0)
            slash = NULL; /* the write will tell why */
    }
    free(parent);
}

static void alarms_file_run(void *data)
{
    struct alarms_file_task *task = data;
    if (task->must_set_aside)
        alarms_file_set_aside(task->path);
    if (!task->is_write) {
        task->rc = file_read(AT_FDCWD, task->path, &task->text, &task->err);
        return;
    }
    alarms_file_make_parent(task->path);
    task->rc = file_replace(task->path, task->text.data, task->text.length, ALARMS_FILE_MODE, &task->err);
}

/* Back on the loop */

static void alarms_file_free(struct alarms_file *file)
{
    free(file->path);
    free(file);
}

static void alarms_file_go_on(struct alarms_file *file);

static void alarms_file_take_read(struct alarms_file *file, const struct alarms_file_task *task)
{
    file->is_read = true;
    if (task->rc == -ENOENT)
        return;
    struct error err = task->err;
    size_t bad = 0;
    int rc = task->rc;
    file->is_reading = true;
    if (rc == 0)
        rc =
            alarms_text_load(file->alarms, task->text.length > 0 ? task->text.data : "", task->text.length, &bad, &err);
    file->is_reading = false;
    if (rc < 0) {
        log_error("alarms file='%s' can't be read: %s", file->path, err.text);
        file->must_set_aside = true;
        file->is_dirty = true;
        return;
    }
    if (bad > 0)
        log_error("alarms file='%s' %zu entries left out, the last since: %s", file->path, bad, err.text);
    log_info("alarms file='%s' alarms=%zu", file->path, alarms_count(file->alarms));
}

static void alarms_file_take_written(struct alarms_file *file, const struct alarms_file_task *task)
{
    if (task->rc == 0)
        return;
    file->is_dirty = true;
    int64_t now_mono_ns = clock_mono_ns();
    file->again_mono_ns = now_mono_ns + ALARMS_FILE_AGAIN_NS;
    uint64_t held_back;
    if (log_repeat_is_due(&file->repeat, now_mono_ns, ALARMS_FILE_LOG_NS, &held_back))
        log_error("alarms file='%s' can't be written: %s: tried again (%llu times before)", file->path, task->err.text,
                  (unsigned long long)held_back);
    if (file->is_closing)
        file->is_dirty = false; /* has been said; there is no later */
}

static void alarms_file_on_done(void *data, bool is_wanted)
{
    struct alarms_file_task *task = data;
    struct alarms_file *file = task->file;
    (void)is_wanted; /* work is never abandoned: it would be lost */
    file->work = NULL;
    if (task->is_write)
        alarms_file_take_written(file, task);
    else
        alarms_file_take_read(file, task);
    alarms_file_task_free(task);
    alarms_file_go_on(file);
}

static int alarms_file_start(struct alarms_file *file, bool is_write, struct error *err)
{
    struct alarms_file_task *task = calloc(1, sizeof *task);
    if (task == NULL)
        return error_set(err, -ENOMEM, "no memory for the file of alarms");
    *task = (struct alarms_file_task){.file = file,
                                      .path = strdup(file->path),
                                      .is_write = is_write,
                                      .must_set_aside = is_write && file->must_set_aside};
    buf_init(&task->text, ALARMS_TEXT_FILE_MAX_BYTES);
    if (is_write)
        alarms_text_save(file->alarms, &task->text);
    int rc = task->path != NULL ? buf_status(&task->text, err) : error_set(err, -ENOMEM, "no memory for a path");
    const struct work_task work = {.run = alarms_file_run, .done = alarms_file_on_done, .data = task};
    if (rc == 0)
        rc = work_start(file->loop, &work, &file->work, err);
    if (rc < 0)
        alarms_file_task_free(task);
    return rc;
}

/* Begins what is due, or ends. */
static void alarms_file_go_on(struct alarms_file *file)
{
    if (file->work != NULL)
        return;
    int64_t now_mono_ns = clock_mono_ns();
    struct error err = {0};
    if (file->is_dirty && file->is_read && (file->is_closing || now_mono_ns >= file->again_mono_ns)) {
        if (alarms_file_start(file, true, &err) == 0) {
            file->is_dirty = false;
            file->must_set_aside = false;
            return;
        }
        log_error("alarms file='%s' %s", file->path, err.text);
        file->again_mono_ns = now_mono_ns + ALARMS_FILE_AGAIN_NS;
    }
    if (!file->is_closing)
        return;
    void (*on_closed)(void *context) = file->on_closed;
    void *context = file->context;
    alarms_file_free(file);
    on_closed(context);
}

int alarms_file_open(uv_loop_t *loop, const char *path, struct alarms *alarms, struct alarms_file **out_file,
                     struct error *err)
{
    struct alarms_file *file = calloc(1, sizeof *file);
    if (file != NULL)
        *file = (struct alarms_file){.loop = loop, .path = strdup(path), .alarms = alarms};
    if (file == NULL || file->path == NULL) {
        free(file);
        return error_set(err, -ENOMEM, "no memory for the file of alarms");
    }
    int rc = alarms_file_start(file, false, err);
    if (rc < 0) {
        alarms_file_free(file);
        return rc;
    }
    *out_file = file;
    return 0;
}

void alarms_file_touch(struct alarms_file *file)
{
    if (file->is_reading)
        return;
    file->is_dirty = true;
    alarms_file_go_on(file);
}

void alarms_file_tick(struct alarms_file *file, int64_t now_mono_ns)
{
    if (file->is_dirty && now_mono_ns >= file->again_mono_ns)
        alarms_file_go_on(file);
}

void alarms_file_close(struct alarms_file *file, void (*on_closed)(void *context), void *context)
{
    if (file == NULL) {
        on_closed(context);
        return;
    }
    file->is_closing = true;
    file->on_closed = on_closed;
    file->context = context;
    alarms_file_go_on(file);
}
