/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoints_profiles: /profiles…, and /model… as far as there are models.
 *
 * Files are read by a worker: the prefix may be on a file system that doesn't answer.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "net/work.h"
#include "proxy/endpoint.h"
#include "util/cleanup.h"
#include "util/cursor.h"

enum { PROFILES_ANSWER_MAX_BYTES = 64 << 20, PROFILES_NAME_MAX_BYTES = 512, HTTP_BAD_REQUEST = 400 };

/* ---- lists, from the index ---- */

static void profiles_handle_list(const struct endpoint_parts *parts, struct http_request *request)
{
    const struct profiles *profiles = proxy_profiles(parts->proxy);
    struct buf body;
    buf_init(&body, PROFILES_ANSWER_MAX_BYTES);
    buf_char(&body, '[');
    for (size_t i = 0; i < profiles_count(profiles); i++) {
        if (i > 0)
            buf_char(&body, ',');
        metric_job_to_json(&profiles_at(profiles, i)->desc, &body);
    }
    buf_char(&body, ']');
    http_request_answer(request, &(struct http_request_answer){.body = &body});
}

static int profiles_compare(const void *left, const void *right)
{
    const struct profile *a = *(const struct profile *const *)left;
    const struct profile *b = *(const struct profile *const *)right;
    int order = strcmp(a->desc.command, b->desc.command);
    if (order != 0)
        return order;
    return a->desc.start_wall_ms < b->desc.start_wall_ms ? -1 : a->desc.start_wall_ms > b->desc.start_wall_ms;
}

/* {"command":[JobDesc…]} */
static void profiles_handle_percmd(const struct endpoint_parts *parts, struct http_request *request)
{
    const struct profiles *profiles = proxy_profiles(parts->proxy);
    size_t count = profiles_count(profiles);
    CLEANUP(memory_cleanup) const struct profile **sorted = calloc(count + 1, sizeof *sorted);
    if (sorted == NULL) {
        http_request_fail(request, 503, "no memory for an answer");
        return;
    }
    for (size_t i = 0; i < count; i++)
        sorted[i] = profiles_at(profiles, i);
    qsort(sorted, count, sizeof(const struct profile *), profiles_compare);
    struct buf body;
    buf_init(&body, PROFILES_ANSWER_MAX_BYTES);
    buf_char(&body, '{');
    for (size_t i = 0; i < count; i++) {
        bool is_first = i == 0 || strcmp(sorted[i - 1]->desc.command, sorted[i]->desc.command) != 0;
        if (is_first) {
            buf_text(&body, i > 0 ? "]," : "");
            buf_json_string(&body, sorted[i]->desc.command);
            buf_text(&body, ":[");
        } else {
            buf_char(&body, ',');
        }
        metric_job_to_json(&sorted[i]->desc, &body);
    }
    buf_text(&body, count > 0 ? "]}" : "}");
    http_request_answer(request, &(struct http_request_answer){.body = &body});
}

/* ---- files, by a worker ---- */

/* A file that becomes an answer. */
struct profiles_reading {
    struct http_request *request;
    struct work *work;
    char *directory;
    char *file;
    const char *content_type;
    int (*convert)(struct buf *text, struct error *err); /* in the worker; NULL: as it is */
    struct buf text;
    int rc;
    struct error err;
};

static void profiles_reading_free(struct profiles_reading *reading)
{
    free(reading->directory);
    free(reading->file);
    buf_fini(&reading->text);
    free(reading);
}

static void profiles_reading_run(void *data)
{
    struct profiles_reading *reading = data;
    reading->rc = profiles_read_file(reading->directory, reading->file, &reading->text, &reading->err);
    if (reading->rc == 0 && reading->convert != NULL)
        reading->rc = reading->convert(&reading->text, &reading->err);
}

static void profiles_reading_done(void *data, bool is_wanted)
{
    struct profiles_reading *reading = data;
    if (is_wanted && reading->rc == 0)
        http_request_answer(reading->request, &(struct http_request_answer){.content_type = reading->content_type,
                                                                            .body = &reading->text});
    else if (is_wanted)
        http_request_fail(reading->request, HTTP_BAD_REQUEST, reading->err.text);
    profiles_reading_free(reading);
}

static void profiles_reading_on_gone(void *context)
{
    struct profiles_reading *reading = context;
    work_abandon(reading->work);
}

/* Answers with `file` of the profiles' directory. */
static void profiles_read(const struct endpoint_parts *parts, struct http_request *request, const char *file,
                          const char *content_type, int (*convert)(struct buf *text, struct error *err))
{
    struct error err = {0};
    struct profiles_reading *reading = calloc(1, sizeof *reading);
    if (reading == NULL) {
        http_request_fail(request, 503, "no memory for an answer");
        return;
    }
    *reading = (struct profiles_reading){
        .request = request,
        .directory = strdup(profiles_path(proxy_profiles(parts->proxy))),
        .file = strdup(file),
        .content_type = content_type,
        .convert = convert,
    };
    buf_init(&reading->text, PROFILES_ANSWER_MAX_BYTES);
    const struct work_task task = {.run = profiles_reading_run, .done = profiles_reading_done, .data = reading};
    int rc = reading->directory == NULL || reading->file == NULL ? -ENOMEM
                                                                 : work_start(parts->loop, &task, &reading->work, &err);
    if (rc < 0) {
        profiles_reading_free(reading);
        http_request_fail(request, 503, "no memory for an answer");
        return;
    }
    http_request_on_gone(request, profiles_reading_on_gone, reading);
}

