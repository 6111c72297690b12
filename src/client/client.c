/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client: the functions that programs call. Everything here is short: it finds the cell and adds.
 */
#include "metric_proxy_client.h"

#include <errno.h>
#include <float.h>
#include <string.h>
#include <time.h>

#include "client/cell.h"
#include "client/job.h"
#include "client/process.h"
#include "client/text.h"

#define CLIENT_API __attribute__((visibility("default")))

enum { CLIENT_BOUNDS_MAX = 64, CLIENT_OK = 0, CLIENT_FAILED = -1 };

static const double client_nanosecond = 1e-9;

/* A handle must be something; there is one client a process. */
struct MetricProxyClient {
    MetricProxyValue *has_started;
    MetricProxyValue *has_finished;
};

static struct MetricProxyClient client_instance;

static inline double client_load_real(const uint64_t *cell)
{
    uint64_t bits = __atomic_load_n(cell, __ATOMIC_RELAXED);
    double real;
    memcpy(&real, &bits, sizeof real);
    return real;
}

static inline void client_store_real(uint64_t *cell, double real)
{
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    __atomic_store_n(cell, bits, __ATOMIC_RELAXED);
}

CLIENT_API int metric_proxy_counter_inc(MetricProxyValue *counter, double value)
{
    /* Two comparisons keep out NaN, infinity and what would make a counter fall. */
    if (counter == NULL || counter->kind != SEGMENT_COUNTER || !(value >= 0 && value <= DBL_MAX))
        return CLIENT_FAILED;
    uint64_t *cells = process_cells(counter);
    if (cells == NULL)
        return CLIENT_FAILED;
    client_store_real(cells, client_load_real(cells) + value);
    return CLIENT_OK;
}

CLIENT_API int metric_proxy_counter_add_u64(MetricProxyValue *counter, uint64_t count)
{
    if (counter == NULL)
        return CLIENT_FAILED;
    uint64_t *cells = process_cells(counter);
    if (cells == NULL)
        return CLIENT_FAILED;
    switch (counter->kind) {
    case SEGMENT_COUNTER:
        cell_add_whole(cells + 1, count);
        return CLIENT_OK;
    case SEGMENT_COUNTER_U64:
        cell_add_whole(cells, count);
        return CLIENT_OK;
    default:
        return CLIENT_FAILED;
    }
}

CLIENT_API int metric_proxy_gauge_set(MetricProxyValue *gauge, double value)
{
    if (gauge == NULL || gauge->kind != SEGMENT_GAUGE || !(value >= -DBL_MAX && value <= DBL_MAX))
        return CLIENT_FAILED;
    uint64_t *cells = process_find_gauge(gauge);
    if (cells == NULL)
        return CLIENT_FAILED;
    client_store_real(cells, value);
    __atomic_store_n(cells + 1, 1,
                     __ATOMIC_RELEASE); /* set once at least: a reader sees the value that belongs to it */
    return CLIENT_OK;
}

CLIENT_API int metric_proxy_histogram_observe(MetricProxyValue *histogram, double value)
{
    if (histogram == NULL || histogram->kind != SEGMENT_HISTOGRAM || !(value >= -DBL_MAX && value <= DBL_MAX))
        return CLIENT_FAILED;
    uint64_t *cells = process_cells(histogram);
    if (cells == NULL)
        return CLIENT_FAILED;
    size_t low = 0;
    size_t high = histogram->bounds_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (value <= histogram->bounds[middle])
            high = middle;
        else
            low = middle + 1;
    }
    cell_add_whole(cells + low, 1);
    uint64_t *sum = cells + histogram->bounds_count + 1;
    client_store_real(sum, client_load_real(sum) + value);
    return CLIENT_OK;
}

