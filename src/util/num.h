/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * num: arithmetic on sizes that come from outside, which may not wrap: false, output untouched, when it would. Any
 * thread.
 */
#ifndef UTIL_NUM_H
#define UTIL_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* a + b. */
static inline bool num_add_size(size_t a, size_t b, size_t *out_sum)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out_sum = sum;
    return true;
}

/* a * b. */
static inline bool num_mul_size(size_t a, size_t b, size_t *out_product)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out_product = product;
    return true;
}

/* The smaller one. Unlike MIN() it computes its arguments once. */
static inline uint64_t num_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The larger one. */
static inline uint64_t num_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
