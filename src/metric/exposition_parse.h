/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exposition_parse: reads what Prometheus exporters answer: text format 0.0.4, and OpenMetrics 1.0 text.
 *
 *     # HELP http_requests The total.
 *     # TYPE http_requests counter
 *     http_requests_total{code="200"} 1027 1395066363000 # {trace_id="x"} 1 1395066363
 *
 * A text in memory in, one call for each sample out, in the order of the text. Histograms and summaries stay what they
 * are in the text: samples with `le` or `quantile`, _sum, _count. A line that makes no sense spoils itself alone and is
 * counted. Nothing is taken on trust: lines, labels, families and samples have limits. Pure; any thread.
 */
#ifndef METRIC_EXPOSITION_PARSE_H
#define METRIC_EXPOSITION_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metric/value.h"
#include "util/error.h"

#define EXPOSITION_PARSE_LINE_MAX_BYTES (64u << 10)
#define EXPOSITION_PARSE_DOC_MAX_BYTES  1024  /* of a HELP; the rest is cut off */
#define EXPOSITION_PARSE_FAMILIES_MAX   50000 /* with a TYPE or HELP; samples of others have no type */

enum exposition_type {
    EXPOSITION_UNKNOWN, /* untyped, or nobody said */
    EXPOSITION_COUNTER,
    EXPOSITION_GAUGE,
    EXPOSITION_HISTOGRAM,
    EXPOSITION_SUMMARY,
    EXPOSITION_INFO,
    EXPOSITION_STATESET,
    EXPOSITION_GAUGE_HISTOGRAM,
};

/* One sample. Texts are borrowed until the call returns. */
struct exposition_sample {
    const char *name; /* with its labels: name{key="value",…}, escapes as in the text, without blanks. NUL-terminated */
    size_t name_bytes; /* up to EXPOSITION_PARSE_LINE_MAX_BYTES: metric/name.h makes a legal name of it, or refuses */
    const char *doc;   /* "" when nobody said */
    enum exposition_type type; /* of its family */
    enum metric_kind kind;     /* does it only grow? _bucket, _count and _sum do; quantiles don't */
    double value;              /* may be NaN or infinite */
    int64_t wall_us;           /* 0: without a time */
};

struct exposition_parse_config {
    bool is_openmetrics; /* by Content-Type: times are seconds, "# EOF" ends the text */
    size_t samples_max;  /* more are counted and left out */
    void (*on_sample)(void *context, const struct exposition_sample *sample);
    void *context;
};

struct exposition_parse_report {
    size_t samples;         /* given to on_sample */
    size_t samples_refused; /* past samples_max */
    size_t lines_bad;
    size_t first_bad_line;  /* from 1; 0: none */
    struct error first_err; /* what is wrong with it */
    bool has_eof;           /* "# EOF" was there */
};

/* 0, however bad the text is, or -ENOMEM, after some samples perhaps. */
MUST_CHECK int exposition_parse_text(const char *text, size_t length, const struct exposition_parse_config *config,
                                     struct exposition_parse_report *out_report);

#endif
