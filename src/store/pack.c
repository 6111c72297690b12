/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/pack.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

enum {
    BLOCK_MAX = 128,
    WIDTHS = 65, /* of a number in bits: 0 to 64 */
    ORDER_MAX = 2,
    /* The first byte of a sequence: how often differences were taken, and flags. */
    HEAD_ORDER_MASK = 3,
    HEAD_IS_SPARSE = 4,
    HEAD_HAS_DIVISOR = 8,
    HEAD_BITS = 15,
    BASES_TRIED = 5,
};

/* A block's base is the least of its numbers, or one of the next: a few that are far below are cheaper on their own. */
static const size_t pack_base_ranks[BASES_TRIED] = {0, 1, 2, 4, 8};

/* ---- numbers one by one ---- */

static uint64_t pack_zigzag(int64_t number)
{
    return (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0);
}

static int64_t pack_unzigzag(uint64_t number)
{
    return (int64_t)(number >> 1 ^ (0 - (number & 1)));
}

void pack_unsigned(struct buf *out, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        buf_char(out, (char)(unsigned char)(number | 0x80));
    buf_char(out, (char)(unsigned char)number);
}

void pack_signed(struct buf *out, int64_t number)
{
    pack_unsigned(out, pack_zigzag(number));
}

static int pack_bad(struct error *err)
{
    (void)error_set(err, -EBADMSG, "packed numbers are damaged");
    return -EBADMSG; /* so that the compiler sees it is a failure */
}

int pack_take_unsigned(struct pack_input *input, uint64_t *out_number, struct error *err)
{
    uint64_t number = 0;
    for (unsigned shift = 0; input->at < input->end && shift < 64; shift += 7) {
        unsigned char byte = *input->at++;
        uint64_t part = byte & 0x7f;
        if (shift == 63 && part > 1)
            return pack_bad(err);
        number |= part << shift;
        if (byte < 0x80) {
            *out_number = number;
            return 0;
        }
    }
    return pack_bad(err);
}

int pack_take_signed(struct pack_input *input, int64_t *out_number, struct error *err)
{
    uint64_t number;
    int rc = pack_take_unsigned(input, &number, err);
    if (rc == 0)
        *out_number = pack_unzigzag(number);
    return rc;
}

int pack_take_bytes(struct pack_input *input, size_t length, const unsigned char **out_bytes, struct error *err)
{
    if ((size_t)(input->end - input->at) < length)
        return pack_bad(err);
    *out_bytes = input->at;
    input->at += length;
    return 0;
}

static size_t pack_width(uint64_t number)
{
    return number == 0 ? 0 : 64 - (size_t)__builtin_clzll(number);
}

static size_t pack_unsigned_bytes(uint64_t number)
{
    size_t width = pack_width(number);
    return width == 0 ? 1 : (width + 6) / 7;
}

/* Differences wrap around, and so does adding them up again. */
static int64_t pack_minus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t pack_plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* ---- blocks ---- */

struct block_plan {
    int64_t base;
    size_t width;   /* bits of a number in the block */
    size_t patches; /* numbers that need more */
    size_t bytes;   /* of the block, about */
};

/* The cheapest width for a block, given how many of its numbers have which width. */
static void block_choose_width(struct block_plan *plan, const size_t counts[WIDTHS], size_t count)
{
    plan->bytes = SIZE_MAX;
    for (size_t width = 0; width < WIDTHS; width++) {
        size_t patches = 0;
        size_t patch_bytes = 0;
        for (size_t wide = width + 1; wide < WIDTHS; wide++) {
            patches += counts[wide];
            patch_bytes += counts[wide] * (1 + (wide - width + 6) / 7);
        }
        size_t bytes = (width * count + 7) / 8 + patch_bytes;
        if (bytes < plan->bytes) {
            plan->bytes = bytes;
            plan->width = width;
            plan->patches = patches;
        }
    }
}

static int pack_compare(const void *a, const void *b)
{
    const int64_t *first = a;
    const int64_t *second = b;
    return (*first > *second) - (*first < *second);
}

