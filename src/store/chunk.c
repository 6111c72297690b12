/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/chunk.h"

#include <errno.h>
#include <stdlib.h>

#include "util/cleanup.h"

/* What one column needs at most is far below this for each value: buf asks for a limit. */
enum { CHUNK_VALUE_MAX_BYTES = 32, CHUNK_COLUMN_MIN_BYTES = 1024 };

size_t chunk_columns(enum metric_kind kind)
{
    return kind == METRIC_GAUGE ? CHUNK_COLUMNS_MAX : 1;
}

/* Its length, and the values of the ticks that are not absent. */
static int chunk_put_column(const struct chunk *chunk, const double *values, double *present, struct buf *out,
                            struct error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < chunk->ticks; i++)
        if (chunk->missing[i] != CHUNK_ABSENT)
            present[count++] = values[i];
    if (count == 0)
        return 0;
    CLEANUP(buf_cleanup) struct buf column;
    buf_init(&column, CHUNK_VALUE_MAX_BYTES * count + CHUNK_COLUMN_MIN_BYTES);
    int rc = codec_encode(present, count, &column, err);
    if (rc < 0)
        return rc;
    pack_unsigned(out, column.length);
    buf_bytes(out, column.data, column.length);
    return buf_status(out, err);
}

int chunk_encode(const struct chunk *chunk, struct buf *out, struct error *err)
{
    if (chunk->ticks == 0 || chunk->ticks > CHUNK_TICKS_MAX)
        return error_set(err, -EINVAL, "a chunk has 1 to %d ticks, not %zu", CHUNK_TICKS_MAX, chunk->ticks);
    CLEANUP(memory_cleanup) int64_t *missing = malloc(chunk->ticks * sizeof *missing);
    CLEANUP(memory_cleanup) double *present = malloc(chunk->ticks * sizeof *present);
    if (missing == NULL || present == NULL)
        return error_set(err, -ENOMEM, "no memory for a chunk");
    for (size_t i = 0; i < chunk->ticks; i++) {
        if (chunk->missing[i] < CHUNK_ABSENT)
            return error_set(err, -EINVAL, "%d nodes can't be missing", (int)chunk->missing[i]);
        missing[i] = chunk->missing[i];
    }
    int rc = pack_numbers(missing, chunk->ticks, out, err);
    for (size_t i = 0; rc == 0 && i < chunk_columns(chunk->kind); i++)
        rc = chunk_put_column(chunk, chunk->columns[i], present, out, err);
    return rc;
}

/* The column's `count` values, spread over the ticks that are not absent. */
static int chunk_take_column(struct pack_input *input, const struct chunk *chunk, double *values, size_t count,
                             struct error *err)
{
    uint64_t length = 0;
    int rc = pack_take_unsigned(input, &length, err);
    if (rc < 0)
        return rc;
    const unsigned char *bytes;
    if (length > (uint64_t)(input->end - input->at))
        return error_set(err, -EBADMSG, "a chunk is damaged: length of a column");
    rc = pack_take_bytes(input, (size_t)length, &bytes, err);
    if (rc == 0)
        rc = codec_decode(bytes, (size_t)length, values, count, err);
    if (rc < 0)
        return rc;
    /* From the last one down: no value is overwritten before it has been moved. */
    for (size_t i = chunk->ticks; i-- > 0;)
        values[i] = chunk->missing[i] == CHUNK_ABSENT ? 0 : values[--count];
    return 0;
}

int chunk_decode(const void *bytes, size_t length, struct chunk *chunk, struct error *err)
{
    if (chunk->ticks == 0 || chunk->ticks > CHUNK_TICKS_MAX || length == 0)
        return error_set(err, -EBADMSG, "a chunk is damaged: no bytes, or a wrong number of ticks");
    CLEANUP(memory_cleanup) int64_t *missing = malloc(chunk->ticks * sizeof *missing);
    if (missing == NULL)
        return error_set(err, -ENOMEM, "no memory for a chunk");
    struct pack_input input = {.at = bytes, .end = (const unsigned char *)bytes + length};
    int rc = pack_take_numbers(&input, missing, chunk->ticks, err);
    size_t count = 0;
    for (size_t i = 0; rc == 0 && i < chunk->ticks; i++) {
        if (missing[i] < CHUNK_ABSENT || missing[i] > INT32_MAX)
            return error_set(err, -EBADMSG, "a chunk is damaged: number of missing nodes");
        chunk->missing[i] = (int32_t)missing[i];
        count += missing[i] != CHUNK_ABSENT;
    }
    for (size_t i = 0; rc == 0 && i < chunk_columns(chunk->kind); i++) {
        if (count > 0)
            rc = chunk_take_column(&input, chunk, chunk->columns[i], count, err);
        else
            for (size_t tick = 0; tick < chunk->ticks; tick++)
                chunk->columns[i][tick] = 0;
    }
    if (rc == 0 && input.at != input.end)
        return error_set(err, -EBADMSG, "a chunk is damaged: bytes are left over");
    return rc;
}