/* The profile that the parameter `jobid` names; NULL, and 400 has been answered. */
static const struct profile *profiles_asked(const struct endpoint_parts *parts, struct http_request *request)
{
    const char *id = http_target_param(http_request_target(request), "jobid");
    const struct profile *profile = id != NULL ? profiles_find(proxy_profiles(parts->proxy), id) : NULL;
    if (profile == NULL) {
        struct error err = {0};
        (void)error_set(&err, -ENOENT, "there is no profile of job '%s'; /profiles lists them",
                        id != NULL ? id : ""); /* the words are what is wanted */
        http_request_fail(request, HTTP_BAD_REQUEST, err.text);
    }
    return profile;
}

static void profiles_handle_get(const struct endpoint_parts *parts, struct http_request *request)
{
    const struct profile *profile = profiles_asked(parts, request);
    if (profile != NULL)
        profiles_read(parts, request, profile->file, NULL, NULL);
}

/* ---- samples of one command ---- */

/* One line {"params":{"size":N},"metric":"…","value":V}; false when it is none (a cut one, or another program's). */
static bool profiles_take_sample(json_t *points, const struct cursor *line)
{
    json_t *sample = json_loadb(line->at, cursor_left(line), 0, NULL);
    const char *metric = json_string_value(json_object_get(sample, "metric"));
    const json_t *size = json_object_get(json_object_get(sample, "params"), "size");
    const json_t *value = json_object_get(sample, "value");
    bool is_sample = metric != NULL && json_is_number(size) && json_is_number(value);
    if (is_sample) {
        json_t *list = json_object_get(points, metric);
        if (list == NULL) {
            list = json_array();
            (void)json_object_set_new(points, metric, list); /* without memory: one metric fewer */
        }
        (void)json_array_append_new(list, json_pack("[f,f]", json_number_value(size), json_number_value(value)));
    }
    json_decref(sample);
    return is_sample;
}

/* JSON lines become {"METRIC":[[size,value]…]}. */
static int profiles_to_points(struct buf *text, struct error *err)
{
    json_t *points = json_object();
    struct cursor rest = cursor_of(text->data, text->length);
    for (struct cursor line; cursor_line(&rest, &line);)
        (void)profiles_take_sample(points, &line); /* one that is none is left out */
    char *dumped = points != NULL ? json_dumps(points, JSON_COMPACT) : NULL;
    json_decref(points);
    if (dumped == NULL)
        return error_set(err, -ENOMEM, "no memory for the samples");
    buf_reset(text);
    buf_text(text, dumped);
    free(dumped);
    return buf_status(text, err);
}

static void profiles_answer_samples(const struct endpoint_parts *parts, struct http_request *request,
                                    const char *content_type, int (*convert)(struct buf *text, struct error *err))
{
    const struct profile *profile = profiles_asked(parts, request);
    if (profile == NULL)
        return;
    CLEANUP(buf_cleanup) struct buf file;
    buf_init(&file, PROFILES_NAME_MAX_BYTES);
    profiles_samples_file(profile->desc.command, &file);
    profiles_read(parts, request, buf_string(&file), content_type, convert);
}

static void profiles_handle_points(const struct endpoint_parts *parts, struct http_request *request)
{
    profiles_answer_samples(parts, request, NULL, profiles_to_points);
}

static void profiles_handle_extrap(const struct endpoint_parts *parts, struct http_request *request)
{
    profiles_answer_samples(parts, request, "text/plain; charset=utf-8", NULL);
}

static void profiles_handle_model(const struct endpoint_parts *parts, struct http_request *request)
{
    (void)parts;
    http_request_fail(request, 501, "this version computes no models; /profiles/extrap has the samples for Extra-P");
}

const struct endpoint endpoints_profiles[] = {
    {"/profiles", ENDPOINT_GET, false, profiles_handle_list},
    {"/profiles/get", ENDPOINT_GET, false, profiles_handle_get},
    {"/profiles/percmd", ENDPOINT_GET, false, profiles_handle_percmd},
    {"/profiles/points", ENDPOINT_GET, false, profiles_handle_points},
    {"/profiles/extrap", ENDPOINT_GET, false, profiles_handle_extrap},
    {"/model/download", ENDPOINT_GET, false, profiles_handle_extrap},
    {"/model/get", ENDPOINT_GET, false, profiles_handle_model},
    {"/model/plot", ENDPOINT_GET, false, profiles_handle_model},
    {0},
};
