/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/service.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "sample/sampler.h"
#include "service/costs.h"
#include "service/crew.h"
#include "service/follower.h"
#include "service/omnistat.h"
#include "service/recorder.h"
#include "service/records.h"
#include "service/ticker.h"
#include "util/clock.h"
#include "util/cursor.h"
#include "util/log.h"
#include "util/notify.h"

enum {
    SERVICE_LINES_MAX_BYTES = 64 << 20, /* of one tick */
    SERVICE_NOTES_MAX_BYTES = 16384,
    SERVICE_TEXT_MAX_BYTES = 1 << 20,
    SERVICE_SIGNALS = 4,
};

/* How often the state is published at most, and a failing collector named. */
#define SERVICE_PUBLISH_NS CLOCK_NS_PER_SECOND
#define SERVICE_REPEAT_NS  (600 * CLOCK_NS_PER_SECOND)

/* Of the time that `stop` waits, the collectors' last sample may take a tenth, and the trace's end six. */
enum { SERVICE_SAMPLE_TENTHS = 1, SERVICE_CLOSE_TENTHS = 6 };

enum service_phase {
    SERVICE_BEGINNING, /* the first sample is on its way */
    SERVICE_RUNNING,
    SERVICE_ENDING, /* the last sample is on its way */
    SERVICE_ENDED,
};

struct service {
    const struct service_request *request;
    const struct options *options;
    enum service_phase phase;
    bool is_ready; /* the one who started it was told so */
    bool is_end_wanted;

    struct sampler *sampler;
    struct crew *crew;
    struct recorder *recorder;

    /* The crew's leader's, from its start to its end. */
    struct follower *follower; /* of the file of omnistat; NULL without one */
    struct records records;
    struct ticker ticker;
    struct buf lines;           /* of the tick */
    struct log_repeat *failing; /* [sampler_count] */
    bool has_begun;             /* the first sample has been taken */
    int64_t published_boot_ns;

    struct buf notes; /* for the person who started the service; then the leader's, for the log */

    /* The leader has it while it works on what is above, but for the collectors, which may hang. */
    pthread_mutex_t handing;
    bool is_hanging; /* guarded by handing: a collector has not come back. All of this stays, and the leader ends */

    pthread_mutex_t lock;
    /* guarded by lock, and so is the state of request->instance */
    struct error failure; /* why it ended, when it was not told to */

    uv_loop_t loop;
    int timer_fd;
    uv_timer_t deadline;
    uv_signal_t signals[SERVICE_SIGNALS];
};

static void service_lock(struct service *service)
{
    int rc = pthread_mutex_lock(&service->lock);
    (void)rc; /* of a plain mutex of ours: can't fail */
}

static void service_unlock(struct service *service)
{
    int rc = pthread_mutex_unlock(&service->lock);
    (void)rc; /* we hold it */
}

static void service_stop_loop(struct service *service)
{
    service->phase = SERVICE_ENDED;
    uv_stop(&service->loop);
}

static void service_on_deadline(uv_timer_t *timer);

/* Lets a sample that is under way come back, for as long as the end can wait for it. */
static void service_set_deadline(struct service *service)
{
    uint64_t wait_ms = (uint64_t)(service->options->stop_timeout_ms * SERVICE_SAMPLE_TENTHS / 10);
    (void)uv_timer_start(&service->deadline, service_on_deadline, wait_ms, 0); /* fails only without a callback */
}

/* Keeps the reason for which the service ends by itself: the first one. Any thread. */
static void service_note_failure(struct service *service, const struct error *err)
{
    service_lock(service);
    if (service->failure.code == 0)
        service->failure = *err;
    service_unlock(service);
}

/* Ends the service for a reason of its own. */
static void service_fail(struct service *service, const struct error *err)
{
    service_note_failure(service, err);
    crew_end(service->crew, false);
    service_set_deadline(service);
}

static void service_log_lines(enum log_level level, const char *before, const struct buf *lines)
{
    struct cursor all = cursor_of(lines->data, lines->length);
    struct cursor line;
    while (cursor_line(&all, &line))
        log_line(level, "%s%.*s", before, (int)cursor_left(&line), line.at);
}