static struct block_plan block_plan(const int64_t *numbers, size_t count)
{
    int64_t sorted[BLOCK_MAX];
    memcpy(sorted, numbers, count * sizeof *numbers);
    qsort(sorted, count, sizeof *sorted, pack_compare);
    struct block_plan best = {.bytes = SIZE_MAX};
    for (size_t i = 0; i < BASES_TRIED && pack_base_ranks[i] < count; i++) {
        struct block_plan plan = {.base = sorted[pack_base_ranks[i]]};
        if (i > 0 && plan.base == sorted[pack_base_ranks[i - 1]])
            continue;
        size_t counts[WIDTHS] = {0};
        for (size_t j = 0; j < count; j++)
            counts[pack_width((uint64_t)pack_minus(numbers[j], plan.base))]++;
        block_choose_width(&plan, counts, count);
        plan.bytes += pack_unsigned_bytes(pack_zigzag(plan.base)) + 2;
        if (plan.bytes < best.bytes)
            best = plan;
    }
    return best;
}

static uint64_t block_mask(size_t width)
{
    return width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

static void block_write_bits(struct buf *out, const int64_t *numbers, size_t count, const struct block_plan *plan)
{
    uint64_t pending = 0;
    size_t pending_bits = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = (uint64_t)pack_minus(numbers[i], plan->base) & block_mask(plan->width);
        for (size_t left = plan->width; left > 0;) {
            size_t taken = left < 8 - pending_bits ? left : 8 - pending_bits;
            pending |= (offset & block_mask(taken)) << pending_bits;
            offset = taken == 64 ? 0 : offset >> taken;
            pending_bits += taken;
            left -= taken;
            if (pending_bits == 8) {
                buf_char(out, (char)(unsigned char)pending);
                pending = pending_bits = 0;
            }
        }
    }
    if (pending_bits > 0)
        buf_char(out, (char)(unsigned char)pending);
}

static void block_write(struct buf *out, const int64_t *numbers, size_t count)
{
    struct block_plan plan = block_plan(numbers, count);
    pack_signed(out, plan.base);
    buf_char(out, (char)plan.width);
    buf_char(out, (char)(unsigned char)plan.patches);
    block_write_bits(out, numbers, count, &plan);
    for (size_t i = 0; i < count && plan.width < 64; i++) {
        uint64_t high = (uint64_t)pack_minus(numbers[i], plan.base) >> plan.width;
        if (high != 0) {
            buf_char(out, (char)i);
            pack_unsigned(out, high);
        }
    }
}

static void blocks_write(struct buf *out, const int64_t *numbers, size_t count)
{
    for (size_t at = 0; at < count; at += BLOCK_MAX)
        block_write(out, numbers + at, count - at < BLOCK_MAX ? count - at : BLOCK_MAX);
}

static void block_read_bits(const unsigned char *bytes, size_t width, int64_t base, int64_t *numbers, size_t count)
{
    size_t bit = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = 0;
        for (size_t done = 0; done < width;) {
            size_t taken = 8 - bit % 8 < width - done ? 8 - bit % 8 : width - done;
            uint64_t part = (uint64_t)bytes[bit / 8] >> bit % 8 & block_mask(taken);
            offset |= part << done;
            done += taken;
            bit += taken;
        }
        numbers[i] = pack_plus(base, (int64_t)offset);
    }
}

static int block_read(struct pack_input *input, int64_t *numbers, size_t count, struct error *err)
{
    int64_t base;
    const unsigned char *head = NULL;
    const unsigned char *bits = NULL;
    int rc = pack_take_signed(input, &base, err);
    if (rc == 0)
        rc = pack_take_bytes(input, 2, &head, err);
    if (rc != 0)
        return rc;
    size_t width = head[0];
    size_t patches = head[1];
    if (width >= WIDTHS || patches > count || (width == 64 && patches > 0))
        return pack_bad(err);
    rc = pack_take_bytes(input, (width * count + 7) / 8, &bits, err);
    if (rc != 0)
        return rc;
    block_read_bits(bits, width, base, numbers, count);
    for (size_t i = 0; i < patches; i++) {
        const unsigned char *position;
        uint64_t high;
        rc = pack_take_bytes(input, 1, &position, err);
        if (rc == 0)
            rc = pack_take_unsigned(input, &high, err);
        if (rc != 0)
            return rc;
        if (*position >= count || pack_width(high) > 64 - width)
            return pack_bad(err);
        numbers[*position] = pack_plus(numbers[*position], (int64_t)(high << width));
    }
    return 0;
}

