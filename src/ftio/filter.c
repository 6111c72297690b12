/* SPDX-License-Identifier: BSD-3-Clause */
#include "ftio/filter.h"

#include <complex.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The bilinear transform at two samples a second, in which edges are given as shares of half the sampling frequency. */
static const double FILTER_BILINEAR = 4;

enum { FILTER_EDGE_FACTOR = 3 }; /* points mirrored at each end, in terms of the filter */

struct filter_zpk {
    double complex zeros[FTIO_FILTER_TERMS_MAX];
    double complex poles[FTIO_FILTER_TERMS_MAX];
    size_t zeros_count;
    size_t poles_count;
    double gain;
};

/* The poles of 1 / B(s) with edge 1 rad/s. */
static void filter_prototype(size_t order, struct filter_zpk *zpk)
{
    *zpk = (struct filter_zpk){.poles_count = order, .gain = 1};
    for (size_t i = 0; i < order; i++) {
        double step = 2 * (double)i - (double)order + 1;
        zpk->poles[i] = -cexp(I * M_PI * step / (2 * (double)order));
    }
}

static void filter_to_lowpass(struct filter_zpk *zpk, double edge)
{
    for (size_t i = 0; i < zpk->poles_count; i++) {
        zpk->poles[i] *= edge;
        zpk->gain *= edge;
    }
}

static void filter_to_highpass(struct filter_zpk *zpk, double edge)
{
    double complex product = 1;
    for (size_t i = 0; i < zpk->poles_count; i++) {
        product *= -zpk->poles[i];
        zpk->poles[i] = edge / zpk->poles[i];
        zpk->zeros[i] = 0;
    }
    zpk->zeros_count = zpk->poles_count;
    zpk->gain /= creal(product);
}

static void filter_to_bandpass(struct filter_zpk *zpk, double low, double high)
{
    double width = high - low;
    size_t order = zpk->poles_count;
    for (size_t i = 0; i < order; i++) {
        double complex middle = zpk->poles[i] * width / 2;
        double complex aside = csqrt(middle * middle - low * high);
        zpk->poles[i] = middle + aside;
        zpk->poles[i + order] = middle - aside;
        zpk->zeros[i] = 0;
        zpk->gain *= width;
    }
    zpk->zeros_count = order;
    zpk->poles_count = 2 * order;
}

static void filter_to_digital(struct filter_zpk *zpk)
{
    double complex gain = zpk->gain;
    for (size_t i = 0; i < zpk->zeros_count; i++) {
        gain *= FILTER_BILINEAR - zpk->zeros[i];
        zpk->zeros[i] = (FILTER_BILINEAR + zpk->zeros[i]) / (FILTER_BILINEAR - zpk->zeros[i]);
    }
    for (size_t i = 0; i < zpk->poles_count; i++) {
        gain /= FILTER_BILINEAR - zpk->poles[i];
        zpk->poles[i] = (FILTER_BILINEAR + zpk->poles[i]) / (FILTER_BILINEAR - zpk->poles[i]);
    }
    while (zpk->zeros_count < zpk->poles_count)
        zpk->zeros[zpk->zeros_count++] = -1; /* the zeros at infinity */
    zpk->gain = creal(gain);
}

/* The polynomial with these roots; they come in conjugate pairs, so it is real. */
static void filter_polynomial(const double complex *roots, size_t count, double gain, double *out)
{
    double complex terms[FTIO_FILTER_TERMS_MAX] = {1};
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j > 0; j--)
            terms[j] -= roots[i] * terms[j - 1];
    }
    for (size_t i = 0; i <= count; i++)
        out[i] = gain * creal(terms[i]);
}

static int filter_check(const struct ftio_options *options, double freq_hz, struct error *err)
{
    bool is_band = options->filter == FTIO_BANDPASS;
    if (options->cutoffs_count != (is_band ? 2u : 1u))
        return error_set(err, -EINVAL, "filter_cutoff must be a list containing %s",
                         is_band ? "two values, low and high" : "a single float value");
    if (options->filter_order < 1 || options->filter_order > FTIO_FILTER_ORDER_MAX)
        return error_set(err, -EINVAL, "filter_order %ld: it must be 1 to %d", options->filter_order,
                         FTIO_FILTER_ORDER_MAX);
    for (size_t i = 0; i < options->cutoffs_count; i++) {
        double share = options->cutoffs_hz[i] / (freq_hz / 2);
        if (!(share > 0 && share < 1))
            return error_set(
                err, -EINVAL,
                "Digital filter critical frequencies must be 0 < Wn < 1: a cutoff of %g Hz needs more than "
                "%g samples a second",
                options->cutoffs_hz[i], 2 * options->cutoffs_hz[i]);
    }
    if (is_band && options->cutoffs_hz[0] >= options->cutoffs_hz[1])
        return error_set(err, -EINVAL, "filter_cutoff: the lower edge of a band comes first");
    return 0;
}

