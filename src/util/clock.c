/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/clock.h"

#include <time.h>

static int64_t clock_read_ns(clockid_t id)
{
    struct timespec now;
    /* Fails only for a clock that the kernel doesn't know; all of ours are older than any kernel that we run on. */
    (void)clock_gettime(id, &now);
    return (int64_t)now.tv_sec * CLOCK_NS_PER_SECOND + now.tv_nsec;
}

int64_t clock_mono_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

int64_t clock_boot_ns(void)
{
    return clock_read_ns(CLOCK_BOOTTIME);
}

int64_t clock_wall_ns(void)
{
    return clock_read_ns(CLOCK_REALTIME);
}

int64_t clock_thread_cpu_ns(void)
{
    return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

int64_t clock_process_cpu_ns(void)
{
    return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void clock_stamper_init(struct clock_stamper *stamper, int64_t now_wall_ns, int64_t now_boot_ns)
{
    *stamper = (struct clock_stamper){.start_wall_ns = now_wall_ns, .start_boot_ns = now_boot_ns};
}

bool clock_stamper_step(struct clock_stamper *stamper, int64_t now_wall_ns, int64_t now_boot_ns, int64_t *out_offset_ns)
{
    int64_t offset_ns = now_wall_ns - clock_stamper_at(stamper, now_boot_ns);
    int64_t moved_ns = offset_ns - stamper->known_offset_ns;
    if (moved_ns >= -CLOCK_STEP_MIN_NS && moved_ns <= CLOCK_STEP_MIN_NS)
        return false;
    stamper->known_offset_ns = offset_ns;
    *out_offset_ns = offset_ns;
    return true;
}
