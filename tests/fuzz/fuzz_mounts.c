/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/mounts.h"

#include "ticks.h"

static void mounts_tick(const char *text, size_t length, void *context)
{
    (void)context;
    struct mounts mounts;
    if (mounts_parse(text, length, &mounts, NULL) < 0)
        return;
    assert(mounts.count <= MOUNTS_MAX);
    for (size_t i = 0; i < mounts.count; i++) {
        assert(mounts.list[i].point[0] == '/' && strlen(mounts.list[i].device) <= length);
        assert(mounts.list[i].type[0] != '\0');
    }
    mounts_fini(&mounts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ticks_run(data, size, mounts_tick, NULL);
    return 0;
}
