/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A round:  timer → resolve → admit → (probe) → data → worker → slices → timer
 *
 * Each arrow but the last may fail; then the round ends, and the timer waits longer. What is under way is `call`,
 * `query` or `work`; the timer is idle meanwhile. A target that is being freed abandons all three, and the memory goes
 * when the timer's handle has closed.
 */
#include "proxy/scrape_target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/work.h"
#include "proxy/contributor.h"
#include "proxy/scrape_read.h"
#include "proxy/scrape_tally.h"
#include "util/clock.h"
#include "util/log.h"

enum {
    SCRAPE_STATUS_OK = 200,
    SCRAPE_STATUS_NOT_FOUND = 404,
    SCRAPE_BODY_MAX_BYTES = 32 << 20,
    SCRAPE_PROBE_MAX_BYTES = 64 << 10,
    SCRAPE_GAUGES_FAILURES = 3, /* tries in vain after which gauges are taken back */
    SCRAPE_BACKOFF_DOUBLINGS = 6,
    SCRAPE_TEXT_MAX_BYTES = 4096,
};

#define SCRAPE_JOBS_LOST_NS (60 * CLOCK_NS_PER_SECOND) /* without an answer: its jobs are taken for ended */

enum scrape_slot {
    SCRAPE_SLOT_UP,
    SCRAPE_SLOT_DURATION,
    SCRAPE_SLOT_SAMPLES,
    SCRAPE_SLOT_ERRORS,
    SCRAPE_SLOT_BAD,
    SCRAPE_SLOTS
};

static const struct {
    const char *name, *doc;
    enum metric_kind kind;
} scrape_rows[SCRAPE_SLOTS] = {
    [SCRAPE_SLOT_UP] = {"cicada_scrape_up", "1 when the target answered the last time", METRIC_GAUGE},
    [SCRAPE_SLOT_DURATION] = {"cicada_scrape_duration_seconds", "how long the last answer took", METRIC_GAUGE},
    [SCRAPE_SLOT_SAMPLES] = {"cicada_scrape_samples", "samples of the last answer", METRIC_GAUGE},
    [SCRAPE_SLOT_ERRORS] = {"cicada_scrape_errors_total", "times that it could not be read", METRIC_COUNTER},
    [SCRAPE_SLOT_BAD] = {"cicada_scrape_bad_lines_total", "lines or metrics that made no sense", METRIC_COUNTER},
};

struct scrape_target {
    struct scrape_target_config config;
    struct scrape_url url;
    unsigned period_ms;
    bool is_named, is_paused, is_stopped;
    bool is_guess; /* that it is a proxy: its page says so, its /job has not been read yet */
    enum scrape_target_kind kind;
    struct resolve_addresses addresses;
    uv_timer_t timer;
    struct resolve_query *query;
    struct http_client_call *call;
    struct work *work;
    struct scrape_tally *tally;
    bool is_counting;          /* an answer, slice by slice */
    struct contributor *shown; /* its own metrics */
    uint32_t slots[SCRAPE_SLOTS];
    double errors, bad;
    unsigned failures; /* in a row */
    int64_t begun_mono_ns, next_mono_ns, answered_mono_ns;
    int64_t last_wall_ms;
    uint64_t random;
    struct error err; /* of the last try */
};

/* What a worker reads. */
struct scrape_reading {
    struct scrape_target *target;
    bool is_proxy, is_openmetrics;
    int64_t now_wall_us;
    struct buf text;
    struct scrape_answer *answer;
    int rc;
    struct error err;
};

/* What is seen of it */

const struct scrape_url *scrape_target_url(const struct scrape_target *target)
{
    return &target->url;
}

enum scrape_target_kind scrape_target_kind(const struct scrape_target *target)
{
    return target->kind;
}

bool scrape_target_is_named(const struct scrape_target *target)
{
    return target->is_named;
}

bool scrape_target_is_paused(const struct scrape_target *target)
{
    return target->is_paused;
}

unsigned scrape_target_period_ms(const struct scrape_target *target)
{
    return target->period_ms;
}

int64_t scrape_target_last_wall_ms(const struct scrape_target *target)
{
    return target->last_wall_ms;
}

const char *scrape_target_error(const struct scrape_target *target)
{
    return target->err.text;
}

