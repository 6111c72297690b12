/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/sketch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"

enum {
    SKETCH_EXACT_FIRST = 8,
    SKETCH_OCTAVE_BINS = 64,
    SKETCH_SHIFT = 46, /* mantissa bits of a double below the bin's index */
};

/* A power of two, so that scaling rounds nothing that a mean shows; as many as 2^64 terms stay finite. */
static const double sketch_sum_scale = 0x1p-64;

_Static_assert(PFW_SKETCH_BINS_MAX % SKETCH_OCTAVE_BINS == 0, "bins are added by the octave");

void pfw_sketch_fini(struct pfw_sketch *sketch)
{
    free(sketch->exact);
    free(sketch->bins[0].list);
    free(sketch->bins[1].list);
    *sketch = (struct pfw_sketch){0};
}

static uint32_t sketch_index(double magnitude)
{
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    return (uint32_t)(bits >> SKETCH_SHIFT);
}

/* The place of a number between the edges of its bin. */
static double sketch_place_in_bin(double magnitude)
{
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    return (double)(bits & ((UINT64_C(1) << SKETCH_SHIFT) - 1)) * 0x1p-46;
}

static double sketch_at_place(uint32_t index, double place)
{
    uint64_t bits = ((uint64_t)index << SKETCH_SHIFT) + (uint64_t)(place * 0x1p46);
    double magnitude;
    memcpy(&magnitude, &bits, sizeof magnitude);
    return magnitude;
}

/* Adds `count` numbers whose mean place is `mean`. */
static void sketch_fill(struct pfw_sketch_bin *bin, uint32_t count, double mean)
{
    uint32_t sum = (uint32_t)num_min_u64((uint64_t)bin->count + count, UINT32_MAX);
    if (sum == bin->count)
        return;
    bin->mean += (float)((mean - (double)bin->mean) * count / sum);
    bin->count = sum;
}

/* Makes the bins reach from octave to octave around `index`; where that is too far, those of the smallest fall
 * together. */
static int sketch_cover(struct pfw_sketch_bins *bins, uint32_t index, struct error *err)
{
    uint32_t begin = index / SKETCH_OCTAVE_BINS * SKETCH_OCTAVE_BINS;
    uint32_t end = begin + SKETCH_OCTAVE_BINS;
    if (bins->length > 0) {
        begin = begin < bins->first ? begin : bins->first;
        end = end > bins->first + bins->length ? end : bins->first + bins->length;
    }
    if (end - begin > PFW_SKETCH_BINS_MAX)
        begin = end - PFW_SKETCH_BINS_MAX;
    if (bins->length > 0 && begin == bins->first && end == bins->first + bins->length)
        return 0;
    struct pfw_sketch_bin *list = calloc(end - begin, sizeof *list);
    if (list == NULL)
        return error_set(err, -ENOMEM, "no memory for %u bins", end - begin);
    for (uint32_t i = 0; i < bins->length; i++) {
        uint32_t to = bins->first + i > begin ? bins->first + i - begin : 0;
        sketch_fill(&list[to], bins->list[i].count, (double)bins->list[i].mean);
    }
    free(bins->list);
    *bins = (struct pfw_sketch_bins){.list = list, .first = begin, .length = end - begin};
    return 0;
}

static int sketch_count(struct pfw_sketch *sketch, double value, struct error *err)
{
    struct pfw_sketch_bins *bins = &sketch->bins[value < 0];
    uint32_t index = sketch_index(fabs(value));
    if (index - bins->first >= bins->length) {
        int rc = sketch_cover(bins, index, err);
        if (rc < 0)
            return rc;
    }
    sketch_fill(&bins->list[index > bins->first ? index - bins->first : 0], 1, sketch_place_in_bin(fabs(value)));
    return 0;
}

/* From kept numbers to bins. */
static int sketch_start_bins(struct pfw_sketch *sketch, struct error *err)
{
    for (uint32_t i = 0; i < sketch->exact_count; i++) {
        int rc = sketch_count(sketch, sketch->exact[i], err);
        if (rc < 0) {
            free(sketch->bins[0].list);
            free(sketch->bins[1].list);
            memset(sketch->bins, 0, sizeof sketch->bins);
            return rc;
        }
    }
    free(sketch->exact);
    sketch->exact = NULL;
    sketch->exact_count = 0;
    sketch->is_binned = true;
    return 0;
}

