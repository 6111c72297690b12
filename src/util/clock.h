/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock: the kernel's clocks in nanoseconds, and stamps that never run backwards.
 *
 * A stamp is the wall clock at the start plus the time elapsed on the boot clock since: nobody who sets the wall clock
 * can move a stamp back. clock_stamper_step() tells that the two have parted, so that it can be written down.
 * Any thread; a struct clock_stamper belongs to one.
 */
#ifndef UTIL_CLOCK_H
#define UTIL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_NS_PER_SECOND INT64_C(1000000000)
#define CLOCK_NS_PER_MS     INT64_C(1000000)
#define CLOCK_NS_PER_US     INT64_C(1000)

/* A wall clock this far from the stamps has been stepped; less is the kernel's slewing. */
#define CLOCK_STEP_MIN_NS CLOCK_NS_PER_SECOND

int64_t clock_mono_ns(void); /* stands still while the machine is suspended */
int64_t clock_boot_ns(void); /* goes on while the machine is suspended */
int64_t clock_wall_ns(void); /* since 1970; can be set */

/* CPU time of the calling thread and of the whole process. */
int64_t clock_thread_cpu_ns(void);
int64_t clock_process_cpu_ns(void);

struct clock_stamper {
    int64_t start_wall_ns;
    int64_t start_boot_ns;
    int64_t known_offset_ns; /* wall clock minus stamp, as last reported */
};

/* Stamps begin at `now_wall_ns`. Give it both clocks, read together. */
void clock_stamper_init(struct clock_stamper *stamper, int64_t now_wall_ns, int64_t now_boot_ns);

/* The stamp of an instant of the boot clock, in nanoseconds since 1970. */
static inline int64_t clock_stamper_at(const struct clock_stamper *stamper, int64_t boot_ns)
{
    return stamper->start_wall_ns + (boot_ns - stamper->start_boot_ns);
}

/*
 * True when the wall clock has been stepped by more than CLOCK_STEP_MIN_NS since the last report; then `*out_offset_ns`
 * is how far it is now ahead of the stamps, and the same offset is not reported again. Give it both clocks, read
 * together.
 */
bool clock_stamper_step(struct clock_stamper *stamper, int64_t now_wall_ns, int64_t now_boot_ns,
                        int64_t *out_offset_ns);

#endif