const struct resolve_addresses *scrape_target_addresses(const struct scrape_target *target)
{
    return &target->addresses;
}

static void scrape_target_show(struct scrape_target *target, enum scrape_slot slot, double number)
{
    if (target->shown == NULL)
        return;
    int64_t now_wall_us = clock_wall_ns() / CLOCK_NS_PER_US;
    struct metric_value value = scrape_rows[slot].kind == METRIC_COUNTER ? metric_counter(number, now_wall_us)
                                                                         : metric_gauge(number, now_wall_us);
    contributor_set(target->shown, target->slots[slot], &value);
}

/* Its metrics begin. Without memory it does without them. */
static void scrape_target_declare(struct scrape_target *target)
{
    const struct contributor_config config = {
        .uid = jobs_config(target->config.jobs)->uid, .is_adoptable = true, .is_job_alone = true, .is_nobody = true};
    target->shown = contributor_new(target->config.jobs, &config);
    if (target->shown == NULL)
        return;
    contributor_join_job(target->shown, jobs_at(target->config.jobs, 0));
    CLEANUP(buf_cleanup) struct buf name;
    buf_init(&name, SCRAPE_TEXT_MAX_BYTES);
    for (size_t i = 0; i < SCRAPE_SLOTS; i++) {
        buf_reset(&name);
        /* A path has neither quotes nor backslashes that would need an escape, but for what the name's parser makes. */
        buf_printf(&name, "%s{target=\"%s%s\"}", scrape_rows[i].name, target->url.origin, target->url.path);
        target->slots[i] = CONTRIBUTOR_NONE;
        if (buf_status(&name, NULL) < 0 ||
            contributor_declare(target->shown, name.data, name.length, scrape_rows[i].doc, scrape_rows[i].kind,
                                &target->slots[i], NULL) < 0)
            target->slots[i] = CONTRIBUTOR_NONE; /* refused, and counted there */
    }
    scrape_target_show(target, SCRAPE_SLOT_UP, 0);
    scrape_target_show(target, SCRAPE_SLOT_ERRORS, target->errors);
    scrape_target_show(target, SCRAPE_SLOT_BAD, target->bad);
}

/* When it is asked */

static void scrape_target_on_timer(uv_timer_t *timer);

