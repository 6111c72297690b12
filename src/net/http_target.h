/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_target: the path and the parameters of a request's target ("/job/?job=42"), decoded once.
 *
 * Pure. A path with a bad escape, or a NUL anywhere, is refused: what was checked must be what is used. In the query
 * '+' is a blank, and a '%' that begins no escape stands for itself, as people type it. Any thread.
 */
#ifndef NET_HTTP_TARGET_H
#define NET_HTTP_TARGET_H

#include <stddef.h>

#include "util/error.h"

#define HTTP_TARGET_PARAMS_MAX 64

struct http_target_param {
    const char *name;
    const char *value; /* "" when there was no '=' */
};

struct http_target {
    char *memory;     /* what all texts below point into */
    const char *path; /* begins with '/' */
    size_t param_count;
    struct http_target_param params[HTTP_TARGET_PARAMS_MAX];
};

/*
 * Borrows `raw`. -EINVAL: not "/…" (also the forms for proxies), a bad escape, a control character; -E2BIG: more than
 * HTTP_TARGET_PARAMS_MAX parameters; -ENOMEM. `*out_target` needs http_target_fini() in any case.
 */
MUST_CHECK int http_target_parse(const char *raw, struct http_target *out_target, struct error *err);
void http_target_fini(struct http_target *target);

static inline void http_target_cleanup(struct http_target *target)
{
    http_target_fini(target);
}

/* The first parameter of that name; NULL when there is none. Borrowed from `target`. */
const char *http_target_param(const struct http_target *target, const char *name);

#endif
