/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exposition: metrics as Prometheus reads them: its text form 0.0.4, or OpenMetrics 1.0.
 *
 * Families come in order of their names, each with its HELP and TYPE once. A counter is typed as such; in OpenMetrics,
 * where a counter's name must end in _total, one that doesn't is `unknown`. A family whose metrics are of both kinds is
 * untyped. Values are finite, and no time stamps are given: Prometheus has its own. Pure, but for what it reads.
 */
#ifndef PROXY_EXPOSITION_H
#define PROXY_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>

#include "metric/name.h"
#include "metric/registry.h"
#include "util/buf.h"

enum exposition_form { EXPOSITION_TEXT, EXPOSITION_OPENMETRICS };

/* What an Accept header asks for; NULL: text. */
enum exposition_form exposition_choose(const char *accept);

/* Borrowed for ever. */
const char *exposition_content_type(enum exposition_form form);

/* How far a writing has come; starts zeroed but for its form. Between two calls metrics may be added. */
struct exposition {
    enum exposition_form form;
    char last[METRIC_NAME_MAX_BYTES + 1]; /* the metric that was written last */
};

/* Appends metrics until `out` has `bytes_enough`, or all. True: there are more. */
bool exposition_append(struct exposition *exposition, struct registry *reg, size_t bytes_enough, struct buf *out);

/* One metric that is not in a registry; `name` may have labels, and has no other metric in its family. */
void exposition_one(enum exposition_form form, const char *name, enum metric_kind kind, const char *doc, double value,
                    struct buf *out);

/* What comes last. */
void exposition_end(enum exposition_form form, struct buf *out);

#endif
