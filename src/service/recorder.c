/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cicada_version.h"
#include "service/affinity.h"
#include "service/trace.h"
#include "util/cleanup.h"
#include "util/log.h"

enum { RECORDER_TEXT_MAX_BYTES = 1 << 20, RECORDER_EVENT_MAX_BYTES = 4096 };

/* The first events are on their way into the file before `start` says that all is well. */
enum { RECORDER_FIRST_WRITE_MS = 10000 };

/* A trace that is thrown away is closed first, unless its file system takes longer. */
enum { RECORDER_DISCARD_MS = 2000 };

struct recorder {
    const struct options *options;
    struct pfw_source source;
    struct clock_stamper stamper; /* known_offset_ns is the loop's; the writer's thread reads the rest */
    struct trace trace;
    struct pfw_writer *writer;
    struct buf cfg;          /* the settings, as a JSON object */
    struct buf opening;      /* the first lines; doesn't change, so that the writer's thread may copy it */
    uint64_t opening_events; /* how many they are */
};

static const char recorder_build[] = "{\"version\":\"" CICADA_VERSION "\",\"compiler\":\"" __VERSION__ "\"}";

int64_t recorder_ts(const struct recorder *recorder, int64_t boot_ns)
{
    return options_time_of(recorder->options->time, clock_stamper_at(&recorder->stamper, boot_ns));
}

/* The settings, with the trace's real path in place of its prefix. */
static void recorder_write_cfg(struct recorder *recorder)
{
    config_json(recorder->options->config, &recorder->cfg);
    if (recorder->cfg.length > 0 && recorder->cfg.status == 0)
        buf_truncate(&recorder->cfg, recorder->cfg.length - 1); /* opens the object again */
    buf_text(&recorder->cfg, ",\"trace\":");
    buf_json_string(&recorder->cfg, recorder->trace.path);
    buf_char(&recorder->cfg, '}');
}

/* Metadata as DFTracer writes it, a name and a value: "CM" about the trace, "PR" about the process. */
static void recorder_property(struct recorder *recorder, const char *event, const char *name, const struct buf *json,
                              int64_t ts)
{
    struct buf *out = &recorder->opening;
    pfw_event_begin_metadata(out, &recorder->source, event, ts);
    pfw_event_text(out, "name", name);
    pfw_event_json(out, "value", json->data, json->length);
    pfw_event_end(out);
    recorder->opening_events++;
}

static void recorder_write_affinity(struct recorder *recorder, int64_t ts)
{
    CLEANUP(buf_cleanup) struct buf cpus;
    buf_init(&cpus, RECORDER_TEXT_MAX_BYTES);
    struct error err = {0};
    if (affinity_json(&cpus, &err) < 0)
        log_warn("the CPUs that the service may use are not written down: %s", err.text);
    else
        recorder_property(recorder, "PR", "core_affinity", &cpus, ts);
}

static void recorder_write_opening(struct recorder *recorder, const struct paths *paths, int64_t now_boot_ns)
{
    const struct options *options = recorder->options;
    struct buf *out = &recorder->opening;
    int64_t ts = recorder_ts(recorder, now_boot_ns);
    pfw_event_begin_complete(out, &recorder->source, 0, "start", ts);
    pfw_event_i64(out, "trace_interval_ms", options->interval_ms);
    pfw_event_text(out, "time_metric", options_time_name(options->time));
    if (options->has_metadata) {
        pfw_event_text(out, "version", CICADA_VERSION);
        pfw_event_i64(out, "ppid", getppid());
        pfw_event_json(out, "cfg", recorder->cfg.data, recorder->cfg.length);
    }
    pfw_event_end(out);
    pfw_event_host(out, &recorder->source, paths->host);
    recorder->opening_events = 2;
    if (!options->has_metadata)
        return;
    CLEANUP(buf_cleanup) struct buf unit;
    buf_init(&unit, RECORDER_EVENT_MAX_BYTES);
    buf_json_string(&unit, options_time_name(options->time));
    recorder_property(recorder, "CM", "time_metric", &unit, ts);
    if (options->has_core_affinity)
        recorder_write_affinity(recorder, ts);
}

