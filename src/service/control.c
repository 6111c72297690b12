/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/control.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/daemon.h"
#include "service/instance.h"
#include "service/journal.h"
#include "service/options.h"
#include "service/paths.h"
#include "service/service.h"
#include "util/buf.h"
#include "util/clock.h"
#include "util/cursor.h"
#include "util/log.h"
#include "util/notify.h"

enum {
    CONTROL_TEXT_MAX_BYTES = 65536,
    CONTROL_START_TIMEOUT_MS = 60000, /* the daemon itself gives up sooner; this is for a log directory that hangs */
    CONTROL_JOURNAL_CLOSE_MS = 2000,
    CONTROL_POLL_MS = 5,
};

/* What start and run need. */
struct control {
    struct options options;
    struct paths paths;
};

/* A service about to run, as a daemon or in the foreground. */
struct control_service {
    const struct control *control;
    struct instance instance;
    struct journal *journal;
    int pipe_fd; /* to the starter; -1 in the foreground */
    const char *notify_socket;
};

static void control_say(const char *format, ...) PRINTF_LIKE(1, 2);

/* A line for the person who called. */
static void control_say(const char *format, ...)
{
    char text[2 * ERROR_TEXT_MAX_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args); /* cut when too long */
    va_end(args);
    (void)fprintf(stderr, "dftracer_service: %s\n", text); /* who closed stderr wants no words */
}

static void control_say_lines(const struct buf *lines)
{
    struct cursor all = cursor_of(lines->data, lines->length);
    struct cursor line;
    while (cursor_line(&all, &line))
        control_say("%.*s", (int)cursor_left(&line), line.at);
}

static void control_fini(struct control *control)
{
    options_fini(&control->options);
    paths_fini(&control->paths);
}

/* What is not worth dying for without a word: a reader that has gone, and a limit of file size, which becomes an error.
 */
static void control_ignore_signals(void)
{
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignored, NULL); /* can't fail for these signals */
    (void)sigaction(SIGXFSZ, &ignored, NULL);
}

/*
 * Reads the settings. True when there is something to do; else `*out_exit` is how to end: a service that isn't enabled
 * is no failure.
 */
static bool control_init(struct control *control, const char *log_dir, enum control_exit *out_exit)
{
    control_ignore_signals();
    *control = (struct control){0};
    *out_exit = CONTROL_FAILED;
    CLEANUP(buf_cleanup) struct buf warnings;
    buf_init(&warnings, CONTROL_TEXT_MAX_BYTES);
    struct error err = {0};
    int rc = options_load(&control->options, environ, &warnings, &err);
    control_say_lines(&warnings);
    if (rc == 0 && !control->options.is_enabled) {
        control_say("DFTRACER_ENABLE is not 1: nothing is started");
        *out_exit = CONTROL_OK;
        return false;
    }
    if (rc == 0)
        rc = options_check(&control->options, &err);
    if (rc == 0)
        rc = paths_init(&control->paths, log_dir, true, &err);
    if (rc < 0)
        control_say("%s", err.text);
    return rc == 0;
}

/* Under Slurm a daemon of a job step is killed when the step ends, where processes are tracked by cgroup. */
static void control_warn_of_step(void)
{
    const char *step = getenv("SLURM_STEP_ID");
    const char *name = getenv("SLURM_STEP_NAME");
    if (step == NULL || (name != NULL && strcmp(name, "extern") == 0))
        return;
    control_say("warning: started inside Slurm step %s: where Slurm tracks processes by cgroup, the service ends with "
                "this step, without time to close its trace; better is 'srun --overlap --mem=0 dftracer_service run … "
                "&' in the job script, or the job's prolog",
                step);
}

static int control_on_ready(void *context, const char *notes, struct error *err)
{
    struct control_service *service = context;
    const struct state *state = &service->instance.state;
    int rc = instance_announce(&service->instance, err);
    if (rc < 0)
        return rc;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, CONTROL_TEXT_MAX_BYTES);
    buf_text(&text, notes);
    buf_printf(&text, "running on '%s': pid %d, trace '%s'\n", service->control->paths.host, (int)state->owner.pid,
               state->trace_path);
    if (service->pipe_fd >= 0)
        return daemon_report(TAKE_FD(service->pipe_fd), true, buf_string(&text), err);
    control_say_lines(&text);
    char ready[256];
    (void)snprintf(ready, sizeof ready, "READY=1\nSTATUS=Sampling every %" PRId64 " ms", state->interval_ms);
    struct error notify_err = {0};
    if (notify_send(service->notify_socket, ready, &notify_err) < 0)
        log_error("%s", notify_err.text); /* the manager will say what it makes of that */
    return 0;
}

