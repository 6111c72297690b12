/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chunk: one metric over the ticks of an epoch, in bytes: at which ticks it was measured, by how many nodes too few,
 * and its numbers there, without loss.
 *
 * docs/trace-format.md has it byte by byte. Pure; any thread.
 */
#ifndef STORE_CHUNK_H
#define STORE_CHUNK_H

#include <stddef.h>
#include <stdint.h>

#include "metric/value.h"
#include "store/codec.h"

#define CHUNK_TICKS_MAX   CODEC_VALUES_MAX
#define CHUNK_COLUMNS_MAX 4

/* In the place of the number of missing nodes: the metric was not measured at this tick. */
#define CHUNK_ABSENT (-1)

/*
 * A counter has one column; a gauge four: least, greatest, contributors, sum. Each array is [ticks]; the values at
 * absent ticks are not kept.
 */
struct chunk {
    enum metric_kind kind;
    size_t ticks;                       /* 1 to CHUNK_TICKS_MAX */
    int32_t *missing;                   /* nodes that should have contributed and did not, or CHUNK_ABSENT */
    double *columns[CHUNK_COLUMNS_MAX]; /* as many as chunk_columns() says */
};

/* How many columns a metric of this kind has: 1 or 4. */
size_t chunk_columns(enum metric_kind kind);

/* Appends `chunk`, which is only read, to `out`. -EINVAL (ticks, or a number of missing nodes), -ENOMEM, or as `out`.
 */
MUST_CHECK int chunk_encode(const struct chunk *chunk, struct buf *out, struct error *err);

/*
 * Fills the arrays of `chunk`, whose kind and ticks say what `bytes[length]`, which may be any, should hold; a value at
 * an absent tick becomes 0. -EBADMSG when they hold something else (the arrays are undefined then), -ENOMEM.
 */
MUST_CHECK int chunk_decode(const void *bytes, size_t length, struct chunk *chunk, struct error *err);

#endif
