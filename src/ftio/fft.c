/* SPDX-License-Identifier: BSD-3-Clause */
#include "ftio/fft.h"

#include <errno.h>
#include <fftw3.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "util/num.h"

enum { FFT_ALIGNMENT_BYTES = 64, FFT_PLANS_MAX = 16 };

struct fft_plan {
    size_t count; /* 0: free */
    fftw_plan plan;
    size_t users;
    uint64_t last_use;
};

/* The planner of FFTW is one for the process whatever we do, and what it makes is worth keeping beside it. */
static struct {
    pthread_mutex_t lock;
    struct fft_plan plans[FFT_PLANS_MAX]; /* guarded by lock */
    uint64_t uses;                        /* guarded by lock */
} fft_kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *fft_memory(size_t count, size_t size)
{
    size_t bytes;
    if (!num_mul_size(count, size, &bytes) || !num_add_size(bytes, FFT_ALIGNMENT_BYTES, &bytes))
        return NULL;
    void *memory = NULL;
    return posix_memalign(&memory, FFT_ALIGNMENT_BYTES, bytes) == 0 ? memory : NULL;
}

double *ftio_fft_reals(size_t count)
{
    return fft_memory(count, sizeof(double));
}

double (*ftio_fft_lines(size_t count))[2]
{
    return fft_memory(count, sizeof(double[2]));
}

/* The place of a plan for `count`, or the one that may be overwritten: a free one, or the one longest unused. */
static struct fft_plan *fft_find(size_t count)
{
    struct fft_plan *oldest = NULL;
    for (size_t i = 0; i < FFT_PLANS_MAX; i++) {
        struct fft_plan *entry = &fft_kept.plans[i];
        if (entry->count == count)
            return entry;
        if (entry->users == 0 && (oldest == NULL || entry->last_use < oldest->last_use))
            oldest = entry;
    }
    return oldest;
}

/* A plan and, through `out_entry`, where it is kept; NULL there when all places are in use. */
static fftw_plan fft_take(size_t count, double *reals, double (*lines)[2], struct fft_plan **out_entry)
{
    (void)pthread_mutex_lock(&fft_kept.lock); /* a static mutex of the default kind can't fail here */
    struct fft_plan *entry = fft_find(count);
    fftw_plan plan = entry != NULL && entry->count == count ? entry->plan : NULL;
    if (plan == NULL)
        plan = fftw_plan_dft_r2c_1d((int)count, reals, lines, FFTW_ESTIMATE | FFTW_PRESERVE_INPUT);
    if (plan != NULL && entry != NULL) {
        if (entry->count != count && entry->plan != NULL)
            fftw_destroy_plan(entry->plan);
        entry->count = count;
        entry->plan = plan;
        entry->users++;
        entry->last_use = ++fft_kept.uses;
    }
    *out_entry = entry;
    (void)pthread_mutex_unlock(&fft_kept.lock);
    return plan;
}

static void fft_give_back(fftw_plan plan, struct fft_plan *entry)
{
    (void)pthread_mutex_lock(&fft_kept.lock);
    if (entry != NULL)
        entry->users--;
    else
        fftw_destroy_plan(plan);
    (void)pthread_mutex_unlock(&fft_kept.lock);
}

int ftio_fft_forward(double *reals, size_t count, double (*lines)[2], struct error *err)
{
    if (count == 0 || count > INT_MAX)
        return error_set(err, -E2BIG, "a Fourier transform of %zu samples is not possible", count);
    struct fft_plan *entry;
    fftw_plan plan = fft_take(count, reals, lines, &entry);
    if (plan == NULL)
        return error_set(err, -ENOMEM, "no memory for a Fourier transform of %zu samples", count);
    fftw_execute_dft_r2c(plan, reals, lines);
    fft_give_back(plan, entry);
    return 0;
}