static int control_serve_as_instance(struct control_service *service, struct error *err)
{
    const struct control *control = service->control;
    bool is_daemon = service->pipe_fd >= 0;
    const char *out_file = is_daemon ? control->paths.out_file : NULL;
    const char *err_file = is_daemon ? control->paths.err_file : NULL;
    int rc = is_daemon ? daemon_redirect(out_file, err_file, err) : 0;
    if (rc == 0)
        rc = journal_open(control->options.log_level, out_file, err_file, &service->journal, err);
    if (rc < 0)
        return rc;
    service->instance.state.interval_ms = control->options.interval_ms;
    const struct service_request request = {.options = &control->options,
                                            .paths = &control->paths,
                                            .instance = &service->instance,
                                            .journal = service->journal,
                                            .notify_socket = service->notify_socket,
                                            .on_ready = control_on_ready,
                                            .context = service};
    rc = service_run(&request, err);
    if (rc < 0)
        log_error("%s", err->text);
    journal_close(service->journal, CONTROL_JOURNAL_CLOSE_MS);
    return rc;
}

/* Lives as the service until it is told to end. */
static enum control_exit control_serve(const struct control *control, int pipe_fd)
{
    struct control_service service = {.control = control, .pipe_fd = pipe_fd};
    service.notify_socket = pipe_fd < 0 ? getenv("NOTIFY_SOCKET") : NULL;
    control_ignore_signals(); /* a daemon begins with none ignored */
    struct error err = {0};
    int rc = instance_become(&service.instance, &control->paths, &err);
    if (rc == 0) {
        rc = control_serve_as_instance(&service, &err);
        instance_leave(&service.instance);
    }
    bool was_ready = pipe_fd >= 0 && service.pipe_fd < 0;
    if (rc < 0 && service.pipe_fd >= 0)
        (void)daemon_report(service.pipe_fd, false, err.text, NULL); /* nobody is left to be told */
    else if (rc < 0 && !was_ready)
        control_say("%s", err.text);
    if (rc == -ETIMEDOUT)
        _exit(CONTROL_FAILED); /* exit() would wait for a thread that hangs */
    return rc < 0 ? CONTROL_FAILED : CONTROL_OK;
}

static enum control_exit control_start_checked(const struct control *control)
{
    struct error err = {0};
    enum daemon_side side;
    int pipe_fd = -1;
    control_warn_of_step();
    int rc = daemon_spawn(&side, &pipe_fd, &err);
    if (rc < 0) {
        control_say("%s", err.text);
        return CONTROL_FAILED;
    }
    if (side == DAEMON_CHILD)
        return control_serve(control, pipe_fd);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, CONTROL_TEXT_MAX_BYTES);
    rc = daemon_wait(pipe_fd, CONTROL_START_TIMEOUT_MS, &text, &err);
    close(pipe_fd);
    if (rc < 0)
        control_say("not started: %s", err.text);
    else
        control_say_lines(&text);
    return rc < 0 ? CONTROL_FAILED : CONTROL_OK;
}

enum control_exit control_start(const char *log_dir)
{
    CLEANUP(control_fini) struct control control;
    enum control_exit end;
    return control_init(&control, log_dir, &end) ? control_start_checked(&control) : end;
}

enum control_exit control_run(const char *log_dir)
{
    CLEANUP(control_fini) struct control control;
    enum control_exit end;
    return control_init(&control, log_dir, &end) ? control_serve(&control, -1) : end;
}

/* Why a service that was told to end has not ended. */
static void control_say_stuck(const struct instance_view *view, int64_t timeout_ms)
{
    const struct state *state = &view->state;
    const char *what = "it has not reacted to SIGTERM: is it stopped (SIGSTOP), or does its node have no time for it?";
    if (!view->has_state)
        what = "it doesn't say what it is doing";
    else if (state->phase == STATE_CLOSING)
        what = "it is closing its trace, whose file system may not answer";
    else if (state->phase >= STATE_CLOSED)
        what = "its trace is closed, but it still holds its lock: its log directory may not answer";
    control_say("pid %d has not ended within %.1f s (DFTRACER_STOP_TIMEOUT_MS): %s; trace '%s'", (int)state->owner.pid,
                (double)timeout_ms / 1000, what, state->trace_path);
}

