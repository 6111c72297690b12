/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever body a request has. What comes out is UTF-8 without a NUL, or nothing. */
#include "proxy/endpoint_body.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "util/cleanup.h"

enum { FUZZ_PARAM_MAX_BYTES = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"key", "value", "doc", ""};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        CLEANUP(buf_cleanup) struct buf out;
        buf_init(&out, FUZZ_PARAM_MAX_BYTES);
        bool is_there = endpoint_body_param((const char *)data, size, names[i], &out);
        if ((!is_there && out.length > 0) || (is_there && out.length > 0 && memchr(out.data, '\0', out.length) != NULL))
            abort();
    }
    return 0;
}
