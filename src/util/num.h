/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * num: arithmetic on sizes that come from outside, which may not wrap. Each returns false, output untouched, on
 * overflow. Any thread.
 */
#ifndef UTIL_NUM_H
#define UTIL_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool num_add_size(size_t a, size_t b, size_t *out_sum)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out_sum = sum;
    return true;
}

static inline bool num_mul_size(size_t a, size_t b, size_t *out_product)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out_product = product;
    return true;
}

static inline uint64_t num_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t num_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