/* What collectors have to say, and which ones failed: a failure that lasts is named once in ten minutes. */
static void service_log_collectors(struct service *service, int64_t now_mono_ns)
{
    for (size_t i = 0; i < sampler_count(service->sampler); i++) {
        buf_reset(&service->notes);
        sampler_take_notes(service->sampler, i, &service->notes);
        service_log_lines(LOG_LEVEL_WARN, "", &service->notes); /* the collector's name is in them */
        const char *reason = crew_failure(service->crew, i);
        uint64_t held_back = 0;
        if (reason != NULL && log_repeat_is_due(&service->failing[i], now_mono_ns, SERVICE_REPEAT_NS, &held_back))
            log_error("collector failed: %s (and %" PRIu64 " times since it was last said)", reason, held_back);
    }
}

/* With the lock held: what the state can't know by itself. */
static void service_count_progress(struct service *service)
{
    struct state_progress *progress = &service->request->instance->state.progress;
    struct pfw_writer_status status = recorder_status(service->recorder);
    progress->written_wall_ns = clock_wall_ns();
    progress->events = status.events_written;
    progress->dropped = status.events_dropped;
    progress->is_failing = status.is_failing;
}

/* Whether the service goes on: not if its place is lost. A state that can't be written tells `status` less, no more. */
static bool service_check_published(struct service *service, int rc, const struct error *err)
{
    if (rc == -EIDRM)
        service_note_failure(service, err);
    else if (rc < 0)
        log_warn("%s", err->text);
    return rc != -EIDRM;
}

/* The loop: all of the state, in `phase` from now on. False: the service ends. */
static bool service_publish(struct service *service, enum state_phase phase)
{
    struct error err = {0};
    service_lock(service);
    service->request->instance->state.phase = phase;
    service_count_progress(service);
    int rc = instance_publish(service->request->instance, &err);
    service_unlock(service);
    if (service_check_published(service, rc, &err))
        return true;
    service_fail(service, &err);
    return false;
}

/* The leader: what a tick changes. False: the service must end. */
static bool service_publish_progress(struct service *service, int64_t now_boot_ns)
{
    struct error err = {0};
    service_lock(service);
    service->request->instance->state.progress.ticks = service->ticker.taken;
    bool is_due = now_boot_ns - service->published_boot_ns >= SERVICE_PUBLISH_NS;
    int rc = 0;
    if (is_due) {
        service_count_progress(service);
        rc = instance_publish_progress(service->request->instance, &err);
        service->published_boot_ns = now_boot_ns;
    }
    service_unlock(service);
    return service_check_published(service, rc, &err);
}

static void service_hand_over(struct service *service, int64_t now_boot_ns)
{
    int64_t ts = recorder_ts(service->recorder, now_boot_ns);
    uint64_t events = 0;
    buf_reset(&service->lines);
    for (size_t i = 0; i < sampler_count(service->sampler); i++) {
        if (sampler_is_fresh(service->sampler, i))
            events += records_append(&service->records, sampler_ops(service->sampler, i)->name,
                                     sampler_table(service->sampler, i), ts, &service->lines);
    }
    if (service->lines.status != 0)
        log_error("the events of one tick need more than %d bytes: all of them are left out", SERVICE_LINES_MAX_BYTES);
    else
        recorder_append(service->recorder, service->lines.data, service->lines.length, events);
}

/* What omnistat has written since the last tick. */
static void service_take_omnistat(struct service *service)
{
    if (service->follower == NULL)
        return;
    CLEANUP(buf_cleanup) struct buf lines;
    buf_init(&lines, SERVICE_LINES_MAX_BYTES);
    uint64_t events = follower_take(service->follower, &lines);
    if (events > 0 && lines.status == 0)
        recorder_append(service->recorder, lines.data, lines.length, events);
}

static bool service_take_over(struct service *service, int64_t now_boot_ns)
{
    service_hand_over(service, now_boot_ns);
    service_take_omnistat(service);
    if (!service->has_begun) {
        service->has_begun = true; /* the notes of the start are still to be read */
        return true;
    }
    service_log_collectors(service, clock_mono_ns());
    return service_publish_progress(service, now_boot_ns);
}

/* The leader. */
static bool service_on_sampled(void *context, int64_t now_boot_ns)
{
    struct service *service = context;
    (void)pthread_mutex_lock(&service->handing); /* of a plain mutex of ours: can't fail */
    bool goes_on = !service->is_hanging && service_take_over(service, now_boot_ns);
    (void)pthread_mutex_unlock(&service->handing); /* we hold it */
    return goes_on;
}