CLIENT_API int64_t metric_proxy_timer_start(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* vDSO: no system call; can't fail for this clock */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

CLIENT_API int metric_proxy_timer_stop(MetricProxyValue *timer, int64_t start)
{
    int64_t elapsed_ns = metric_proxy_timer_start() - start;
    if (timer == NULL || timer->kind != SEGMENT_COUNTER_U64 || elapsed_ns < 0)
        return CLIENT_FAILED;
    return metric_proxy_counter_add_u64(timer, (uint64_t)elapsed_ns);
}

static MetricProxyValue *client_declare(struct segment_metric_spec spec, const char *doc)
{
    int kept_errno = errno;
    size_t doc_bytes = doc != NULL ? strnlen(doc, SEGMENT_DOC_MAX_BYTES) : 0;
    MetricProxyValue *value = NULL;
    spec.doc = doc;
    spec.doc_bytes = doc_bytes;
    if (spec.name_bytes > 0 && spec.name_bytes <= SEGMENT_NAME_MAX_BYTES && process_start())
        value = process_declare(&spec);
    errno = kept_errno;
    return value;
}

static MetricProxyValue *client_declare_name(MetricProxyClient *client, const char *name, const char *doc,
                                             struct segment_metric_spec spec)
{
    if (client == NULL || name == NULL)
        return NULL;
    spec.name = name;
    spec.name_bytes = strnlen(name, SEGMENT_NAME_MAX_BYTES + 1); /* one more: too long is refused, not cut */
    return client_declare(spec, doc);
}

CLIENT_API MetricProxyValue *metric_proxy_counter_new(MetricProxyClient *client, const char *name, const char *doc)
{
    return client_declare_name(client, name, doc,
                               (struct segment_metric_spec){.kind = SEGMENT_COUNTER, .cells_count = 2, .scale = 1});
}

CLIENT_API MetricProxyValue *metric_proxy_gauge_new(MetricProxyClient *client, const char *name, const char *doc)
{
    return client_declare_name(client, name, doc,
                               (struct segment_metric_spec){.kind = SEGMENT_GAUGE, .cells_count = 2, .scale = 1});
}

CLIENT_API MetricProxyValue *metric_proxy_timer_new(MetricProxyClient *client, const char *name, const char *doc)
{
    return client_declare_name(
        client, name, doc,
        (struct segment_metric_spec){.kind = SEGMENT_COUNTER_U64, .cells_count = 1, .scale = client_nanosecond});
}

static bool client_are_bounds(const double *bounds, size_t bounds_count)
{
    if (bounds == NULL || bounds_count == 0 || bounds_count > CLIENT_BOUNDS_MAX)
        return false;
    for (size_t i = 0; i < bounds_count; i++) {
        bool is_finite = bounds[i] >= -DBL_MAX && bounds[i] <= DBL_MAX;
        if (!is_finite || (i > 0 && bounds[i] <= bounds[i - 1]))
            return false;
    }
    return true;
}

CLIENT_API MetricProxyValue *metric_proxy_histogram_new(MetricProxyClient *client, const char *name, const char *doc,
                                                        const double *bounds, size_t bounds_count)
{
    if (!client_are_bounds(bounds, bounds_count))
        return NULL;
    return client_declare_name(client, name, doc,
                               (struct segment_metric_spec){.kind = SEGMENT_HISTOGRAM,
                                                            .cells_count = (uint32_t)bounds_count + 2,
                                                            .scale = 1,
                                                            .bounds = bounds,
                                                            .bounds_count = bounds_count});
}

/* A label's value as Prometheus writes it: backslash, quote and newline escaped. */
static void client_add_label(struct text *text, const MetricProxyLabel *label)
{
    text_add(text, label->key != NULL ? label->key : "");
    text_add(text, "=\"");
    for (const char *at = label->value != NULL ? label->value : ""; *at != '\0'; at++) {
        if (*at == '\n') {
            text_add(text, "\\n");
            continue;
        }
        if (*at == '\\' || *at == '"')
            text_add_bytes(text, "\\", 1);
        text_add_bytes(text, at, 1);
    }
    text_add(text, "\"");
}

static int client_compare_keys(const MetricProxyLabel *a, const MetricProxyLabel *b)
{
    return strcmp(a->key != NULL ? a->key : "", b->key != NULL ? b->key : "");
}

/* name{a="1",b="2"}, keys in order, so that one set of labels is one metric however it was given. */
static bool client_name_with_labels(struct text *text, const char *name, const MetricProxyLabel *labels, size_t count)
{
    enum { LABELS_MAX = 32 };
    const MetricProxyLabel *sorted[LABELS_MAX];
    if (count > LABELS_MAX || (count > 0 && labels == NULL))
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at > 0 && client_compare_keys(&labels[i], sorted[at - 1]) < 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = &labels[i];
    }
    text_add(text, name);
    for (size_t i = 0; i < count; i++) {
        text_add(text, i == 0 ? "{" : ",");
        client_add_label(text, sorted[i]);
    }
    if (count > 0)
        text_add(text, "}");
    return !text->is_cut;
}

static MetricProxyValue *client_declare_labels(const char *name, const char *doc, const MetricProxyLabel *labels,
                                               size_t labels_count, enum segment_metric_kind kind)
{
    char bytes[SEGMENT_NAME_MAX_BYTES];
    struct text text = text_in(bytes, sizeof bytes);
    if (name == NULL || !client_name_with_labels(&text, name, labels, labels_count))
        return NULL;
    return client_declare(
        (struct segment_metric_spec){
            .name = bytes, .name_bytes = text.length, .kind = kind, .cells_count = 2, .scale = 1},
        doc);
}

CLIENT_API MetricProxyValue *metric_proxy_counter_new_labels(MetricProxyClient *client, const char *name,
                                                             const char *doc, const MetricProxyLabel *labels,
                                                             size_t labels_count)
{
    return client == NULL ? NULL : client_declare_labels(name, doc, labels, labels_count, SEGMENT_COUNTER);
}

CLIENT_API MetricProxyValue *metric_proxy_gauge_new_labels(MetricProxyClient *client, const char *name, const char *doc,
                                                           const MetricProxyLabel *labels, size_t labels_count)
{
    return client == NULL ? NULL : client_declare_labels(name, doc, labels, labels_count, SEGMENT_GAUGE);
}

CLIENT_API MetricProxyClient *metric_proxy_init(void)
{
    struct MetricProxyClient *client = &client_instance;
    MetricProxyValue *started = metric_proxy_counter_new(client, "has_started", "clients that have started");
    MetricProxyValue *finished =
        metric_proxy_counter_new(client, "has_finished", "clients that have come to their end");
    if (started == NULL || finished == NULL)
        return NULL;
    /* Every call finds the same handles, so writing them again changes nothing. */
    __atomic_store_n(&client->has_started, started, __ATOMIC_RELAXED);
    __atomic_store_n(&client->has_finished, finished, __ATOMIC_RELEASE);
    (void)metric_proxy_counter_add_u64(started, 1);
    return client;
}

CLIENT_API int metric_proxy_job_size(uint64_t size)
{
    return size > 0 && job_set_size(size) ? CLIENT_OK : CLIENT_FAILED;
}

CLIENT_API int metric_proxy_release(MetricProxyClient *client)
{
    if (client == NULL)
        return CLIENT_FAILED;
    return metric_proxy_counter_add_u64(__atomic_load_n(&client->has_finished, __ATOMIC_ACQUIRE), 1);
}
