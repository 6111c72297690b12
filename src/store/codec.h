/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * codec: a column of doubles in few bytes, without loss: each comes back bit for bit, NaNs with their payload, -0.0 and
 * denormals too.
 *
 * A column is turned into integers in whatever of these ways needs the fewest bytes, and those are packed (pack.h):
 *   - one number for all;
 *   - integers, or integers divided by a power of 10, or by a power of 2, where that division gives back each bit; some
 *     that don't are kept beside them;
 *   - the number's place in a list of the few that occur;
 *   - its bits, in an order that keeps the numbers' own.
 * docs/trace-format.md has it byte by byte. Pure; any thread.
 */
#ifndef STORE_CODEC_H
#define STORE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "store/pack.h"

#define CODEC_VALUES_MAX PACK_NUMBERS_MAX

/* Appends `values[count]`, 1 to CODEC_VALUES_MAX, to `out`. -EINVAL for another count, -ENOMEM, or as `out` fails. */
MUST_CHECK int codec_encode(const double *values, size_t count, struct buf *out, struct error *err);

/*
 * The `count` values that `bytes[length]` hold; any bytes may be given. -EBADMSG when they are not exactly what
 * codec_encode() makes of so many values; `values` are undefined then. -ENOMEM.
 */
MUST_CHECK int codec_decode(const void *bytes, size_t length, double *values, size_t count, struct error *err);

#endif
