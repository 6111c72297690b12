/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/chunk.h"

enum { TICKS_MAX = 1024 };

/* A chunk with room for itself. */
struct room {
    int32_t missing[TICKS_MAX];
    double columns[CHUNK_COLUMNS_MAX][TICKS_MAX];
};

static struct chunk chunk_in(struct room *room, enum metric_kind kind, size_t ticks)
{
    struct chunk chunk = {.kind = kind, .ticks = ticks, .missing = room->missing};
    for (size_t i = 0; i < CHUNK_COLUMNS_MAX; i++)
        chunk.columns[i] = room->columns[i];
    return chunk;
}

/* Three bytes are the kind and the ticks that the rest is decoded as; what can be decoded goes there and back. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    enum metric_kind kind = data[0] % 2 == 0 ? METRIC_COUNTER : METRIC_GAUGE;
    size_t ticks = 1 + ((size_t)data[1] << 8 | data[2]) % TICKS_MAX;
    struct room *rooms = calloc(2, sizeof *rooms);
    assert(rooms != NULL);
    struct chunk chunk = chunk_in(&rooms[0], kind, ticks);
    struct chunk back = chunk_in(&rooms[1], kind, ticks);
    struct buf coded;
    buf_init(&coded, 1 << 20);
    if (chunk_decode(data + 3, size - 3, &chunk, NULL) == 0) {
        assert(chunk_encode(&chunk, &coded, NULL) == 0);
        assert(chunk_decode(coded.data, coded.length, &back, NULL) == 0);
        assert(memcmp(rooms[0].missing, rooms[1].missing, sizeof rooms[0].missing) == 0);
        for (size_t i = 0; i < CHUNK_COLUMNS_MAX; i++)
            assert(memcmp(chunk.columns[i], back.columns[i], ticks * sizeof *chunk.columns[i]) == 0);
    }
    buf_fini(&coded);
    free(rooms);
    return 0;
}
