/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/clock.h"
#include "util/file.h"

enum { INSTANCE_PID_FILE_MODE = 0644, INSTANCE_PID_FILE_MAX_BYTES = 4096, INSTANCE_BIRTH_POLL_MS = 5 };

/* A service writes its state directly after it has taken its claim. */
#define INSTANCE_BIRTH_WAIT_NS (2 * CLOCK_NS_PER_SECOND)

static const char instance_claim_kind[] = "service";

static int instance_claim_name(const struct paths *paths, char **out_name, struct error *err)
{
    if (asprintf(out_name, "%s:%s", paths->host, paths->log_dir) >= 0)
        return 0;
    *out_name = NULL;
    return error_set(err, -ENOMEM, "no memory for a name");
}

/* Who wrote the PID file; -ENOENT when there is none. */
static int instance_read_pid_file(const struct paths *paths, struct identity *out_identity, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, INSTANCE_PID_FILE_MAX_BYTES);
    int rc = file_read(AT_FDCWD, paths->pid_file, &text, err);
    return rc < 0 ? rc : identity_parse(text.data, text.length, out_identity, err);
}

/* What the PID file says, when no claim does. */
static enum instance_life instance_ask_pid_file(const struct paths *paths, struct instance_view *view)
{
    struct identity found = {0};
    int rc = instance_read_pid_file(paths, &found, &view->why);
    if (rc == -ENOENT) {
        view->why = (struct error){0};
        return INSTANCE_NONE;
    }
    view->has_pid_file = true;
    if (rc == -EINVAL || rc == -E2BIG) {
        (void)error_wrap(&view->why, rc, "the PID file '%s' is not one", paths->pid_file);
        return INSTANCE_STALE;
    }
    if (rc < 0)
        return INSTANCE_FOREIGN;
    if (!view->has_state)
        view->state.owner = found;
    if (identity_is_alive(&found)) {
        view->state.owner = found;
        return INSTANCE_RUNNING;
    }
    if (found.start_ticks == 0 && identity_looks_alive(&found)) {
        (void)error_set(&view->why, -EPERM,
                        "the PID file '%s' holds nothing but the number %d, and a process of that number is a "
                        "dftracer_service: whether it is the one of this log directory can't be told",
                        paths->pid_file, (int)found.pid);
        return INSTANCE_FOREIGN;
    }
    (void)error_set(&view->why, -ESRCH, "stale PID file '%s': process %d is gone, or is another program",
                    paths->pid_file, (int)found.pid);
    return INSTANCE_STALE;
}

/* What the claim says, when somebody holds it; the PID file, when he could not write his state into it. */
static enum instance_life instance_ask_claim(const struct paths *paths, struct instance_view *view)
{
    int rc = state_read(view->claim_fd, &view->state, &view->why);
    if (rc < 0) {
        struct error why = view->why;
        if (instance_ask_pid_file(paths, view) == INSTANCE_RUNNING)
            return INSTANCE_RUNNING;
        view->why = why;
        (void)error_wrap(&view->why, rc, "one is just starting, or is of another version");
        return INSTANCE_FOREIGN;
    }
    view->has_state = true;
    if (identity_is_alive(&view->state.owner) || view->state.phase >= STATE_CLOSED)
        return INSTANCE_RUNNING;
    (void)error_set(&view->why, -EPERM,
                    "process %d was killed, but still holds its lock: a thread of it hangs in the kernel, mostly in a "
                    "file system that doesn't answer (its trace is '%s')",
                    (int)view->state.owner.pid, view->state.trace_path);
    return INSTANCE_FOREIGN;
}

int instance_look(const struct paths *paths, struct instance_view *out_view, struct error *err)
{
    *out_view = (struct instance_view){.claim_fd = -1};
    CLEANUP(memory_cleanup) char *name = NULL;
    int rc = instance_claim_name(paths, &name, err);
    if (rc == 0)
        rc = claim_find(instance_claim_kind, name, &out_view->claim_fd, err);
    if (rc < 0 && rc != -ENOENT)
        return rc;
    out_view->has_pid_file = access(paths->pid_file, F_OK) == 0;
    if (rc == 0 && claim_is_held(out_view->claim_fd)) {
        out_view->life = instance_ask_claim(paths, out_view);
        return 0;
    }
    out_view->has_state = rc == 0 && state_read(out_view->claim_fd, &out_view->state, NULL) == 0;
    out_view->life = instance_ask_pid_file(paths, out_view);
    if (out_view->life == INSTANCE_NONE && out_view->has_state)
        out_view->life = INSTANCE_STALE;
    return 0;
}

void instance_view_fini(struct instance_view *view)
{
    if (view->claim_fd >= 0)
        close(view->claim_fd);
    view->claim_fd = -1;
}

