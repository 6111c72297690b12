/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever squeue prints becomes one JSON object. */
#include <assert.h>
#include <jansson.h>

#include "fuzz.h"
#include "proxy/queue.h"

enum { JSON_MAX_BYTES = 64 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf out;
    buf_init(&out, JSON_MAX_BYTES);
    size_t bad;
    queue_parse((const char *)data, size, &out, &bad);
    if (buf_status(&out, NULL) == 0) {
        /* A NUL in an id is told as it is, and keys with one are more than jansson reads. */
        json_error_t where;
        json_t *root = json_loadb(out.data, out.length, JSON_ALLOW_NUL, &where);
        assert(root != NULL || json_error_code(&where) == json_error_null_byte_in_key);
        json_decref(root);
    }
    buf_fini(&out);
    return 0;
}
