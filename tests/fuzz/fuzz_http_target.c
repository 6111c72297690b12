/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever target a request has. What comes out may hold no NUL but its last byte, and lie within what came in. */
#include "net/http_target.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *raw = malloc(size + 1);
    if (raw == NULL)
        return 0;
    memcpy(raw, data, size);
    raw[size] = '\0';
    CLEANUP(http_target_cleanup) struct http_target target;
    if (http_target_parse(raw, &target, NULL) == 0) {
        size_t total = strlen(target.path);
        for (size_t i = 0; i < target.param_count; i++)
            total += strlen(target.params[i].name) + strlen(target.params[i].value);
        if (total > size || target.path[0] != '/')
            abort();
    }
    free(raw);
    return 0;
}
