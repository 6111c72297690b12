/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/codec.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

/* The first byte of a column. */
enum codec_form {
    CODEC_SAME,    /* the bits of the one value */
    CODEC_DECIMAL, /* exponent, exceptions, numbers: each divided by 10 to the exponent */
    CODEC_BINARY,  /* the same with powers of 2 */
    CODEC_LIST,    /* count - 1, bits of each, places in that list */
    CODEC_BITS,    /* numbers in the order of the values */
    CODEC_FORMS,
};

enum {
    CODEC_DECIMALS_MAX = 9,
    CODEC_BINARY_MAX = 40,
    CODEC_LIST_MAX = 64,
    CODEC_EXCEPTIONS_PART = 16, /* one value in so many may be an exception */
};

static const double codec_powers_of_10[CODEC_DECIMALS_MAX + 1] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};

/* Integers up to here are doubles, all of them. */
static const double codec_integer_max = 9007199254740992.0;

static uint64_t codec_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double codec_value(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Bits as a number that is less where the value is less; and back. */
static int64_t codec_ordered(uint64_t bits)
{
    return (int64_t)(bits >> 63 != 0 ? bits ^ INT64_MAX : bits);
}

static uint64_t codec_unordered(int64_t number)
{
    return number < 0 ? (uint64_t)number ^ INT64_MAX : (uint64_t)number;
}

static void codec_put_bits(struct buf *out, uint64_t bits)
{
    unsigned char bytes[sizeof bits];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(bits >> 8 * i);
    buf_bytes(out, bytes, sizeof bytes);
}

static int codec_take_bits(struct pack_input *input, uint64_t *out_bits, struct error *err)
{
    const unsigned char *bytes;
    int rc = pack_take_bytes(input, sizeof *out_bits, &bytes, err);
    if (rc < 0)
        return rc;
    *out_bits = 0;
    for (size_t i = 0; i < sizeof *out_bits; i++)
        *out_bits |= (uint64_t)bytes[i] << 8 * i;
    return 0;
}

/* ---- writing ---- */

/* What a column is made of while it is written. */
struct codec_column {
    const double *values;
    size_t count;
    int64_t *numbers;   /* [count] */
    size_t *exceptions; /* [count] positions */
    size_t exceptions_count;
};

static double codec_scale(enum codec_form form, unsigned exponent)
{
    return form == CODEC_DECIMAL ? codec_powers_of_10[exponent] : ldexp(1, (int)exponent);
}

/* Does an integer divided by `scale` give each bit of `value`? */
static bool codec_scales(double value, double scale, int64_t *out_number)
{
    double scaled = value * scale;
    if (!(fabs(scaled) <= codec_integer_max)) /* NaN, too */
        return false;
    int64_t number = (int64_t)nearbyint(scaled);
    if (codec_bits((double)number / scale) != codec_bits(value)) /* of an integer: -0.0 is none */
        return false;
    *out_number = number;
    return true;
}

/* Fills numbers and exceptions; false when there are too many of those. */
static bool codec_scale_column(struct codec_column *column, double scale)
{
    column->exceptions_count = 0;
    int64_t last = 0;
    for (size_t i = 0; i < column->count; i++) {
        if (!codec_scales(column->values[i], scale, &last)) {
            if (column->exceptions_count >= column->count / CODEC_EXCEPTIONS_PART)
                return false;
            column->exceptions[column->exceptions_count++] = i;
        }
        column->numbers[i] = last; /* an exception moves nothing */
    }
    return true;
}

static int codec_write_scaled(const struct codec_column *column, enum codec_form form, unsigned exponent,
                              struct buf *out, struct error *err)
{
    buf_char(out, (char)form);
    buf_char(out, (char)exponent);
    pack_unsigned(out, column->exceptions_count);
    size_t last = 0;
    for (size_t i = 0; i < column->exceptions_count; i++) {
        pack_unsigned(out, column->exceptions[i] - last);
        codec_put_bits(out, codec_bits(column->values[column->exceptions[i]]));
        last = column->exceptions[i];
    }
    return pack_numbers(column->numbers, column->count, out, err);
}

/* The least exponent that fits, if one does. Returns 1 when the column was written, 0 when not, or an error. */
static int codec_try_scaled(struct codec_column *column, enum codec_form form, struct buf *out, struct error *err)
{
    unsigned most = form == CODEC_DECIMAL ? CODEC_DECIMALS_MAX : CODEC_BINARY_MAX;
    unsigned first = form == CODEC_DECIMAL ? 0 : 1; /* 2 to the 0 is 10 to the 0 */
    for (unsigned exponent = first; exponent <= most; exponent++) {
        if (!codec_scale_column(column, codec_scale(form, exponent)))
            continue;
        int rc = codec_write_scaled(column, form, exponent, out, err);
        return rc < 0 ? rc : 1;
    }
    return 0;
}

/* As codec_try_scaled(): the values that occur, in the order in which they come. */
static int codec_try_list(struct codec_column *column, struct buf *out, struct error *err)
{
    uint64_t list[CODEC_LIST_MAX];
    size_t length = 0;
    for (size_t i = 0; i < column->count; i++) {
        uint64_t bits = codec_bits(column->values[i]);
        size_t at = 0;
        while (at < length && list[at] != bits)
            at++;
        if (at == CODEC_LIST_MAX)
            return 0;
        if (at == length)
            list[length++] = bits;
        column->numbers[i] = (int64_t)at;
    }
    buf_char(out, CODEC_LIST);
    buf_char(out, (char)(length - 1));
    for (size_t i = 0; i < length; i++)
        codec_put_bits(out, list[i]);
    int rc = pack_numbers(column->numbers, column->count, out, err);
    return rc < 0 ? rc : 1;
}

/* As codec_try_scaled(): always possible. */
static int codec_try_bits(struct codec_column *column, struct buf *out, struct error *err)
{
    for (size_t i = 0; i < column->count; i++)
        column->numbers[i] = codec_ordered(codec_bits(column->values[i]));
    buf_char(out, CODEC_BITS);
    int rc = pack_numbers(column->numbers, column->count, out, err);
    return rc < 0 ? rc : 1;
}

static bool codec_is_same(const double *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (codec_bits(values[i]) != codec_bits(values[0]))
            return false;
    }
    return true;
}

