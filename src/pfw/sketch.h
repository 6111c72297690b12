/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sketch: count, mean, extremes and quantiles of a stream of numbers, in bounded memory.
 *
 * Up to PFW_SKETCH_EXACT_MAX numbers that are not 0 are kept, and quantiles are then exact: the smallest number that at
 * least the asked part of all numbers does not exceed (nearest rank). Beyond that they are counted in bins, 64 to each
 * power of two, whose index is the top of the number's own bits:
 *
 *   IEEE 754 double  |sign|exponent 11|mantissa 6|mantissa 46 …|     a bin is 1/64 to 1/128 of its numbers wide
 *                         ^---- index of the bin ^
 *
 * A quantile is then the mean of the numbers in its bin: at most 1/64 (1.6 %) from the exact one, and the exact one
 * where all of them are equal, as with a value that comes again and again. Each sign has bins for a span of 2^64 (19
 * decades) below its largest number; what is smaller counts as the smallest told apart. A bin counts to 2^32 - 1 and
 * stays there. One thread.
 */
#ifndef PFW_SKETCH_H
#define PFW_SKETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

#define PFW_SKETCH_EXACT_MAX      128
#define PFW_SKETCH_BINS_MAX       4096
#define PFW_SKETCH_RELATIVE_ERROR (1.0 / 64)

struct pfw_sketch_bin {
    uint32_t count;
    float mean; /* of the numbers' places between the bin's edges, 0 to 1 */
};

struct pfw_sketch_bins {
    struct pfw_sketch_bin *list;
    uint32_t first; /* index of list[0] */
    uint32_t length;
};

/* Zero-initialise it to begin. */
struct pfw_sketch {
    uint64_t count;
    double min; /* valid when count > 0, like max */
    double max;

    /* the rest is sketch.c's */
    double scaled_sum; /* so small that no number of finite numbers leaves the range */
    double sum_error;  /* what rounding took from it (Kahan's compensation) */
    uint64_t zeros;
    double *exact; /* NULL once bins are used */
    uint32_t exact_count;
    uint32_t exact_capacity;
    bool is_binned;
    struct pfw_sketch_bins bins[2]; /* of positive and of negative numbers */
};

void pfw_sketch_fini(struct pfw_sketch *sketch);

/* `value` must be finite. -ENOMEM, and then the number is not counted. */
MUST_CHECK int pfw_sketch_add(struct pfw_sketch *sketch, double value, struct error *err);

double pfw_sketch_mean(const struct pfw_sketch *sketch); /* 0 without numbers */

/* `part` from 0 to 1. 0 without numbers. */
double pfw_sketch_quantile(const struct pfw_sketch *sketch, double part);

/* Are quantiles exact? */
static inline bool pfw_sketch_is_exact(const struct pfw_sketch *sketch)
{
    return !sketch->is_binned;
}

#endif
