/* SPDX-License-Identifier: BSD-3-Clause */
#include "ftio/burst.h"

struct ftio_burst ftio_burst_find(const double *samples, size_t count, double energy)
{
    double total = 0;
    for (size_t i = 0; i < count; i++)
        total += samples[i] * samples[i];
    struct ftio_burst best = {0};
    double inside = 0;
    size_t first = 0;
    for (size_t last = 0; last < count && total > 0; last++) {
        inside += samples[last] * samples[last];
        for (; inside >= energy * total && first <= last; first++) {
            size_t width = last + 1 - first;
            if (best.width == 0 || width < best.width)
                best = (struct ftio_burst){.offset = first, .width = width};
            inside -= samples[first] * samples[first];
        }
    }
    return best;
}
