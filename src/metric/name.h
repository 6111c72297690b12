/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * name: a metric's name with its labels, parsed once: name{key="value",…}.
 *
 * Names follow Prometheus' data model: [a-zA-Z_:][a-zA-Z0-9_:]* for the name, [a-zA-Z_][a-zA-Z0-9_]* for a label's key,
 * any UTF-8 as its value. What a client gives us otherwise is mapped to a legal name, once, when it is declared: bytes
 * that are not allowed become '_', a leading digit gets a '_' before it, bad UTF-8 becomes U+FFFD, of two labels with
 * one key the last stays, and a label block that can't be read becomes part of the name. Labels are kept in order of
 * their keys, so that one set of labels is one name. Pure; any thread.
 */
#ifndef METRIC_NAME_H
#define METRIC_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "util/buf.h"

#define METRIC_NAME_MAX_BYTES 1024 /* labels included */
#define METRIC_LABELS_MAX     32

/*
 * Appends the legal form of `text` to `out`. `*out_was_legal` says whether it was that already, but for the order of
 * labels. -EINVAL when it is empty, has more than METRIC_LABELS_MAX labels, or its legal form is longer than
 * METRIC_NAME_MAX_BYTES.
 */
MUST_CHECK int metric_name_parse(const char *text, size_t length, struct buf *out, bool *out_was_legal,
                                 struct error *err);

/* Of a legal name: how many bytes come before the '{', or all of it. */
size_t metric_name_family_bytes(const char *name);

/* Of a legal name: the labels without their braces, "" when there are none. Borrowed from `name`, not NUL-terminated.
 */
const char *metric_name_labels(const char *name, size_t *out_bytes);

#endif