/* Is the service over? Its lock tells, not its process: a hanging thread can keep the remains of that for long. */
static bool control_has_ended(struct instance_view *view)
{
    if (view->claim_fd < 0)
        return !identity_is_alive(&view->state.owner);
    struct state state;
    if (state_read(view->claim_fd, &state, NULL) == 0) {
        view->state = state;
        view->has_state = true;
    }
    return !claim_is_held(view->claim_fd);
}

/* What became of the trace, for a person, once the service is over. */
static enum control_exit control_tell_end(struct instance_view *view)
{
    const struct state *state = &view->state;
    (void)control_has_ended(view); /* the last word stands in the file, and may have come after the last look */
    if (!view->has_state) {
        control_say("pid %d has ended; what became of its trace it could not say", (int)state->owner.pid);
        return CONTROL_OK;
    }
    if (state->phase == STATE_CLOSED) {
        (void)printf("dftracer_service stopped: trace '%s' holds %" PRIu64 " events", state->trace_path,
                     state->progress.events);
        if (state->progress.dropped > 0)
            (void)printf(" (%" PRIu64 " could not be written and are missing)", state->progress.dropped);
        (void)printf("\n"); /* who closed stdout wants no words */
        return CONTROL_OK;
    }
    if (state->phase == STATE_ABANDONED)
        control_say("stopped, but the trace '%s' is not complete (%" PRIu64 " events are in it): %s", state->trace_path,
                    state->progress.events, state->reason);
    else
        control_say("pid %d died before it had closed its trace '%s' (at least %" PRIu64 " events are in it)",
                    (int)state->owner.pid, state->trace_path, state->progress.events);
    return CONTROL_FAILED;
}

/* Ends a running service. */
static enum control_exit control_end(struct instance_view *view, int64_t timeout_ms)
{
    struct error err = {0};
    int64_t deadline_ns = clock_mono_ns() + timeout_ms * CLOCK_NS_PER_MS;
    int rc = identity_signal(&view->state.owner, SIGTERM, &err);
    if (rc < 0 && rc != -ESRCH) { /* one that has just ended by itself is fine */
        control_say("pid %d can't be stopped: %s", (int)view->state.owner.pid, err.text);
        return CONTROL_FAILED;
    }
    while (!control_has_ended(view)) {
        if (clock_mono_ns() >= deadline_ns) {
            control_say_stuck(view, timeout_ms);
            return CONTROL_FAILED;
        }
        (void)poll(NULL, 0, CONTROL_POLL_MS); /* a nap */
    }
    return control_tell_end(view);
}

/* Looks for the service of `log_dir`; false, and it was said, when that fails. */
static bool control_look(const char *log_dir, struct paths *out_paths, struct instance_view *out_view)
{
    struct error err = {0};
    *out_paths = (struct paths){0};
    *out_view = (struct instance_view){.claim_fd = -1};
    int rc = paths_init(out_paths, log_dir, false, &err);
    if (rc == 0)
        rc = instance_look(out_paths, out_view, &err);
    if (rc < 0)
        control_say("%s", err.text);
    return rc == 0;
}

static enum control_exit control_stop_seen(const struct paths *paths, struct instance_view *view, int64_t timeout_ms)
{
    switch (view->life) {
    case INSTANCE_RUNNING:
        return control_end(view, timeout_ms);
    case INSTANCE_FOREIGN:
        control_say("nothing was stopped: %s", view->why.text);
        return CONTROL_FAILED;
    case INSTANCE_STALE:
    case INSTANCE_NONE:
        break;
    }
    control_say("no service is running on '%s' with log directory '%s' (looked for PID file '%s'%s%s)", paths->host,
                paths->log_dir, paths->pid_file, view->why.text[0] != '\0' ? "; " : "", view->why.text);
    return CONTROL_FAILED;
}