static int codec_try(struct codec_column *column, enum codec_form form, struct buf *out, struct error *err)
{
    switch (form) {
    case CODEC_DECIMAL:
    case CODEC_BINARY:
        return codec_try_scaled(column, form, out, err);
    case CODEC_LIST:
        return codec_try_list(column, out, err);
    case CODEC_BITS:
        return codec_try_bits(column, out, err);
    default:
        return 0;
    }
}

int codec_encode(const double *values, size_t count, struct buf *out, struct error *err)
{
    if (count == 0 || count > CODEC_VALUES_MAX)
        return error_set(err, -EINVAL, "a column has 1 to %d values, not %zu", CODEC_VALUES_MAX, count);
    if (codec_is_same(values, count)) {
        buf_char(out, CODEC_SAME);
        codec_put_bits(out, codec_bits(values[0]));
        return buf_status(out, err);
    }
    CLEANUP(memory_cleanup) int64_t *numbers = malloc(count * sizeof *numbers);
    CLEANUP(memory_cleanup) size_t *exceptions = malloc(count * sizeof *exceptions);
    if (numbers == NULL || exceptions == NULL)
        return error_set(err, -ENOMEM, "no memory to code %zu values", count);
    struct codec_column column = {.values = values, .count = count, .numbers = numbers, .exceptions = exceptions};
    CLEANUP(buf_cleanup) struct buf best;
    CLEANUP(buf_cleanup) struct buf one;
    buf_init(&best, 32 * count + 1024); /* more than the worst of them needs */
    buf_init(&one, 32 * count + 1024);
    for (enum codec_form form = CODEC_DECIMAL; form < CODEC_FORMS; form++) {
        buf_reset(&one);
        int rc = codec_try(&column, form, &one, err);
        if (rc < 0)
            return rc;
        if (rc > 0 && (best.length == 0 || one.length < best.length)) {
            const struct buf swapped = best;
            best = one;
            one = swapped;
        }
    }
    buf_bytes(out, best.data, best.length);
    return buf_status(out, err);
}

/* ---- reading ---- */

static int codec_bad(struct error *err, const char *what)
{
    return error_set(err, -EBADMSG, "a coded column is damaged: %s", what);
}

