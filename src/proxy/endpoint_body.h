/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoint_body: parameters in the JSON object that is a request's body. Pure; any thread.
 */
#ifndef PROXY_ENDPOINT_BODY_H
#define PROXY_ENDPOINT_BODY_H

#include <stdbool.h>
#include <stddef.h>

#include "util/buf.h"

/*
 * Appends the member `name` of the object to `out`, a number as text. False, `out` as it was, when there is none: no
 * object, no such member, another kind of value, or no room. A member that is there twice makes it no object.
 */
bool endpoint_body_param(const char *body, size_t length, const char *name, struct buf *out);

#endif