enum control_exit control_stop(const char *log_dir)
{
    CLEANUP(paths_fini) struct paths paths = {0};
    CLEANUP(instance_view_fini) struct instance_view view = {.claim_fd = -1};
    struct error err = {0};
    int64_t timeout_ms;
    if (options_load_stop_timeout(environ, &timeout_ms, &err) < 0) {
        control_say("%s", err.text);
        return CONTROL_FAILED;
    }
    return control_look(log_dir, &paths, &view) ? control_stop_seen(&paths, &view, timeout_ms) : CONTROL_FAILED;
}

enum control_exit control_restart(const char *log_dir)
{
    /* The settings are read first: a mistake in them must not cost the service that runs. */
    CLEANUP(control_fini) struct control control;
    enum control_exit end;
    if (!control_init(&control, log_dir, &end))
        return end;
    struct instance_view view = {.claim_fd = -1};
    CLEANUP(paths_fini) struct paths paths = {0};
    enum control_exit stopped = CONTROL_FAILED;
    if (control_look(log_dir, &paths, &view)) {
        bool is_there = view.life == INSTANCE_RUNNING || view.life == INSTANCE_FOREIGN;
        stopped = is_there ? control_stop_seen(&paths, &view, control.options.stop_timeout_ms) : CONTROL_OK;
        instance_view_fini(&view);
    }
    /* A trace that could not be completed is no reason to go on without a service; one that still lives is. */
    struct instance_view after;
    if (stopped != CONTROL_OK && instance_look(&paths, &after, NULL) == 0) {
        instance_view_fini(&after);
        if (after.life == INSTANCE_RUNNING || after.life == INSTANCE_FOREIGN)
            return CONTROL_FAILED;
    }
    return control_start_checked(&control);
}

/* How long ago that was; the clock may have been set since. */
static double control_age_s(int64_t wall_ns)
{
    int64_t age_ns = clock_wall_ns() - wall_ns;
    return age_ns > 0 ? (double)age_ns / (double)CLOCK_NS_PER_SECOND : 0;
}

static void control_print_running(const struct paths *paths, const struct instance_view *view)
{
    const struct state *state = &view->state;
    (void)printf("running on '%s': pid %d\n", paths->host, (int)state->owner.pid);
    if (!view->has_state) {
        (void)printf("  known by its PID file only: it is another user's, or its lock was removed\n");
        return;
    }
    if (!view->has_pid_file)
        (void)printf("  its PID file '%s' is missing\n", paths->pid_file);
    (void)printf("  trace       %s\n", state->trace_path);
    (void)printf("  events      %" PRIu64 " in the file %.1f s ago, %" PRIu64 " dropped\n", state->progress.events,
                 control_age_s(state->progress.written_wall_ns), state->progress.dropped);
    (void)printf("  samples     %" PRIu64 " in %.0f s, one every %" PRId64 " ms\n", state->progress.ticks,
                 control_age_s(state->start_wall_ns), state->interval_ms);
    if (state->progress.is_failing)
        (void)printf("  the trace can't be written at the moment: see %s\n", paths->err_file);
}

enum control_exit control_status(const char *log_dir)
{
    CLEANUP(paths_fini) struct paths paths = {0};
    CLEANUP(instance_view_fini) struct instance_view view = {.claim_fd = -1};
    if (!control_look(log_dir, &paths, &view))
        return CONTROL_UNKNOWN;
    switch (view.life) {
    case INSTANCE_RUNNING:
        control_print_running(&paths, &view);
        return CONTROL_OK;
    case INSTANCE_FOREIGN:
        (void)printf("unknown on '%s': %s\n", paths.host, view.why.text);
        return CONTROL_UNKNOWN;
    case INSTANCE_STALE:
        (void)printf("not running on '%s': %s\n", paths.host,
                     view.why.text[0] != '\0' ? view.why.text : "it died without closing its trace");
        if (view.has_state && view.state.trace_path[0] != '\0')
            (void)printf("  its trace   %s (at least %" PRIu64 " events)\n", view.state.trace_path,
                         view.state.progress.events);
        return CONTROL_FAILED;
    case INSTANCE_NONE:
        break;
    }
    (void)printf("not running on '%s' with log directory '%s' (looked for PID file '%s')\n", paths.host, paths.log_dir,
                 paths.pid_file);
    return CONTROL_NOT_RUNNING;
}