/* Prewarped, so that the digital edge falls where it was asked for. */
static double filter_edge(const struct ftio_options *options, size_t which, double freq_hz)
{
    return FILTER_BILINEAR * tan(M_PI * (options->cutoffs_hz[which] / (freq_hz / 2)) / 2);
}

int ftio_filter_design(const struct ftio_options *options, double freq_hz, struct ftio_filter_terms *terms,
                       struct error *err)
{
    int rc = filter_check(options, freq_hz, err);
    if (rc < 0)
        return rc;
    struct filter_zpk zpk;
    filter_prototype((size_t)options->filter_order, &zpk);
    if (options->filter == FTIO_LOWPASS)
        filter_to_lowpass(&zpk, filter_edge(options, 0, freq_hz));
    else if (options->filter == FTIO_HIGHPASS)
        filter_to_highpass(&zpk, filter_edge(options, 0, freq_hz));
    else
        filter_to_bandpass(&zpk, filter_edge(options, 0, freq_hz), filter_edge(options, 1, freq_hz));
    filter_to_digital(&zpk);
    terms->count = zpk.poles_count + 1;
    filter_polynomial(zpk.zeros, zpk.zeros_count, zpk.gain, terms->b);
    filter_polynomial(zpk.poles, zpk.poles_count, 1, terms->a);
    return 0;
}

/* The state in which a constant input of 1 has settled: filtering begins without a jump. */
static void filter_settled(const struct ftio_filter_terms *terms, double *state)
{
    double sum_a = 0;
    double sum_b = 0;
    for (size_t i = 0; i < terms->count; i++) {
        sum_a += terms->a[i];
        if (i > 0)
            sum_b += terms->b[i] - terms->a[i] * terms->b[0];
    }
    state[0] = sum_b / sum_a;
    double part_a = 1;
    double part_b = 0;
    for (size_t i = 1; i + 1 < terms->count; i++) {
        part_a += terms->a[i];
        part_b += terms->b[i] - terms->a[i] * terms->b[0];
        state[i] = part_a * state[0] - part_b;
    }
}

/* One run over values[0], values[stride], … in place. */
static void filter_run(const struct ftio_filter_terms *terms, const double *settled, double *values, size_t count,
                       ptrdiff_t stride)
{
    size_t order = terms->count - 1;
    double state[FTIO_FILTER_TERMS_MAX] = {0};
    for (size_t i = 0; i < order; i++)
        state[i] = settled[i] * values[0];
    double *at = values;
    for (size_t n = 0; n < count; n++, at += stride) {
        double in = *at;
        double out = terms->b[0] * in + state[0];
        for (size_t i = 0; i < order; i++)
            state[i] = terms->b[i + 1] * in + state[i + 1] - terms->a[i + 1] * out;
        *at = out;
    }
}

int ftio_filter_apply(const struct ftio_filter_terms *terms, double *samples, size_t count, struct error *err)
{
    size_t edge = FILTER_EDGE_FACTOR * terms->count;
    if (count <= edge)
        return error_set(err, -EINVAL, "The length of the input vector x must be greater than padlen, which is %zu",
                         edge);
    CLEANUP(memory_cleanup) double *longer = calloc(count + 2 * edge, sizeof *longer);
    if (longer == NULL)
        return error_set(err, -ENOMEM, "no memory to filter %zu samples", count);
    for (size_t i = 0; i < edge; i++) {
        longer[i] = 2 * samples[0] - samples[edge - i];
        longer[edge + count + i] = 2 * samples[count - 1] - samples[count - 2 - i];
    }
    for (size_t i = 0; i < count; i++)
        longer[edge + i] = samples[i];
    double settled[FTIO_FILTER_TERMS_MAX] = {0};
    size_t all = count + 2 * edge;
    filter_settled(terms, settled);
    filter_run(terms, settled, longer, all, 1);
    filter_run(terms, settled, longer + all - 1, all, -1);
    for (size_t i = 0; i < count; i++)
        samples[i] = longer[edge + i];
    return 0;
}
