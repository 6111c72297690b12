/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * series: what a registry with many metrics costs, in memory and time.
 *
 *     series COUNT      prints "what|number" a line: bytes of texts and of all, ns a metric
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "metric/registry.h"
#include "util/clock.h"

enum { NAME_MAX_BYTES = 128 };

/* The most bytes that this process had in memory so far. */
static uint64_t resident_bytes(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage); /* can't fail for oneself */
    return (uint64_t)usage.ru_maxrss * 1024;
}

static size_t make_name(char name[NAME_MAX_BYTES], uint64_t i)
{
    return (size_t)snprintf(name, NAME_MAX_BYTES, "mpi___size___mpi_function_%" PRIu64 "{rank=\"%" PRIu64 "\"}",
                            i % 500, i / 500);
}

static double per_metric(int64_t start_ns, uint64_t count)
{
    return (double)(clock_mono_ns() - start_ns) / (double)count;
}

int main(int argc, char **argv)
{
    static const char doc[] = "bytes that it moved";
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    struct registry_budget budget = {.metrics_max = count};
    uint64_t before_bytes = resident_bytes();
    struct registry *reg = registry_new(count, &budget);
    char name[NAME_MAX_BYTES];
    uint64_t text_bytes = 0;
    int64_t start_ns = clock_mono_ns();
    for (uint64_t i = 0; i < count; i++) {
        size_t length = make_name(name, i);
        struct metric *metric = NULL;
        if (registry_find_or_add(reg, name, length, doc, METRIC_COUNTER, &metric, NULL) < 0)
            return EXIT_FAILURE;
        text_bytes += length + 1 + sizeof doc;
    }
    double add_ns = per_metric(start_ns, count);
    uint64_t all_bytes = resident_bytes() - before_bytes;

    start_ns = clock_mono_ns();
    registry_begin(reg);
    const struct metric_value one = metric_counter(1, 1);
    for (uint64_t i = 0; i < count; i++)
        (void)registry_add(registry_at(reg, i), &one);
    double tick_ns = per_metric(start_ns, count);

    start_ns = clock_mono_ns();
    if (registry_sorted(reg) == NULL)
        return EXIT_FAILURE;
    double sort_ns = per_metric(start_ns, count);

    (void)printf("text bytes|%" PRIu64 "\nbytes|%" PRIu64 "\nadd ns|%.1f\ntick ns|%.1f\nsort ns|%.1f\n", text_bytes,
                 all_bytes, add_ns, tick_ns, sort_ns);
    registry_free(reg);
    return EXIT_SUCCESS;
}
