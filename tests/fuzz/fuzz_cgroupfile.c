/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/cgroupfile.h"

#include "ticks.h"

/* One text after the other into the same values, each as the file that its first byte chooses. */
static void cgroupfile_tick(const char *text, size_t length, void *context)
{
    struct cgroupfile_values *values = context;
    if (length == 0)
        return;
    struct cgroupfile_values before = *values;
    cgroupfile_parse(&cgroupfiles[(unsigned char)text[0] % cgroupfiles_count], text + 1, length - 1, values);
    for (size_t i = 0; i < CGROUP_COLUMNS; i++) {
        assert(!before.is_known[i] || (values->is_known[i] && values->numbers[i] == before.numbers[i]));
        if (values->is_known[i] && cgroupfile_columns[i].kind == SAMPLE_INTEGER)
            assert(values->numbers[i] <= INT64_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cgroupfile_values values = {0};
    ticks_run(data, size, cgroupfile_tick, &values);
    return 0;
}
