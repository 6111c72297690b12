/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoints_jobs: /job, /job/list, /ranks, /period, /topo; /set, /accumulate and /push of `main`.
 *
 * /job is made job by job as the client takes it: with many jobs it is long. A job that goes meanwhile is left out.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/endpoint.h"
#include "util/clock.h"
#include "util/cursor.h"

enum {
    JOBS_ANSWER_MAX_BYTES = 256 << 20,
    JOBS_PARAM_MAX_BYTES = 64 << 10,
    JOBS_WHOLE_METRICS_MAX = 10000, /* so many are answered in one piece, which can be packed */
};

/* ---- /job ---- */

/* An answer that is under way. */
struct jobs_stream {
    struct jobs *jobs;
    char **keys; /* [count]; owned */
    size_t count;
    size_t next;
    struct buf pending; /* made and not yet sent, from `sent` on */
    size_t sent;
};

static void jobs_stream_free(struct jobs_stream *stream)
{
    if (stream == NULL)
        return;
    for (size_t i = 0; stream->keys != NULL && i < stream->count; i++)
        free(stream->keys[i]);
    free(stream->keys);
    buf_fini(&stream->pending);
    free(stream);
}

static struct jobs_stream *jobs_stream_new(struct jobs *jobs)
{
    struct jobs_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->jobs = jobs;
    buf_init(&stream->pending, JOBS_ANSWER_MAX_BYTES);
    stream->keys = calloc(jobs_count(jobs), sizeof *stream->keys);
    for (size_t i = 0; stream->keys != NULL && i < jobs_count(jobs); i++) {
        stream->keys[i] = strdup(job_key(jobs_at(jobs, i)));
        if (stream->keys[i] == NULL)
            break;
        stream->count++;
    }
    if (stream->count < jobs_count(jobs)) {
        jobs_stream_free(stream);
        return NULL;
    }
    return stream;
}

/* Makes the text of the next job that is still there; the brackets with the first and after the last. */
static void jobs_stream_next(struct jobs_stream *stream)
{
    buf_reset(&stream->pending);
    stream->sent = 0;
    if (stream->next == 0)
        buf_char(&stream->pending, '[');
    while (stream->next < stream->count) {
        const struct job *job = jobs_find(stream->jobs, UINT32_MAX, stream->keys[stream->next++]);
        if (job == NULL)
            continue;
        if (stream->next > 1)
            buf_char(&stream->pending, ',');
        profiles_job_to_json(job, false, false, &stream->pending);
        break;
    }
    if (stream->next == stream->count)
        buf_char(&stream->pending, ']');
}

static enum http_request_more jobs_produce(void *context, struct buf *out)
{
    struct jobs_stream *stream = context;
    if (stream->sent == stream->pending.length)
        jobs_stream_next(stream);
    size_t left = stream->pending.length - stream->sent;
    size_t piece = left < HTTP_REQUEST_PIECE_MAX_BYTES ? left : HTTP_REQUEST_PIECE_MAX_BYTES;
    if (piece > 0)
        buf_bytes(out, stream->pending.data + stream->sent, piece);
    stream->sent += piece;
    bool is_last = stream->next == stream->count && stream->sent == stream->pending.length;
    return is_last || stream->pending.status < 0 ? HTTP_REQUEST_END : HTTP_REQUEST_MORE;
}

static void jobs_on_end(void *context)
{
    jobs_stream_free(context);
}

static void jobs_handle_all(const struct endpoint_parts *parts, struct http_request *request)
{
    struct jobs_stream *stream = jobs_stream_new(proxy_jobs(parts->proxy));
    if (stream == NULL) {
        http_request_fail(request, 503, "no memory for an answer");
        return;
    }
    if (jobs_metrics_used(stream->jobs) > JOBS_WHOLE_METRICS_MAX) {
        const struct http_request_source source = {.produce = jobs_produce, .on_end = jobs_on_end, .context = stream};
        http_request_stream(request, &(struct http_request_answer){0}, &source);
        return;
    }
    struct buf body;
    buf_init(&body, JOBS_ANSWER_MAX_BYTES);
    while (jobs_produce(stream, &body) != HTTP_REQUEST_END)
        ;
    jobs_stream_free(stream);
    http_request_answer(request, &(struct http_request_answer){.body = &body});
}

static void jobs_handle_job(const struct endpoint_parts *parts, struct http_request *request)
{
    if (http_target_param(http_request_target(request), "job") == NULL) {
        jobs_handle_all(parts, request);
        return;
    }
    const struct job *job = endpoint_job(parts, request, "job");
    if (job == NULL)
        return;
    struct buf body;
    buf_init(&body, JOBS_ANSWER_MAX_BYTES);
    profiles_job_to_json(job, true, false, &body);
    http_request_answer(request, &(struct http_request_answer){.body = &body});
}

static void jobs_handle_list(const struct endpoint_parts *parts, struct http_request *request)
{
    const struct jobs *jobs = proxy_jobs(parts->proxy);
    struct buf body;
    buf_init(&body, JOBS_ANSWER_MAX_BYTES);
    buf_char(&body, '[');
    for (size_t i = 0; i < jobs_count(jobs); i++) {
        if (i > 0)
            buf_char(&body, ',');
        metric_job_to_json(job_description(jobs_at(jobs, i)), &body);
    }
    buf_char(&body, ']');
    http_request_answer(request, &(struct http_request_answer){.body = &body});
}

/* ---- who counts ---- */

