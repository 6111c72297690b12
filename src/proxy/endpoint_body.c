/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/endpoint_body.h"

#include <jansson.h>

bool endpoint_body_param(const char *body, size_t length, const char *name, struct buf *out)
{
    json_t *object = length > 0 ? json_loadb(body, length, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const json_t *value = json_object_get(object, name);
    bool is_there = true;
    if (json_is_string(value))
        buf_bytes(out, json_string_value(value), json_string_length(value));
    else if (json_is_number(value))
        buf_double(out, json_number_value(value));
    else
        is_there = false;
    json_decref(object);
    return is_there && out->status == 0;
}
