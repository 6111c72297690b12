/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoints_metrics: /metrics.
 *
 * A large registry is told in pieces, as the client takes them, so that the loop is never held for long; between two
 * pieces a tick may pass, and the job may go: then the answer ends early, which Prometheus sees as a failed scrape.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/endpoint.h"
#include "proxy/exposition.h"
#include "proxy/own.h"
#include "util/cleanup.h"

enum {
    METRICS_WHOLE_MAX = 20000, /* so many are answered in one piece, which can be packed */
    METRICS_WHOLE_MAX_BYTES = 64 << 20,
    METRICS_PIECE_BYTES = 256 << 10,
};

/* An answer that is under way. */
struct metrics_stream {
    struct endpoint_parts parts;
    char *key; /* of the job; owned */
    struct exposition exposition;
};

static bool metrics_is_main(const struct endpoint_parts *parts, const struct job *job)
{
    return job == jobs_at(proxy_jobs(parts->proxy), 0);
}

static void metrics_end(const struct endpoint_parts *parts, const struct job *job, enum exposition_form form,
                        struct buf *out)
{
    if (metrics_is_main(parts, job))
        own_append(parts->own, form, out);
    exposition_end(form, out);
}

static enum http_request_more metrics_produce(void *context, struct buf *out)
{
    struct metrics_stream *stream = context;
    struct job *job = jobs_find(proxy_jobs(stream->parts.proxy), UINT32_MAX, stream->key);
    if (job == NULL)
        return HTTP_REQUEST_END;
    if (exposition_append(&stream->exposition, job_registry(job), METRICS_PIECE_BYTES, out))
        return HTTP_REQUEST_MORE;
    metrics_end(&stream->parts, job, stream->exposition.form, out);
    return HTTP_REQUEST_END;
}

static void metrics_on_end(void *context)
{
    struct metrics_stream *stream = context;
    free(stream->key);
    free(stream);
}

static void metrics_stream(const struct endpoint_parts *parts, struct http_request *request, const struct job *job,
                           enum exposition_form form)
{
    struct metrics_stream *stream = calloc(1, sizeof *stream);
    char *key = strdup(job_key(job));
    if (stream == NULL || key == NULL) {
        free(stream);
        free(key);
        http_request_fail(request, 503, "no memory for an answer");
        return;
    }
    *stream = (struct metrics_stream){.parts = *parts, .key = key, .exposition = {.form = form}};
    const struct http_request_source source = {.produce = metrics_produce, .on_end = metrics_on_end, .context = stream};
    http_request_stream(request, &(struct http_request_answer){.content_type = exposition_content_type(form)}, &source);
}

static void metrics_handle(const struct endpoint_parts *parts, struct http_request *request)
{
    struct job *job = endpoint_job(parts, request, "job");
    if (job == NULL)
        return;
    enum exposition_form form = exposition_choose(http_request_header(request, "Accept"));
    struct registry *reg = job_registry(job);
    if (registry_count(reg) > METRICS_WHOLE_MAX) {
        metrics_stream(parts, request, job, form);
        return;
    }
    struct buf body;
    buf_init(&body, METRICS_WHOLE_MAX_BYTES);
    struct exposition exposition = {.form = form};
    while (exposition_append(&exposition, reg, METRICS_WHOLE_MAX_BYTES, &body))
        ;
    metrics_end(parts, job, form, &body);
    http_request_answer(request,
                        &(struct http_request_answer){.content_type = exposition_content_type(form), .body = &body});
}

const struct endpoint endpoints_metrics[] = {
    {"/metrics", ENDPOINT_GET, false, metrics_handle},
    {0},
};