static bool service_check_tick(struct service *service, int64_t now_boot_ns, int64_t busy_until_boot_ns)
{
    int64_t offset_ns = recorder_watch_clock(service->recorder, clock_wall_ns(), now_boot_ns);
    if (offset_ns != 0)
        log_warn("the wall clock was set: it is now %.3f s ahead of the trace's time stamps, which go on as before",
                 (double)offset_ns / (double)CLOCK_NS_PER_SECOND);
    return ticker_expire(&service->ticker, now_boot_ns, busy_until_boot_ns) == TICKER_TAKE;
}

/* The leader. */
static bool service_on_tick(void *context, int64_t now_boot_ns, int64_t busy_until_boot_ns)
{
    struct service *service = context;
    (void)pthread_mutex_lock(&service->handing); /* of a plain mutex of ours: can't fail */
    bool is_wanted = !service->is_hanging && service_check_tick(service, now_boot_ns, busy_until_boot_ns);
    (void)pthread_mutex_unlock(&service->handing); /* we hold it */
    return is_wanted;
}

static int service_arm(struct service *service, struct error *err)
{
    const struct ticker *ticker = &service->ticker;
    struct itimerspec when = {
        .it_value = {.tv_sec = ticker->first_boot_ns / CLOCK_NS_PER_SECOND,
                     .tv_nsec = ticker->first_boot_ns % CLOCK_NS_PER_SECOND},
        .it_interval = {.tv_sec = ticker->interval_ns / CLOCK_NS_PER_SECOND,
                        .tv_nsec = ticker->interval_ns % CLOCK_NS_PER_SECOND},
    };
    if (timerfd_settime(service->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) < 0)
        return error_errno(err, "setting the timer");
    return 0;
}

static void service_become_ready(struct service *service)
{
    struct error err = {0};
    service->phase = SERVICE_RUNNING;
    /* If it fails, the timer is set to end the crew, and must not be set to tick. */
    if (!service_publish(service, STATE_RUNNING))
        return;
    (void)pthread_mutex_lock(&service->handing); /* of a plain mutex of ours: can't fail */
    int rc = service->request->on_ready(service->request->context, buf_string(&service->notes), &err);
    if (rc == 0)
        rc = service_arm(service, &err);
    (void)pthread_mutex_unlock(&service->handing); /* we hold it; from now on the notes are the leader's */
    if (rc < 0)
        service_fail(service, &err);
    else
        service->is_ready = true;
}

/* The last sample is on its way: what happened since the last tick is not lost. */
static void service_take_last_sample(struct service *service)
{
    service->phase = SERVICE_ENDING;
    crew_end(service->crew, true);
}

static void service_on_started(void *context)
{
    struct service *service = context;
    service_become_ready(service);
    if (service->is_end_wanted && service->phase == SERVICE_RUNNING)
        service_take_last_sample(service);
}

static void service_on_ended(void *context)
{
    service_stop_loop(context);
}

/* The collectors' last sample has not come back in time: the end doesn't wait for it. */
static void service_on_deadline(uv_timer_t *timer)
{
    struct service *service = timer->data;
    if (pthread_mutex_trylock(&service->handing) != 0) {
        service_set_deadline(service); /* the sample has just come back */
        return;
    }
    service->is_hanging = true;
    int64_t now_boot_ns = clock_boot_ns();
    (void)ticker_expire(&service->ticker, now_boot_ns, now_boot_ns); /* the ticks that it took with it are counted */
    (void)pthread_mutex_unlock(&service->handing);                   /* we hold it */
    const char *straggler = crew_straggler(service->crew);
    log_error("collector %s did not come back: the trace ends without its last sample",
              straggler != NULL ? straggler : "(none)");
    service_stop_loop(service);
}

static void service_end(struct service *service)
{
    if (service->is_end_wanted)
        return; /* the second of two signals */
    service->is_end_wanted = true;
    service_set_deadline(service);
    if (service->phase != SERVICE_RUNNING)
        return; /* on_started goes on from there */

    (void)service_publish(service, STATE_CLOSING);                          /* it ends anyway */
    (void)notify_send(service->request->notify_socket, "STOPPING=1", NULL); /* it sees the end all the same */
    service_take_last_sample(service);
}

