/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/cadence.h"

#include <stdlib.h>

#include "pfw/moment.h"

static const double cadence_ns_per_s = 1e9;

void pfw_cadence_fini(struct pfw_cadence *cadence)
{
    pfw_sketch_fini(&cadence->steps);
}

int pfw_cadence_step(struct pfw_cadence *cadence, int64_t step_ns, struct error *err)
{
    return step_ns > 0 ? pfw_sketch_add(&cadence->steps, (double)step_ns / cadence_ns_per_s, err) : 0;
}

static int64_t cadence_length(const struct pfw_silence *silence)
{
    return pfw_moment_elapsed_ns(silence->from_ns, silence->to_ns);
}

/* Keeps `silence` if it is among the longest. */
static void cadence_keep(struct pfw_cadence *cadence, const struct pfw_silence *silence)
{
    if (cadence->longest_count < PFW_CADENCE_GAPS_MAX) {
        cadence->longest[cadence->longest_count++] = *silence;
        if (cadence->longest_count < PFW_CADENCE_GAPS_MAX)
            return;
    } else if (cadence_length(silence) <= cadence_length(&cadence->longest[cadence->shortest])) {
        return;
    } else {
        cadence->longest[cadence->shortest] = *silence;
    }
    cadence->shortest = 0;
    for (size_t i = 1; i < cadence->longest_count; i++) {
        if (cadence_length(&cadence->longest[i]) < cadence_length(&cadence->longest[cadence->shortest]))
            cadence->shortest = i;
    }
}

void pfw_cadence_sample(struct pfw_cadence *cadence, int64_t at_ns)
{
    struct pfw_silence silence = {.from_ns = cadence->last_ns, .to_ns = at_ns};
    if (cadence->has_last && at_ns > cadence->last_ns)
        cadence_keep(cadence, &silence);
    if (!cadence->has_last || at_ns > cadence->last_ns)
        cadence->last_ns = at_ns;
    cadence->has_last = true;
}

void pfw_cadence_restart(struct pfw_cadence *cadence)
{
    cadence->has_last = false;
}

double pfw_cadence_interval_s(const struct pfw_cadence *cadence)
{
    return pfw_sketch_quantile(&cadence->steps, 0.5);
}

static int cadence_compare(const void *left, const void *right)
{
    const struct pfw_silence *a = left;
    const struct pfw_silence *b = right;
    return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

size_t pfw_cadence_gaps(const struct pfw_cadence *cadence, double interval_s,
                        struct pfw_silence out_gaps[PFW_CADENCE_GAPS_MAX])
{
    size_t count = 0;
    double longest_allowed_ns = interval_s * PFW_CADENCE_GAP_INTERVALS * cadence_ns_per_s;
    if (interval_s <= 0)
        return 0;
    for (size_t i = 0; i < cadence->longest_count; i++) {
        if ((double)cadence_length(&cadence->longest[i]) > longest_allowed_ns)
            out_gaps[count++] = cadence->longest[i];
    }
    qsort(out_gaps, count, sizeof *out_gaps, cadence_compare);
    return count;
}
