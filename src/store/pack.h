/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pack: a sequence of integers in few bytes.
 *
 * A packed sequence is what is left after taking differences (0, 1 or 2 times) and dividing by what all of them can be
 * divided by, in the smaller of two forms:
 *   - blocks of 128: a base, a width in bits, each number's distance from the base in so many bits, and the few that
 *     are wider on their own ("patched frame of reference": Zukowski et al., Super-Scalar RAM-CPU Cache Compression,
 *     ICDE 2006);
 *   - the most frequent number, then where others stand and what they are: for counters that hardly move.
 * docs/trace-format.md has it byte by byte. Pure; any thread.
 */
#ifndef STORE_PACK_H
#define STORE_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/error.h"

#define PACK_NUMBERS_MAX 65536

/* What is left to read of packed bytes. */
struct pack_input {
    const unsigned char *at;
    const unsigned char *end;
};

/* Appends `numbers[count]`, at most PACK_NUMBERS_MAX, to `out`. Fails with -ENOMEM, or as `out` does. */
MUST_CHECK int pack_numbers(const int64_t *numbers, size_t count, struct buf *out, struct error *err);

/*
 * Takes `count` numbers off the front of `input`; any bytes may be given. -EBADMSG when they are not what
 * pack_numbers() makes of so many; `numbers` are undefined then. -ENOMEM.
 */
MUST_CHECK int pack_take_numbers(struct pack_input *input, int64_t *numbers, size_t count, struct error *err);

/* An unsigned number in 7 bits a byte, the lowest first; a signed one with its sign in the lowest bit. */
void pack_unsigned(struct buf *out, uint64_t number);
void pack_signed(struct buf *out, int64_t number);
MUST_CHECK int pack_take_unsigned(struct pack_input *input, uint64_t *out_number, struct error *err);
MUST_CHECK int pack_take_signed(struct pack_input *input, int64_t *out_number, struct error *err);

/* `length` bytes as they are, borrowed from the input. */
MUST_CHECK int pack_take_bytes(struct pack_input *input, size_t length, const unsigned char **out_bytes,
                               struct error *err);

#endif