static void service_on_signal(uv_signal_t *handle, int number)
{
    struct service *service = handle->data;
    switch (number) {
    case SIGTERM:
    case SIGINT:
        service_end(service);
        break;
    case SIGHUP:
        journal_reopen(service->request->journal);
        break;
    case SIGUSR1:
        recorder_flush(service->recorder);
        (void)service_publish(service, service->request->instance->state.phase); /* it has seen to it */
        break;
    default:
        break; /* no other is asked for */
    }
}

static int service_uv(int rc, const char *what, struct error *err)
{
    return rc < 0 ? error_set(err, rc, "%s: %s", what, uv_strerror(rc)) : 0;
}

static int service_open_loop(struct service *service, struct error *err)
{
    static const int numbers[SERVICE_SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    service->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (service->timer_fd < 0)
        return error_errno(err, "making a timer");
    int rc = service_uv(uv_timer_init(&service->loop, &service->deadline), "making a timer", err);
    service->deadline.data = service;
    for (size_t i = 0; rc == 0 && i < SERVICE_SIGNALS; i++) {
        rc = service_uv(uv_signal_init(&service->loop, &service->signals[i]), "watching a signal", err);
        service->signals[i].data = service;
        if (rc == 0)
            rc = service_uv(uv_signal_start(&service->signals[i], service_on_signal, numbers[i]), "watching a signal",
                            err);
    }
    return rc;
}

static void service_close_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void service_close_loop(struct service *service)
{
    uv_walk(&service->loop, service_close_handle, NULL);
    (void)uv_run(&service->loop, UV_RUN_DEFAULT); /* lets the handles close */
    (void)uv_loop_close(&service->loop);
    if (service->timer_fd >= 0)
        close(service->timer_fd);
}

static int service_open_sampler(struct service *service, struct error *err)
{
    const struct options *options = service->options;
    const struct sample_config config = {.proc_path = options->proc_path,
                                         .sys_path = options->sys_path,
                                         .mount_prefix = options->root_path,
                                         .cgroup = options->cgroup,
                                         .has_frequency = true,
                                         .frequency_per_tick = options->frequency_per_tick};
    CLEANUP(buf_cleanup) struct buf notes;
    buf_init(&notes, SERVICE_NOTES_MAX_BYTES);
    int rc = sampler_open(&config, options->collectors, &notes, &service->sampler, err);
    if (rc < 0)
        return error_wrap(err, rc, "DFTRACER_COLLECTORS");
    service_log_lines(LOG_LEVEL_INFO, "not measured: ", &notes);
    service->failing = calloc(sampler_count(service->sampler) + 1, sizeof *service->failing);
    return service->failing != NULL ? 0 : error_set(err, -ENOMEM, "no memory for the collectors");
}

static int service_open_omnistat(struct service *service, struct error *err)
{
    const struct options *options = service->options;
    if (options->omnistat.input == NULL)
        return 0;
    const struct omnistat_request request = {.source = recorder_source(service->recorder),
                                             .time_column = options->omnistat.time_column,
                                             .counters = options->omnistat.counters,
                                             .has_all_counters = options->omnistat.has_all_counters,
                                             .stamp = options->omnistat.stamp,
                                             .time = options->time};
    struct omnistat *omnistat = NULL;
    int rc = omnistat_new(&request, &omnistat, err);
    return rc < 0 ? rc : follower_open(options->omnistat.input, omnistat, &service->follower, err);
}

/* The rest of the file of omnistat, which may have been written only now. */
static void service_close_omnistat(struct service *service)
{
    int64_t deadline_ns =
        clock_mono_ns() + service->options->stop_timeout_ms * SERVICE_SAMPLE_TENTHS / 10 * CLOCK_NS_PER_MS;
    CLEANUP(buf_cleanup) struct buf lines;
    buf_init(&lines, SERVICE_LINES_MAX_BYTES);
    for (bool has_more = service->follower != NULL; has_more;) {
        buf_reset(&lines);
        uint64_t events = follower_drain(service->follower, deadline_ns, &lines, &has_more);
        if (events > 0 && lines.status == 0)
            recorder_append(service->recorder, lines.data, lines.length, events);
    }
    follower_close(TAKE(service->follower));
}

static int service_open(struct service *service, struct error *err)
{
    const struct service_request *request = service->request;
    int rc = service_open_loop(service, err);
    if (rc == 0)
        rc = service_open_sampler(service, err);
    if (rc == 0)
        rc = recorder_open(service->options, request->paths, &service->notes, &service->recorder, err);
    if (rc == 0)
        rc = service_open_omnistat(service, err);
    if (rc < 0)
        return rc;
    (void)snprintf(request->instance->state.trace_path, sizeof request->instance->state.trace_path, "%s",
                   recorder_path(service->recorder));
    service->records = (struct records){.source = recorder_source(service->recorder),
                                        .has_memory_percent = service->options->has_memory_percent};
    const struct crew_request crew = {.loop = &service->loop,
                                      .sampler = service->sampler,
                                      .threads = service->options->threads,
                                      .timer_fd = service->timer_fd,
                                      .on_tick = service_on_tick,
                                      .on_sampled = service_on_sampled,
                                      .on_started = service_on_started,
                                      .on_ended = service_on_ended,
                                      .context = service};
    rc = crew_new(&crew, &service->crew, err);
    if (rc < 0)
        return rc;
    int64_t now_boot_ns = clock_boot_ns();
    ticker_init(&service->ticker, service->options->interval_ms * CLOCK_NS_PER_MS, request->paths->host,
                recorder_stamper(service->recorder), now_boot_ns);
    return crew_start(service->crew, now_boot_ns, err);
}

/* Closes the trace, and writes into the state how that went. */
static int service_close_trace(struct service *service, struct error *err)
{
    struct state *state = &service->request->instance->state;
    service_close_omnistat(service);
    CLEANUP(buf_cleanup) struct buf used;
    buf_init(&used, SERVICE_TEXT_MAX_BYTES);
    costs_json(&service->ticker, service->is_hanging ? NULL : service->sampler, &used);
    struct pfw_writer_status status = {0};
    struct error reason = {0};
    int rc = recorder_close(TAKE(service->recorder), &used,
                            service->options->stop_timeout_ms * SERVICE_CLOSE_TENTHS / 10, &status, &reason);
    state->progress.events = status.events_written;
    state->progress.dropped = status.events_dropped;
    state->progress.ticks = service->ticker.taken;
    state->phase = rc < 0 ? STATE_ABANDONED : STATE_CLOSED;
    if (rc < 0) {
        (void)snprintf(state->reason, sizeof state->reason, "%s", reason.text); /* cut when too long */
        return error_set(err, rc, "the trace could not be completed: %s", reason.text);
    }
    return 0;
}

static void service_free(struct service *service)
{
    service_close_loop(service);
    crew_free(service->crew);
    sampler_free(service->sampler);
    free(service->failing);
    buf_fini(&service->lines);
    buf_fini(&service->notes);
    (void)pthread_mutex_destroy(&service->lock); /* nobody has them any more */
    (void)pthread_mutex_destroy(&service->handing);
    free(service);
}

int service_run(const struct service_request *request, struct error *err)
{
    struct service *service = calloc(1, sizeof *service);
    if (service == NULL)
        return error_set(err, -ENOMEM, "no memory for the service");
    service->request = request;
    service->options = request->options;
    service->timer_fd = -1;
    buf_init(&service->lines, SERVICE_LINES_MAX_BYTES);
    buf_init(&service->notes, SERVICE_NOTES_MAX_BYTES);
    bool has_locks = pthread_mutex_init(&service->lock, NULL) == 0 && pthread_mutex_init(&service->handing, NULL) == 0;
    int rc = has_locks ? 0 : error_set(err, -ENOMEM, "no memory for a lock");
    if (rc == 0)
        rc = service_uv(uv_loop_init(&service->loop), "making the event loop", err);
    if (rc < 0) {
        free(service);
        return rc;
    }
    rc = service_open(service, err);
    if (rc == 0) {
        (void)uv_run(&service->loop, UV_RUN_DEFAULT); /* until uv_stop() */
        service_lock(service);
        if (service->failure.code < 0)
            rc = error_set(err, service->failure.code, "%s", service->failure.text);
        service_unlock(service);
    }
    if (service->is_ready) {
        int closed = service_close_trace(service, rc == 0 ? err : NULL);
        rc = rc < 0 ? rc : closed;
    } else {
        follower_close(service->follower);
        recorder_discard(service->recorder);
    }
    if (service->is_hanging) /* a thread of the pool still uses it */
        return rc < 0 ? rc : error_set(err, -ETIMEDOUT, "a collector did not come back");
    service_free(service);
    return rc;
}
