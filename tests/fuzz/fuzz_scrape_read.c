/* SPDX-License-Identifier: BSD-3-Clause */
/* What a target answers, as an exporter or as a proxy, counted twice. The first byte's lowest bits choose the kind. */
#include <assert.h>
#include <string.h>

#include "fuzz.h"
#include "proxy/scrape_counts.h"
#include "proxy/scrape_read.h"

enum { NOW_US = 1000000 };

static void count(struct scrape_counts *counts, const struct scrape_answer *answer, const struct scrape_group *group)
{
    assert(scrape_counts_enter(counts, &group->description, 1, NULL) == 0);
    scrape_counts_begin(counts);
    for (size_t i = group->first; i < group->first + group->count; i++) {
        const struct scrape_value *value = &answer->values[i];
        assert(value->name_at + value->name_bytes < answer->texts.length && value->doc_at < answer->texts.length);
        scrape_counts_set(counts, answer->texts.data + value->name_at, value->name_bytes,
                          answer->texts.data + value->doc_at, &value->value);
    }
    scrape_counts_finish(counts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct scrape_answer *answer = NULL;
    const char *text = (const char *)data + 1;
    int rc = (data[0] & 2) != 0 ? scrape_read_proxy(text, size - 1, NOW_US, &answer, NULL)
                                : scrape_read_exporter(text, size - 1, (data[0] & 1) != 0, NOW_US, &answer, NULL);
    struct jobs *jobs = NULL;
    const struct jobs_config config = {
        .hostname = "host", .jobs_max = 4, .metrics_per_job_max = 50, .metrics_max = 100, .linger_ns = 1};
    if (rc < 0 || jobs_new(&config, &jobs, NULL) < 0)
        return 0;
    assert(answer->values_count <= SCRAPE_READ_VALUES_MAX && answer->groups_count <= SCRAPE_READ_GROUPS_MAX);
    for (size_t i = 0; i < answer->groups_count; i++) {
        const struct scrape_group *group = &answer->groups[i];
        struct scrape_counts *counts = scrape_counts_new(jobs, group->kind);
        count(counts, answer, group);
        scrape_counts_leave(counts, 1, 1);
        count(counts, answer, group);
        scrape_counts_free(counts);
    }
    jobs_free(jobs);
    scrape_read_free(answer);
    return 0;
}