static void jobs_put_ranks(const struct job *job, struct buf *out)
{
    struct job_counts counts = job_counts(job);
    buf_text(out, "{\"jobid\":");
    buf_json_string(out, job_shown_id(job));
    buf_printf(out,
               ",\"ranks\":%" PRIu64 ",\"ranks_peak\":%" PRIu64 ",\"processes\":%" PRIu64 ",\"processes_peak\":%" PRIu64
               ",\"size\":%" PRIu64 ",\"uid\":%" PRIu32 "}",
               counts.ranks, counts.ranks_peak, counts.processes, counts.processes_peak, job_description(job)->size,
               job_uid(job));
}

static void jobs_handle_ranks(const struct endpoint_parts *parts, struct http_request *request)
{
    const struct jobs *jobs = proxy_jobs(parts->proxy);
    struct job_counts all = proxy_counts(parts->proxy);
    struct buf body;
    buf_init(&body, JOBS_ANSWER_MAX_BYTES);
    buf_text(&body, "{\"proxies\":[{\"host\":");
    buf_json_string(&body, proxy_hostname(parts->proxy));
    buf_printf(&body, ",\"ranks\":%" PRIu64 ",\"processes\":%" PRIu64 "}],\"jobs\":[", all.ranks, all.processes);
    bool is_first = true;
    for (size_t i = 0; i < jobs_count(jobs); i++) {
        if (job_kind(jobs_at(jobs, i)) != JOB_REAL)
            continue;
        if (!is_first)
            buf_char(&body, ',');
        is_first = false;
        jobs_put_ranks(jobs_at(jobs, i), &body);
    }
    buf_text(&body, "]}");
    http_request_answer(request, &(struct http_request_answer){.body = &body});
}

static void jobs_handle_period(const struct endpoint_parts *parts, struct http_request *request)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%u", proxy_period_ms(parts->proxy));
    endpoint_answer(request, 0, text, NULL);
}

/* A root alone is its own parent. */
static void jobs_handle_topo(const struct endpoint_parts *parts, struct http_request *request)
{
    struct buf body;
    buf_init(&body, JOBS_PARAM_MAX_BYTES);
    buf_text(&body, "[[");
    buf_json_string(&body, proxy_hostname(parts->proxy));
    buf_char(&body, ',');
    buf_json_string(&body, proxy_hostname(parts->proxy));
    buf_text(&body, "]]");
    http_request_answer(request, &(struct http_request_answer){.body = &body});
}

/* ---- metrics of main that are set by hand ---- */

struct jobs_setting {
    struct buf key, value, doc;
    double number;
};

static void jobs_setting_fini(struct jobs_setting *setting)
{
    buf_fini(&setting->key);
    buf_fini(&setting->value);
    buf_fini(&setting->doc);
}

static int jobs_setting_read(const struct http_request *request, bool needs_value, struct jobs_setting *setting,
                             struct error *err)
{
    buf_init(&setting->key, JOBS_PARAM_MAX_BYTES);
    buf_init(&setting->value, JOBS_PARAM_MAX_BYTES);
    buf_init(&setting->doc, JOBS_PARAM_MAX_BYTES);
    setting->number = 0;
    if (!endpoint_param(request, "key", &setting->key) || setting->key.length == 0)
        return error_set(err, -EINVAL, "key is missing: the name of a metric, in the query or in a JSON object");
    (void)endpoint_param(request, "doc", &setting->doc); /* may be missing */
    bool has_value = endpoint_param(request, "value", &setting->value);
    if (!has_value && !needs_value)
        return 0;
    struct cursor cursor = cursor_of(setting->value.data, setting->value.length);
    if (!has_value || !cursor_double(&cursor, &setting->number) || !cursor_is_empty(&cursor))
        return error_set(err, -EINVAL, "value is missing, or no finite number");
    return 0;
}

static void jobs_handle_push(const struct endpoint_parts *parts, struct http_request *request)
{
    CLEANUP(jobs_setting_fini) struct jobs_setting setting;
    struct error err = {0};
    int rc = jobs_setting_read(request, false, &setting, &err);
    if (rc == 0)
        rc = proxy_push(parts->proxy, buf_string(&setting.key), setting.number, buf_string(&setting.doc), &err);
    endpoint_answer(request, rc, "metric declared", &err);
}

static void jobs_handle_set(const struct endpoint_parts *parts, struct http_request *request)
{
    CLEANUP(jobs_setting_fini) struct jobs_setting setting;
    struct error err = {0};
    int rc = jobs_setting_read(request, true, &setting, &err);
    if (rc == 0)
        rc = proxy_set(parts->proxy, buf_string(&setting.key), setting.number, &err);
    endpoint_answer(request, rc, "metric set", &err);
}

static void jobs_handle_accumulate(const struct endpoint_parts *parts, struct http_request *request)
{
    CLEANUP(jobs_setting_fini) struct jobs_setting setting;
    struct error err = {0};
    int rc = jobs_setting_read(request, true, &setting, &err);
    if (rc == 0)
        rc = proxy_accumulate(parts->proxy, buf_string(&setting.key), setting.number, &err);
    endpoint_answer(request, rc, "added to the metric", &err);
}

const struct endpoint endpoints_jobs[] = {
    {"/job", ENDPOINT_GET, false, jobs_handle_job},
    {"/job/list", ENDPOINT_GET, false, jobs_handle_list},
    {"/ranks", ENDPOINT_GET, false, jobs_handle_ranks},
    {"/period", ENDPOINT_GET, false, jobs_handle_period},
    {"/topo", ENDPOINT_GET, false, jobs_handle_topo},
    {"/push", ENDPOINT_GET | ENDPOINT_POST, true, jobs_handle_push},
    {"/set", ENDPOINT_GET | ENDPOINT_POST, true, jobs_handle_set},
    {"/accumulate", ENDPOINT_GET | ENDPOINT_POST, true, jobs_handle_accumulate},
    {0},
};