static void scrape_target_wait(struct scrape_target *target, int64_t wait_ns)
{
    if (target->is_paused || target->is_stopped)
        return;
    /* Rounded up: a timer that comes too soon would come twice. */
    uint64_t wait_ms = wait_ns > 0 ? (uint64_t)((wait_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS) : 0;
    (void)uv_timer_start(&target->timer, scrape_target_on_timer, wait_ms, 0); /* can't fail */
}

/* 0.75 to 1.25 of `wait_ns`, so that many that fail together don't come together. An xorshift will do. */
static int64_t scrape_target_jitter(struct scrape_target *target, int64_t wait_ns)
{
    target->random ^= target->random << 13;
    target->random ^= target->random >> 7;
    target->random ^= target->random << 17;
    return wait_ns * 3 / 4 + (int64_t)(target->random % (uint64_t)(wait_ns / 2 + 1));
}

static void scrape_target_wait_for_next(struct scrape_target *target)
{
    int64_t now_mono_ns = clock_mono_ns();
    int64_t period_ns = target->period_ms * CLOCK_NS_PER_MS;
    if (target->failures > 0) {
        unsigned doublings = target->failures < SCRAPE_BACKOFF_DOUBLINGS ? target->failures : SCRAPE_BACKOFF_DOUBLINGS;
        int64_t max_ns = SCRAPE_TARGET_WAIT_MAX_MS * CLOCK_NS_PER_MS;
        int64_t wait_ns = period_ns << doublings; /* 3600 s and 6 doublings are far from 2^63 ns */
        if (wait_ns > max_ns)
            wait_ns = max_ns > period_ns ? max_ns : period_ns;
        scrape_target_wait(target, scrape_target_jitter(target, wait_ns));
        return;
    }
    target->next_mono_ns += period_ns;
    if (target->next_mono_ns < now_mono_ns)
        target->next_mono_ns = now_mono_ns; /* what was missed is left out */
    scrape_target_wait(target, target->next_mono_ns - now_mono_ns);
}

/* The end of a round */

/* The longer it doesn't answer, the less of it is held to be so still. */
static void scrape_target_lose(struct scrape_target *target)
{
    if (target->failures == SCRAPE_GAUGES_FAILURES)
        scrape_tally_lose(target->tally);
    if (clock_mono_ns() - target->answered_mono_ns > SCRAPE_JOBS_LOST_NS)
        scrape_tally_leave(target->tally, false);
}

static void scrape_target_fail(struct scrape_target *target, const struct error *why)
{
    target->errors++;
    target->failures++;
    target->kind = SCRAPE_TARGET_UNKNOWN; /* something else may be there by now */
    target->is_guess = false;
    scrape_target_show(target, SCRAPE_SLOT_UP, 0);
    scrape_target_show(target, SCRAPE_SLOT_ERRORS, target->errors);
    scrape_target_lose(target);
    if (strcmp(target->err.text, why->text) != 0) /* once for each reason */
        log_error("scrape target='%s%s' %s: tried again", target->url.origin, target->url.path, why->text);
    target->err = *why;
    scrape_target_wait_for_next(target);
}

static void scrape_target_finish(struct scrape_target *target)
{
    int64_t now_mono_ns = clock_mono_ns();
    const struct scrape_answer *answer = scrape_tally_answer(target->tally);
    target->is_counting = false;
    if (target->failures > 0)
        log_info("scrape target='%s%s' answers again", target->url.origin, target->url.path);
    if (answer->bad > 0 && target->bad == 0)
        log_warn("scrape target='%s%s' %zu lines make no sense, the first: %s", target->url.origin, target->url.path,
                 answer->bad, answer->first_err.text);
    if (answer->refused > 0)
        log_debug("scrape target='%s%s' %zu values past the limits", target->url.origin, target->url.path,
                  answer->refused);
    target->failures = 0;
    target->err = (struct error){0};
    target->bad += (double)answer->bad;
    target->answered_mono_ns = now_mono_ns;
    target->last_wall_ms = clock_wall_ns() / CLOCK_NS_PER_MS;
    scrape_target_show(target, SCRAPE_SLOT_UP, 1);
    scrape_target_show(target, SCRAPE_SLOT_SAMPLES, (double)answer->values_count);
    scrape_target_show(target, SCRAPE_SLOT_BAD, target->bad);
    scrape_tally_abandon(target->tally);
    scrape_target_wait_for_next(target);
}

static void scrape_target_count(struct scrape_target *target)
{
    if (scrape_tally_go_on(target->tally))
        scrape_target_finish(target);
    else
        scrape_target_wait(target, 0);
}

/* Reading, on a worker */

static void scrape_reading_free(struct scrape_reading *reading)
{
    buf_fini(&reading->text);
    scrape_read_free(reading->answer);
    free(reading);
}

static void scrape_target_read(void *data)
{
    struct scrape_reading *reading = data;
    const char *text = reading->text.length > 0 ? reading->text.data : "";
    reading->rc = reading->is_proxy ? scrape_read_proxy(text, reading->text.length, reading->now_wall_us,
                                                        &reading->answer, &reading->err)
                                    : scrape_read_exporter(text, reading->text.length, reading->is_openmetrics,
                                                           reading->now_wall_us, &reading->answer, &reading->err);
}

static void scrape_target_ask(struct scrape_target *target, bool is_probe);

static void scrape_target_take_for_exporter(struct scrape_target *target)
{
    target->kind = SCRAPE_TARGET_EXPORTER;
    target->is_guess = false;
    scrape_target_ask(target, false);
}

static void scrape_target_on_read(void *data, bool is_wanted)
{
    struct scrape_reading *reading = data;
    if (!is_wanted) {
        scrape_reading_free(reading);
        return;
    }
    struct scrape_target *target = reading->target;
    target->work = NULL;
    int rc = reading->rc;
    struct error err = reading->err;
    struct scrape_answer *answer = TAKE(reading->answer);
    scrape_reading_free(reading);
    if (rc == -EBADMSG && target->is_guess) {
        scrape_target_take_for_exporter(target);
        return;
    }
    if (rc == 0 && target->is_guess)
        rc = target->config.admit(target->config.context, target, &target->addresses, true, &err);
    if (rc < 0) {
        scrape_read_free(answer);
        scrape_target_fail(target, &err);
        return;
    }
    target->is_guess = false;
    target->is_counting = true;
    scrape_tally_begin(target->tally, answer);
    scrape_target_count(target);
}

/* Asking */

static void scrape_target_on_data(void *context, struct http_client_result *result)
{
    struct scrape_target *target = context;
    target->call = NULL;
    struct error err = result->err;
    if (result->code == 0 && result->status == SCRAPE_STATUS_NOT_FOUND && target->is_guess) {
        scrape_target_take_for_exporter(target);
        return;
    }
    if (result->code == 0 && result->status != SCRAPE_STATUS_OK)
        (void)error_set(&err, -EIO, "it answers with status %u", result->status);
    if (err.code != 0) {
        scrape_target_fail(target, &err);
        return;
    }
    scrape_target_show(target, SCRAPE_SLOT_DURATION, (double)(clock_mono_ns() - target->begun_mono_ns) / 1e9);
    struct scrape_reading *reading = calloc(1, sizeof *reading);
    int rc = reading != NULL ? 0 : error_set(&err, -ENOMEM, "no memory to read the answer");
    if (reading != NULL) {
        *reading = (struct scrape_reading){.target = target,
                                           .is_proxy = target->kind == SCRAPE_TARGET_PROXY,
                                           .is_openmetrics =
                                               strncmp(result->content_type, "application/openmetrics-text", 28) == 0,
                                           .now_wall_us = clock_wall_ns() / CLOCK_NS_PER_US,
                                           .text = *result->body};
        buf_init(result->body, SCRAPE_BODY_MAX_BYTES);
        const struct work_task task = {.run = scrape_target_read, .done = scrape_target_on_read, .data = reading};
        rc = work_start(target->config.loop, &task, &target->work, &err);
    }
    if (rc < 0) {
        if (reading != NULL)
            scrape_reading_free(reading);
        scrape_target_fail(target, &err);
    }
}

static void scrape_target_on_probe(void *context, struct http_client_result *result)
{
    struct scrape_target *target = context;
    target->call = NULL;
    if (result->code < 0) {
        scrape_target_fail(target, &result->err);
        return;
    }
    /* Some exporters answer every path with a page of their own, which may be named for a proxy, too. */
    const struct buf *page = result->body;
    target->is_guess = result->status == SCRAPE_STATUS_OK && page->length > 0 &&
                       memmem(page->data, page->length, "proxy", strlen("proxy")) != NULL;
    target->kind = target->is_guess ? SCRAPE_TARGET_PROXY : SCRAPE_TARGET_EXPORTER;
    scrape_target_ask(target, false);
}

static unsigned scrape_target_timeout_ms(const struct scrape_target *target)
{
    if (target->period_ms < SCRAPE_TARGET_TIMEOUT_MIN_MS)
        return SCRAPE_TARGET_TIMEOUT_MIN_MS;
    return target->period_ms < SCRAPE_TARGET_TIMEOUT_MAX_MS ? target->period_ms : SCRAPE_TARGET_TIMEOUT_MAX_MS;
}

static void scrape_target_ask(struct scrape_target *target, bool is_probe)
{
    static const char *const exporter_headers[] = {
        "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", NULL};
    static const char *const proxy_headers[] = {"Accept: application/json,*/*;q=0.1", NULL};
    bool is_proxy = target->kind == SCRAPE_TARGET_PROXY;
    const char *path = is_probe ? "/is_admire_proxy.html" : is_proxy ? "/job" : target->url.path;
    CLEANUP(buf_cleanup) struct buf url;
    buf_init(&url, SCRAPE_TEXT_MAX_BYTES);
    buf_printf(&url, "%s%s", target->url.origin, path[0] != '\0' ? path : "/metrics");
    const char *url_text = buf_string(&url);
    struct error err = {0};
    int rc = buf_status(&url, &err);
    const struct http_client_request request = {.url = url_text,
                                                .key = target->url.key,
                                                .headers = is_proxy || is_probe ? proxy_headers : exporter_headers,
                                                .timeout_ms = scrape_target_timeout_ms(target),
                                                .body_max_bytes =
                                                    is_probe ? SCRAPE_PROBE_MAX_BYTES : SCRAPE_BODY_MAX_BYTES,
                                                .on_done = is_probe ? scrape_target_on_probe : scrape_target_on_data,
                                                .context = target};
    if (rc == 0)
        rc = http_client_start(target->config.client, &request, &target->call, &err);
    if (rc < 0)
        scrape_target_fail(target, &err);
}

static void scrape_target_on_resolved(void *context, const struct resolve_addresses *addresses, const struct error *err)
{
    struct scrape_target *target = context;
    target->query = NULL;
    struct error why = {0};
    if (addresses == NULL) {
        scrape_target_fail(target, err);
        return;
    }
    target->addresses = *addresses;
    if (target->config.admit(target->config.context, target, addresses, false, &why) < 0) {
        scrape_target_fail(target, &why);
        return;
    }
    if (target->url.is_metrics)
        target->kind = SCRAPE_TARGET_EXPORTER;
    scrape_target_ask(target, target->kind == SCRAPE_TARGET_UNKNOWN);
}

static void scrape_target_on_timer(uv_timer_t *timer)
{
    struct scrape_target *target = timer->data;
    if (target->is_counting) {
        scrape_target_count(target);
        return;
    }
    target->begun_mono_ns = clock_mono_ns();
    if (target->failures > 0 || target->next_mono_ns == 0)
        target->next_mono_ns = target->begun_mono_ns;
    struct error err = {0};
    struct resolve_addresses known;
    if (resolve_known(target->config.resolve, target->url.host, &known) == 1)
        scrape_target_on_resolved(target, &known, NULL);
    else if (resolve_start(target->config.resolve, target->url.host, scrape_target_timeout_ms(target),
                           scrape_target_on_resolved, target, &target->query, &err) < 0)
        scrape_target_fail(target, &err);
}

/* Life */

int scrape_target_new(const struct scrape_target_config *config, const struct scrape_url *url, unsigned period_ms,
                      bool is_named, struct scrape_target **out_target, struct error *err)
{
    struct scrape_target *target = calloc(1, sizeof *target);
    struct scrape_tally *tally = scrape_tally_new(config->jobs);
    if (target == NULL || tally == NULL) {
        free(target);
        scrape_tally_free(tally);
        return error_set(err, -ENOMEM, "no memory for target '%s'", url->origin);
    }
    *target = (struct scrape_target){.config = *config,
                                     .url = *url,
                                     .period_ms = period_ms,
                                     .is_named = is_named,
                                     .tally = tally,
                                     .random = ((uint64_t)clock_mono_ns() << 1) | 1};
    (void)uv_timer_init(config->loop, &target->timer); /* can't fail */
    target->timer.data = target;
    scrape_target_declare(target);
    scrape_target_wait(target, 0);
    *out_target = target;
    return 0;
}

/* Nothing is under way any more. */
static void scrape_target_abandon(struct scrape_target *target)
{
    (void)uv_timer_stop(&target->timer); /* can't fail */
    resolve_cancel(TAKE(target->query));
    http_client_cancel(TAKE(target->call));
    work_abandon(TAKE(target->work));
    target->is_counting = false;
    scrape_tally_abandon(target->tally);
}

void scrape_target_pause(struct scrape_target *target)
{
    if (target->is_paused)
        return;
    target->is_paused = true;
    scrape_target_abandon(target);
    int64_t now_mono_ns = clock_mono_ns();
    int64_t now_wall_ms = clock_wall_ns() / CLOCK_NS_PER_MS;
    scrape_tally_leave(target->tally, true);
    contributor_end(TAKE(target->shown), now_mono_ns, now_wall_ms);
    target->errors = target->bad = 0; /* what they were stays shown */
}

void scrape_target_resume(struct scrape_target *target, unsigned period_ms)
{
    target->period_ms = period_ms;
    if (!target->is_paused)
        return;
    target->is_paused = false;
    target->kind = SCRAPE_TARGET_UNKNOWN;
    target->failures = 0;
    target->next_mono_ns = 0;
    target->err = (struct error){0};
    scrape_target_declare(target);
    scrape_target_wait(target, 0);
}

void scrape_target_stop(struct scrape_target *target)
{
    target->is_stopped = true;
    scrape_target_abandon(target);
}

static void scrape_target_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void scrape_target_free(struct scrape_target *target)
{
    if (target == NULL)
        return;
    scrape_target_stop(target);
    scrape_tally_free(TAKE(target->tally));
    contributor_discard(target->shown);
    uv_close((uv_handle_t *)&target->timer, scrape_target_on_closed);
}