static int blocks_read(struct pack_input *input, int64_t *numbers, size_t count, struct error *err)
{
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < count; at += BLOCK_MAX)
        rc = block_read(input, numbers + at, count - at < BLOCK_MAX ? count - at : BLOCK_MAX, err);
    return rc;
}

/* ---- numbers that are mostly the same ---- */

/* The number that comes most often, if more than half the time (else any): Boyer and Moore's vote. */
static int64_t sparse_majority(const int64_t *numbers, size_t count)
{
    int64_t candidate = 0;
    size_t votes = 0;
    for (size_t i = 0; i < count; i++) {
        if (votes == 0)
            candidate = numbers[i];
        votes = numbers[i] == candidate ? votes + 1 : votes - 1;
    }
    return candidate;
}

/* `work` has room for 2 x `count`. False, nothing written: they are not mostly the same. */
static bool sparse_write(struct buf *out, const int64_t *numbers, size_t count, int64_t *work)
{
    int64_t usual = sparse_majority(numbers, count);
    int64_t *gaps = work;
    int64_t *others = work + count;
    size_t others_count = 0;
    size_t last = 0;
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] == usual)
            continue;
        gaps[others_count] = (int64_t)(i - last);
        others[others_count++] = numbers[i];
        last = i;
    }
    if (others_count > count / 2)
        return false;
    pack_signed(out, usual);
    pack_unsigned(out, others_count);
    blocks_write(out, gaps, others_count);
    blocks_write(out, others, others_count);
    return true;
}

static int sparse_read(struct pack_input *input, int64_t *numbers, size_t count, int64_t *work, struct error *err)
{
    int64_t usual;
    uint64_t others_count;
    int rc = pack_take_signed(input, &usual, err);
    if (rc == 0)
        rc = pack_take_unsigned(input, &others_count, err);
    if (rc != 0)
        return rc;
    if (others_count > count / 2)
        return pack_bad(err);
    rc = blocks_read(input, work, (size_t)others_count, err);
    if (rc == 0)
        rc = blocks_read(input, work + count, (size_t)others_count, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < count; i++)
        numbers[i] = usual;
    size_t at = 0;
    for (size_t i = 0; i < others_count; i++) {
        if (work[i] < 0 || (uint64_t)work[i] >= count - at)
            return pack_bad(err);
        at += (size_t)work[i];
        numbers[at] = work[count + i];
    }
    return 0;
}

/* ---- sequences ---- */

/* Replaces `numbers` by their differences, the last first, so that each still finds what it needs. */
static void pack_differences(int64_t *numbers, size_t count)
{
    for (size_t i = count; i-- > 1;)
        numbers[i] = pack_minus(numbers[i], numbers[i - 1]);
}

/* The greatest number that divides all of them; 1 when there is none, or none to divide. */
static int64_t pack_divisor(const int64_t *numbers, size_t count)
{
    uint64_t divisor = 0;
    for (size_t i = 0; i < count && divisor != 1; i++) {
        uint64_t rest = numbers[i] < 0 ? 0 - (uint64_t)numbers[i] : (uint64_t)numbers[i];
        while (rest != 0) {
            uint64_t next = divisor % rest;
            divisor = rest;
            rest = next;
        }
    }
    return divisor == 0 || divisor > INT64_MAX ? 1 : (int64_t)divisor;
}

/* Writes the body in the smaller form; returns the flags for the head. */
static unsigned pack_body(struct buf *out, const int64_t *numbers, size_t count, int64_t *work, struct buf *other)
{
    size_t before = out->length;
    blocks_write(out, numbers, count);
    buf_reset(other);
    if (!sparse_write(other, numbers, count, work) || other->length >= out->length - before || other->status != 0)
        return 0;
    buf_truncate(out, before);
    buf_bytes(out, other->data, other->length);
    return HEAD_IS_SPARSE;
}

/* One way to write `numbers`, which had their differences taken `order` times: the first `order` stand for themselves.
 */
