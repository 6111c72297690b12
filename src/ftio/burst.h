/* SPDX-License-Identifier: BSD-3-Clause */
/* burst: the part of each period in which most of its energy lies. Pure; any thread. */
#ifndef FTIO_BURST_H
#define FTIO_BURST_H

#include "ftio/ftio.h"

struct ftio_burst {
    size_t offset; /* samples from the period's begin */
    size_t width;  /* samples; 0: the period has no energy */
};

/*
 * The shortest run of samples[count] that holds the share `energy`, in (0, 1], of their squares; of equally short ones
 * the first.
 */
struct ftio_burst ftio_burst_find(const double *samples, size_t count, double energy);

#endif
