/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/cgrouppath.h"

#include "ticks.h"

static void cgrouppath_tick(const char *text, size_t length, void *context)
{
    (void)context;
    struct cursor all = cursor_of(text, length);
    struct cgrouppath_line line;
    while (cgrouppath_next_line(&all, &line)) {
        struct cursor job = cgrouppath_job(line.path);
        assert(line.controllers.at >= text && line.path.end <= text + length);
        assert(job.at == line.path.at && job.end <= line.path.end && *job.at == '/');
        struct cursor again = cgrouppath_job(job);
        assert(again.end == job.end);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ticks_run(data, size, cgrouppath_tick, NULL);
    return 0;
}