static int codec_read_scaled(struct pack_input *input, enum codec_form form, int64_t *numbers, double *values,
                             size_t count, struct error *err)
{
    const unsigned char *exponent;
    uint64_t exceptions = 0;
    int rc = pack_take_bytes(input, 1, &exponent, err);
    if (rc == 0)
        rc = pack_take_unsigned(input, &exceptions, err);
    if (rc != 0)
        return rc;
    if (*exponent > (form == CODEC_DECIMAL ? CODEC_DECIMALS_MAX : CODEC_BINARY_MAX))
        return codec_bad(err, "exponent");
    if (exceptions > count / CODEC_EXCEPTIONS_PART)
        return codec_bad(err, "number of exceptions");
    struct pack_input exceptions_input = *input;
    for (uint64_t i = 0; rc == 0 && i < exceptions; i++) {
        uint64_t skipped;
        rc = pack_take_unsigned(input, &skipped, err);
        if (rc == 0)
            rc = codec_take_bits(input, &skipped, err);
    }
    if (rc == 0)
        rc = pack_take_numbers(input, numbers, count, err);
    if (rc != 0)
        return rc;
    double scale = codec_scale(form, *exponent);
    for (size_t i = 0; i < count; i++)
        values[i] = (double)numbers[i] / scale;
    size_t at = 0;
    for (uint64_t i = 0; rc == 0 && i < exceptions; i++) {
        uint64_t gap = 0;
        uint64_t bits = 0;
        rc = pack_take_unsigned(&exceptions_input, &gap, err);
        if (rc == 0)
            rc = codec_take_bits(&exceptions_input, &bits, err);
        if (rc == 0 && gap >= count - at)
            return codec_bad(err, "place of an exception");
        at += (size_t)gap;
        values[at] = codec_value(bits);
    }
    return rc;
}

static int codec_read_list(struct pack_input *input, int64_t *numbers, double *values, size_t count, struct error *err)
{
    const unsigned char *last;
    uint64_t list[CODEC_LIST_MAX];
    int rc = pack_take_bytes(input, 1, &last, err);
    if (rc != 0)
        return rc;
    if (*last >= CODEC_LIST_MAX)
        return codec_bad(err, "length of a list");
    for (size_t i = 0; rc == 0 && i <= *last; i++)
        rc = codec_take_bits(input, &list[i], err);
    if (rc == 0)
        rc = pack_take_numbers(input, numbers, count, err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (numbers[i] < 0 || numbers[i] > *last)
            return codec_bad(err, "place in a list");
        values[i] = codec_value(list[numbers[i]]);
    }
    return rc;
}

static int codec_read_bits(struct pack_input *input, int64_t *numbers, double *values, size_t count, struct error *err)
{
    int rc = pack_take_numbers(input, numbers, count, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        values[i] = codec_value(codec_unordered(numbers[i]));
    return rc;
}

static int codec_read_same(struct pack_input *input, double *values, size_t count, struct error *err)
{
    uint64_t bits = 0;
    int rc = codec_take_bits(input, &bits, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        values[i] = codec_value(bits);
    return rc;
}

static int codec_read(struct pack_input *input, unsigned form, double *values, size_t count, struct error *err)
{
    if (form == CODEC_SAME)
        return codec_read_same(input, values, count, err);
    CLEANUP(memory_cleanup) int64_t *numbers = malloc(count * sizeof *numbers);
    if (numbers == NULL)
        return error_set(err, -ENOMEM, "no memory to decode %zu values", count);
    switch (form) {
    case CODEC_DECIMAL:
    case CODEC_BINARY:
        return codec_read_scaled(input, form, numbers, values, count, err);
    case CODEC_LIST:
        return codec_read_list(input, numbers, values, count, err);
    case CODEC_BITS:
        return codec_read_bits(input, numbers, values, count, err);
    default:
        return codec_bad(err, "its form is none");
    }
}

int codec_decode(const void *bytes, size_t length, double *values, size_t count, struct error *err)
{
    if (count == 0 || count > CODEC_VALUES_MAX)
        return codec_bad(err, "number of values");
    struct pack_input input = {.at = bytes, .end = (const unsigned char *)bytes + length};
    const unsigned char *form;
    int rc = pack_take_bytes(&input, 1, &form, err);
    if (rc == 0)
        rc = codec_read(&input, *form, values, count, err);
    if (rc == 0 && input.at != input.end)
        return codec_bad(err, "bytes are left over");
    return rc;
}