static void pack_order(struct buf *out, unsigned order, int64_t *numbers, size_t count, int64_t *work,
                       struct buf *other)
{
    size_t firsts = order < count ? order : count;
    int64_t divisor = pack_divisor(numbers + firsts, count - firsts);
    size_t head_at = out->length;
    buf_char(out, 0);
    if (divisor > 1)
        pack_unsigned(out, (uint64_t)divisor);
    for (size_t i = 0; i < firsts; i++)
        pack_signed(out, numbers[i]);
    int64_t *quotients = work + 2 * count;
    for (size_t i = firsts; i < count; i++)
        quotients[i - firsts] = numbers[i] / divisor;
    unsigned flags = pack_body(out, quotients, count - firsts, work, other);
    if (out->status == 0)
        out->data[head_at] = (char)(order | flags | (divisor > 1 ? HEAD_HAS_DIVISOR : 0));
}

int pack_numbers(const int64_t *numbers, size_t count, struct buf *out, struct error *err)
{
    if (count == 0 || count > PACK_NUMBERS_MAX)
        return count == 0 ? 0 : error_set(err, -E2BIG, "%zu numbers are too many to pack", count);
    CLEANUP(memory_cleanup) int64_t *copies = malloc(4 * count * sizeof *copies);
    if (copies == NULL)
        return error_set(err, -ENOMEM, "no memory to pack %zu numbers", count);
    memcpy(copies, numbers, count * sizeof *numbers);
    CLEANUP(buf_cleanup) struct buf best;
    CLEANUP(buf_cleanup) struct buf one;
    CLEANUP(buf_cleanup) struct buf other;
    struct buf *all[] = {&best, &one, &other};
    for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
        buf_init(all[i], 32 * count + 64); /* more than the worst of them needs */
    for (unsigned order = 0; order <= ORDER_MAX; order++) {
        if (order > 0)
            pack_differences(copies + (order - 1), count > order - 1 ? count - (order - 1) : 0);
        buf_reset(&one);
        pack_order(&one, order, copies, count, copies + count, &other);
        int rc = buf_status(&one, err);
        if (rc != 0)
            return rc;
        if (order == 0 || one.length < best.length) {
            const struct buf swapped = best;
            best = one;
            one = swapped;
        }
    }
    buf_bytes(out, best.data, best.length);
    return buf_status(out, err);
}

/* Undoes the divisor and the differences. */
static int pack_restore(int64_t *numbers, size_t count, size_t firsts, int64_t divisor, struct error *err)
{
    for (size_t i = firsts; i < count; i++) {
        if (__builtin_mul_overflow(numbers[i], divisor, &numbers[i]))
            return pack_bad(err);
    }
    for (size_t order = firsts; order-- > 0;) {
        for (size_t i = order + 1; i < count; i++)
            numbers[i] = pack_plus(numbers[i], numbers[i - 1]);
    }
    return 0;
}

int pack_take_numbers(struct pack_input *input, int64_t *numbers, size_t count, struct error *err)
{
    if (count == 0)
        return 0;
    if (count > PACK_NUMBERS_MAX)
        return pack_bad(err);
    const unsigned char *head;
    int rc = pack_take_bytes(input, 1, &head, err);
    if (rc != 0)
        return rc;
    unsigned order = *head & HEAD_ORDER_MASK;
    if (*head > HEAD_BITS || order > ORDER_MAX)
        return pack_bad(err);
    uint64_t divisor = 1;
    if ((*head & HEAD_HAS_DIVISOR) != 0)
        rc = pack_take_unsigned(input, &divisor, err);
    if (rc == 0 && (divisor == 0 || divisor > INT64_MAX))
        rc = pack_bad(err);
    size_t firsts = order < count ? order : count;
    for (size_t i = 0; rc == 0 && i < firsts; i++)
        rc = pack_take_signed(input, &numbers[i], err);
    if (rc != 0)
        return rc;
    if ((*head & HEAD_IS_SPARSE) != 0) {
        CLEANUP(memory_cleanup) int64_t *work = malloc(2 * count * sizeof *work);
        if (work == NULL)
            return error_set(err, -ENOMEM, "no memory to unpack %zu numbers", count);
        rc = sparse_read(input, numbers + firsts, count - firsts, work, err);
    } else {
        rc = blocks_read(input, numbers + firsts, count - firsts, err);
    }
    return rc < 0 ? rc : pack_restore(numbers, count, firsts, (int64_t)divisor, err);
}
