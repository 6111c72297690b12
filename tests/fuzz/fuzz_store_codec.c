/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec.h"

enum { COUNT_MAX = 2048 };

/* Two bytes say how many values the rest is decoded as; the rest as values goes there and back. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t count = 1 + ((size_t)data[0] << 8 | data[1]) % COUNT_MAX;
    double *values = malloc(COUNT_MAX * sizeof *values);
    double *back = malloc(COUNT_MAX * sizeof *back);
    assert(values != NULL && back != NULL);
    struct buf coded;
    buf_init(&coded, 1 << 20);
    if (codec_decode(data + 2, size - 2, values, count, NULL) == 0) {
        assert(codec_encode(values, count, &coded, NULL) == 0);
        assert(codec_decode(coded.data, coded.length, back, count, NULL) == 0);
        assert(memcmp(values, back, count * sizeof *values) == 0);
    }
    size_t given = (size - 2) / sizeof *values;
    if (given > 0 && given <= COUNT_MAX) {
        memcpy(values, data + 2, given * sizeof *values);
        buf_reset(&coded);
        assert(codec_encode(values, given, &coded, NULL) == 0);
        assert(codec_decode(coded.data, coded.length, back, given, NULL) == 0);
        assert(memcmp(values, back, given * sizeof *values) == 0);
    }
    buf_fini(&coded);
    free(values);
    free(back);
    return 0;
}
