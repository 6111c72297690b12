/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of alarms, and the bodies that add and remove one. What is saved is loaded again. */
#include <assert.h>

#include "fuzz.h"
#include "proxy/alarms_text.h"

static const struct jobs_config fuzz_config = {
    .hostname = "host", .jobs_max = 4, .metrics_per_job_max = 50, .metrics_max = 100, .linger_ns = 1};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jobs *jobs = NULL;
    if (jobs_new(&fuzz_config, &jobs, NULL) < 0)
        return 0;
    const struct alarms_config config = {.jobs = jobs};
    struct alarms *alarms = alarms_new(&config);
    struct alarms *again = alarms_new(&config);
    assert(alarms != NULL && again != NULL);
    size_t bad;
    const char *text = (const char *)data;
    if (alarms_text_load(alarms, text, size, &bad, NULL) < 0)
        assert(alarms_count(alarms) == 0);
    if (alarms_text_add(alarms, text, size, NULL) == 0)
        assert(alarms_count(alarms) == 1);
    alarms_tick(alarms, 1, 1);
    struct buf saved;
    buf_init(&saved, ALARMS_TEXT_FILE_MAX_BYTES);
    alarms_text_save(alarms, &saved);
    if (buf_status(&saved, NULL) == 0)
        assert(alarms_text_load(again, saved.data, saved.length, &bad, NULL) == 0 && bad == 0 &&
               alarms_count(again) == alarms_count(alarms));
    if (alarms_text_remove(alarms, text, size, NULL) == 0)
        assert(alarms_count(alarms) < alarms_count(again));
    buf_fini(&saved);
    alarms_free(alarms);
    alarms_free(again);
    jobs_free(jobs);
    return 0;
}