/* The words for a service that is there already. */
static int instance_refuse(const struct paths *paths, const struct instance_view *view, struct error *err)
{
    if (view->life == INSTANCE_FOREIGN)
        return error_set(err, -EEXIST, "a dftracer_service can't be started on '%s' with log directory '%s': %s",
                         paths->host, paths->log_dir, view->why.text);
    return error_set(err, -EEXIST, "dftracer_service is already running on '%s' with log directory '%s': pid %d%s%s",
                     paths->host, paths->log_dir, (int)view->state.owner.pid,
                     view->has_state && view->state.trace_path[0] != '\0' ? ", trace " : "",
                     view->has_state ? view->state.trace_path : "");
}

/* Another one has the claim: says which, as soon as it has said so itself. -EAGAIN when it has ended meanwhile. */
static int instance_refuse_claimed(const struct paths *paths, struct error *err)
{
    int64_t deadline_ns = clock_mono_ns() + INSTANCE_BIRTH_WAIT_NS;
    for (;;) {
        struct instance_view view;
        int rc = instance_look(paths, &view, err);
        if (rc < 0)
            return rc;
        instance_view_fini(&view);
        if (view.life == INSTANCE_NONE || view.life == INSTANCE_STALE)
            return error_set(err, -EAGAIN, "the other one has ended");
        bool is_known = view.state.owner.pid != 0 && (view.has_state || view.life == INSTANCE_RUNNING);
        if (is_known || clock_mono_ns() >= deadline_ns)
            return instance_refuse(paths, &view, err);
        (void)poll(NULL, 0, INSTANCE_BIRTH_POLL_MS); /* a nap */
    }
}

int instance_become(struct instance *out_instance, const struct paths *paths, struct error *err)
{
    *out_instance = (struct instance){.paths = paths, .claim = CLAIM_NONE};
    CLEANUP(memory_cleanup) char *name = NULL;
    int rc = instance_claim_name(paths, &name, err);
    if (rc < 0)
        return rc;
    do {
        rc = claim_take(instance_claim_kind, name, 0, &out_instance->claim, err);
        if (rc == -EWOULDBLOCK)
            rc = instance_refuse_claimed(paths, err);
    } while (rc == -EAGAIN);
    if (rc < 0)
        return rc;

    struct instance_view view = {.claim_fd = -1};
    view.life = instance_ask_pid_file(paths, &view);
    if (view.life == INSTANCE_RUNNING || view.life == INSTANCE_FOREIGN)
        rc = instance_refuse(paths, &view, err);
    if (rc == 0)
        rc = identity_of_self(&out_instance->state.owner, err);
    out_instance->state.start_wall_ns = clock_wall_ns();
    if (rc == 0)
        rc = state_write(out_instance->claim.fd, &out_instance->state, err);
    if (rc == -ENOSPC)
        rc = 0; /* an application has filled /dev/shm: the lock holds all the same, and the PID file says who it is */
    if (rc < 0)
        claim_drop(&out_instance->claim);
    return rc;
}

int instance_announce(const struct instance *instance, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, INSTANCE_PID_FILE_MAX_BYTES);
    identity_print(&instance->state.owner, &text);
    int rc = buf_status(&text, err);
    if (rc == 0)
        rc = file_replace(instance->paths->pid_file, text.data, text.length, INSTANCE_PID_FILE_MODE, err);
    return rc < 0 ? error_wrap(err, rc, "writing the PID file '%s'", instance->paths->pid_file) : 0;
}

static int instance_write(struct instance *instance, struct error *err)
{
    int rc = state_write(instance->claim.fd, &instance->state, err);
    instance->is_published = rc == 0;
    return rc;
}

static int instance_check_claim(struct instance *instance, struct error *err)
{
    bool is_new;
    if (claim_renew(&instance->claim, &is_new)) {
        instance->is_published = instance->is_published && !is_new;
        return 0;
    }
    return error_set(err, -EIDRM, "the lock of this service was removed, and another service has taken its place");
}

int instance_publish(struct instance *instance, struct error *err)
{
    int rc = instance_check_claim(instance, err);
    return rc < 0 ? rc : instance_write(instance, err);
}

int instance_publish_progress(struct instance *instance, struct error *err)
{
    int rc = instance_check_claim(instance, err);
    if (rc < 0)
        return rc;
    return instance->is_published ? state_write_progress(instance->claim.fd, &instance->state.progress, err)
                                  : instance_write(instance, err);
}

void instance_leave(struct instance *instance)
{
    if (instance->claim.path == NULL)
        return;
    (void)state_write(instance->claim.fd, &instance->state, NULL); /* who waits sees the lock go, too */
    struct identity written = {0};
    if (instance_read_pid_file(instance->paths, &written, NULL) == 0 && written.pid == instance->state.owner.pid &&
        written.start_ticks == instance->state.owner.start_ticks)
        (void)unlink(instance->paths->pid_file); /* one that stays is stale, which everybody can tell */
    claim_drop(&instance->claim);
}