static int sketch_keep(struct pfw_sketch *sketch, double value, struct error *err)
{
    if (sketch->exact_count == sketch->exact_capacity) {
        uint32_t capacity = sketch->exact_capacity == 0 ? SKETCH_EXACT_FIRST : sketch->exact_capacity * 2;
        double *exact = realloc(sketch->exact, capacity * sizeof *exact);
        if (exact == NULL)
            return error_set(err, -ENOMEM, "no memory for %u numbers", capacity);
        sketch->exact = exact;
        sketch->exact_capacity = capacity;
    }
    sketch->exact[sketch->exact_count++] = value;
    return 0;
}

static int sketch_place(struct pfw_sketch *sketch, double value, struct error *err)
{
    if (value == 0) {
        sketch->zeros++;
        return 0;
    }
    if (!sketch->is_binned && sketch->exact_count < PFW_SKETCH_EXACT_MAX)
        return sketch_keep(sketch, value, err);
    int rc = sketch->is_binned ? 0 : sketch_start_bins(sketch, err);
    return rc < 0 ? rc : sketch_count(sketch, value, err);
}

int pfw_sketch_add(struct pfw_sketch *sketch, double value, struct error *err)
{
    int rc = sketch_place(sketch, value, err);
    if (rc < 0)
        return rc;
    if (sketch->count == 0 || value < sketch->min)
        sketch->min = value;
    if (sketch->count == 0 || value > sketch->max)
        sketch->max = value;
    sketch->count++;
    double term = value * sketch_sum_scale - sketch->sum_error;
    double sum = sketch->scaled_sum + term;
    sketch->sum_error = (sum - sketch->scaled_sum) - term;
    sketch->scaled_sum = sum;
    return 0;
}

double pfw_sketch_mean(const struct pfw_sketch *sketch)
{
    if (sketch->count == 0)
        return 0;
    double mean = sketch->scaled_sum / (double)sketch->count / sketch_sum_scale;
    return mean < sketch->min ? sketch->min : mean > sketch->max ? sketch->max : mean; /* rounding may pass them */
}

static int sketch_compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double sketch_exact_quantile(const struct pfw_sketch *sketch, uint64_t rank)
{
    double sorted[PFW_SKETCH_EXACT_MAX];
    uint64_t count = sketch->exact_count;
    if (count == 0)
        return 0;
    memcpy(sorted, sketch->exact, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, sketch_compare);
    uint64_t negatives = 0;
    while (negatives < count && sorted[negatives] < 0)
        negatives++;
    if (rank <= negatives)
        return sorted[rank - 1];
    if (rank <= negatives + sketch->zeros)
        return 0;
    return sorted[rank - sketch->zeros - 1];
}

static double sketch_bin_value(const struct pfw_sketch_bins *bins, uint32_t i)
{
    return sketch_at_place(bins->first + i, (double)bins->list[i].mean);
}

static double sketch_binned_quantile(const struct pfw_sketch *sketch, uint64_t rank)
{
    const struct pfw_sketch_bins *negative = &sketch->bins[1];
    uint64_t seen = 0;
    for (uint32_t i = negative->length; i-- > 0;) {
        seen += negative->list[i].count;
        if (seen >= rank)
            return -sketch_bin_value(negative, i);
    }
    seen += sketch->zeros;
    if (seen >= rank)
        return 0;
    const struct pfw_sketch_bins *positive = &sketch->bins[0];
    for (uint32_t i = 0; i < positive->length; i++) {
        seen += positive->list[i].count;
        if (seen >= rank)
            return sketch_bin_value(positive, i);
    }
    return sketch->max; /* bins that are full have counted less than there was */
}

double pfw_sketch_quantile(const struct pfw_sketch *sketch, double part)
{
    if (sketch->count == 0)
        return 0;
    uint64_t rank = (uint64_t)ceil(part * (double)sketch->count);
    if (rank < 1)
        rank = 1;
    if (rank > sketch->count)
        rank = sketch->count;
    if (!sketch->is_binned)
        return sketch_exact_quantile(sketch, rank);
    double value = sketch_binned_quantile(sketch, rank);
    return value < sketch->min ? sketch->min : value > sketch->max ? sketch->max : value;
}