static void recorder_on_dropped(void *context, uint64_t dropped, struct buf *out)
{
    const struct recorder *recorder = context;
    pfw_event_begin_metadata(out, &recorder->source, "dropped_events", recorder_ts(recorder, clock_boot_ns()));
    pfw_event_u64(out, "count", dropped);
    pfw_event_end(out);
}

static void recorder_on_change(void *context, const char *reason)
{
    const struct recorder *recorder = context;
    if (reason != NULL)
        log_error("%s; sampling goes on, up to %zu bytes of events are kept until it can be written again", reason,
                  recorder->options->write_buffer_bytes);
    else
        log_error("trace '%s': can be written again", recorder->trace.path);
}

static void recorder_on_new_file(void *context, struct buf *out, uint64_t *out_events)
{
    const struct recorder *recorder = context;
    log_error("trace '%s' was removed, and is begun anew", recorder->trace.path);
    buf_bytes(out, recorder->opening.data, recorder->opening.length);
    *out_events = recorder->opening_events;
}

static void recorder_free(struct recorder *recorder)
{
    if (recorder == NULL)
        return;
    trace_close(&recorder->trace);
    buf_fini(&recorder->cfg);
    buf_fini(&recorder->opening);
    free(recorder);
}

static int recorder_begin(struct recorder *recorder, const struct paths *paths, int64_t now_boot_ns, struct error *err)
{
    const struct options *options = recorder->options;
    recorder_write_cfg(recorder);
    recorder_write_opening(recorder, paths, now_boot_ns);
    int rc = buf_status(&recorder->opening, err);
    if (rc < 0)
        return rc;
    const struct pfw_writer_options writer = {.is_compressed = options->is_compressed,
                                              .is_synced = options->is_synced,
                                              .buffer_max_bytes = options->write_buffer_bytes,
                                              .flush_interval_ms = options->flush_interval_ms,
                                              .on_dropped = recorder_on_dropped,
                                              .on_change = recorder_on_change,
                                              .on_new_file = recorder_on_new_file,
                                              .context = recorder};
    rc = pfw_writer_open(TAKE_FD(recorder->trace.fd), recorder->trace.path, &writer, &recorder->writer, err);
    if (rc < 0)
        return rc;
    pfw_writer_append(recorder->writer, recorder->opening.data, recorder->opening.length, recorder->opening_events);
    return pfw_writer_drain(recorder->writer, RECORDER_FIRST_WRITE_MS, err);
}

int recorder_open(const struct options *options, const struct paths *paths, struct buf *notes,
                  struct recorder **out_recorder, struct error *err)
{
    struct recorder *recorder = calloc(1, sizeof *recorder);
    if (recorder == NULL)
        return error_set(err, -ENOMEM, "no memory for the trace");
    recorder->options = options;
    recorder->trace = TRACE_NONE;
    recorder->source = (struct pfw_source){.pid = getpid(), .tid = gettid()};
    pfw_host_hash(paths->host, recorder->source.host_hash);
    buf_init(&recorder->cfg, RECORDER_TEXT_MAX_BYTES);
    buf_init(&recorder->opening, RECORDER_TEXT_MAX_BYTES);
    int64_t now_boot_ns = clock_boot_ns();
    clock_stamper_init(&recorder->stamper, clock_wall_ns(), now_boot_ns);

    const struct trace_request request = {.prefix = options->log_file,
                                          .host = paths->host_file,
                                          .is_compressed = options->is_compressed,
                                          .keep = options->keep};
    int rc = trace_open(&request, notes, &recorder->trace, err);
    if (rc == 0)
        rc = recorder_begin(recorder, paths, now_boot_ns, err);
    if (rc < 0) {
        recorder_discard(recorder);
        return rc;
    }
    *out_recorder = recorder;
    return 0;
}

