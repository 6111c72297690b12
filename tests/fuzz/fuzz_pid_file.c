/* SPDX-License-Identifier: BSD-3-Clause */
/* A PID file, which anybody may have written, and the kernel's line about a process, whose name is the process's. */
#include <assert.h>
#include <string.h>

#include "fuzz.h"
#include "service/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct identity identity = {0};
    if (identity_parse((const char *)data, size, &identity, NULL) == 0) {
        assert(identity.pid > 0 && strlen(identity.boot_id) <= IDENTITY_BOOT_ID_BYTES);
        struct buf text;
        struct identity again;
        buf_init(&text, 4096);
        identity_print(&identity, &text);
        int rc = identity_parse(text.data, text.length, &again, NULL);
        assert(rc == 0 && again.pid == identity.pid && again.start_ticks == identity.start_ticks);
        buf_fini(&text);
    }
    uint64_t start_ticks;
    char state;
    (void)identity_parse_stat((const char *)data, size, &start_ticks, &state);
    return 0;
}