const char *recorder_path(const struct recorder *recorder)
{
    return recorder->trace.path;
}

const struct pfw_source *recorder_source(const struct recorder *recorder)
{
    return &recorder->source;
}

const struct clock_stamper *recorder_stamper(const struct recorder *recorder)
{
    return &recorder->stamper;
}

void recorder_append(struct recorder *recorder, const char *lines, size_t length, uint64_t events)
{
    pfw_writer_append(recorder->writer, lines, length, events);
}

int64_t recorder_watch_clock(struct recorder *recorder, int64_t now_wall_ns, int64_t now_boot_ns)
{
    int64_t offset_ns;
    if (!clock_stamper_step(&recorder->stamper, now_wall_ns, now_boot_ns, &offset_ns))
        return 0;
    CLEANUP(buf_cleanup) struct buf line;
    buf_init(&line, RECORDER_EVENT_MAX_BYTES);
    pfw_event_begin_metadata(&line, &recorder->source, "clock_step", recorder_ts(recorder, now_boot_ns));
    pfw_event_i64(&line, "offset_us", offset_ns / CLOCK_NS_PER_US);
    pfw_event_end(&line);
    if (line.status == 0)
        pfw_writer_append(recorder->writer, line.data, line.length, 1);
    return offset_ns;
}

void recorder_flush(struct recorder *recorder)
{
    pfw_writer_flush(recorder->writer);
}

struct pfw_writer_status recorder_status(struct recorder *recorder)
{
    return pfw_writer_status(recorder->writer);
}

/* Its id and count are how many events the file holds, this one too, so all others must be in the file first. */
static void recorder_append_end(struct recorder *recorder, const struct buf *used)
{
    struct pfw_writer_status status = pfw_writer_status(recorder->writer);
    uint64_t events = status.events_written + 1;
    CLEANUP(buf_cleanup) struct buf line;
    buf_init(&line, RECORDER_TEXT_MAX_BYTES);
    pfw_event_begin_complete(&line, &recorder->source, events, "end", recorder_ts(recorder, clock_boot_ns()));
    pfw_event_u64(&line, "num_events", events);
    pfw_event_u64(&line, "dropped", status.events_dropped);
    if (recorder->options->has_metadata) {
        pfw_event_json(&line, "cfg", recorder->cfg.data, recorder->cfg.length);
        pfw_event_json(&line, "build", recorder_build, sizeof recorder_build - 1);
        pfw_event_json(&line, "used", used->data, used->length);
    }
    pfw_event_end(&line);
    if (line.status == 0)
        pfw_writer_append(recorder->writer, line.data, line.length, 1);
}

int recorder_close(struct recorder *recorder, const struct buf *used, int64_t timeout_ms,
                   struct pfw_writer_status *out_status, struct error *err)
{
    int64_t deadline_ns = clock_mono_ns() + timeout_ms * CLOCK_NS_PER_MS;
    if (pfw_writer_drain(recorder->writer, timeout_ms, NULL) == 0) /* a failure comes again when it is closed */
        recorder_append_end(recorder, used);
    int64_t left_ms = (deadline_ns - clock_mono_ns()) / CLOCK_NS_PER_MS;
    int rc = pfw_writer_close(TAKE(recorder->writer), left_ms > 0 ? left_ms : 0, out_status, err);
    if (rc == -ETIMEDOUT)
        claim_drop(&recorder->trace.claim); /* the hanging thread may come back to the rest */
    else
        recorder_free(recorder);
    return rc;
}

void recorder_discard(struct recorder *recorder)
{
    if (recorder == NULL)
        return;
    int closed = pfw_writer_close(TAKE(recorder->writer), RECORDER_DISCARD_MS, NULL, NULL);
    if (recorder->trace.path != NULL)
        (void)unlink(recorder->trace.path); /* without a sample in it; one that can't be removed stays */
    if (closed == -ETIMEDOUT)
        claim_drop(&recorder->trace.claim);
    else
        recorder_free(recorder);
}
