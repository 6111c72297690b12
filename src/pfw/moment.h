/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * moment: instants as people write and read them. Local time is that of TZ. Any thread.
 */
#ifndef PFW_MOMENT_H
#define PFW_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/error.h"

/* "2026-12-01 04:16:14.123 +0100", milliseconds rounded down. */
void pfw_moment_local(int64_t ns, struct buf *out);

/* "2026-12-01T03:16:14.123456789Z". */
void pfw_moment_utc(int64_t ns, struct buf *out);

/* A length of time with a unit that fits: "0.5 ms", "12.3 s", "4 min 5 s", "3 h 20 min", "2 d 3 h". */
void pfw_moment_duration(int64_t ns, struct buf *out);

/* From one instant to another; what 64 bits don't hold becomes the nearest that they do. */
static inline int64_t pfw_moment_elapsed_ns(int64_t from_ns, int64_t to_ns)
{
    int64_t elapsed;
    if (__builtin_sub_overflow(to_ns, from_ns, &elapsed))
        return to_ns < from_ns ? INT64_MIN : INT64_MAX;
    return elapsed;
}

struct pfw_moment {
    int64_t ns;
    bool is_relative; /* to the start of the trace, else since 1970 */
};

/*
 * Understands "+5s", "+1.5 ms", "+2min", "+1h", "+1d" (relative), "1796098782.5" (seconds since 1970),
 * "2026-12-01", "2026-12-01 04:16", "2026-12-01T04:16:14.5" (local), the same with "Z", "+01:00" or "+0100".
 * -EINVAL: `err` says what was expected.
 */
MUST_CHECK int pfw_moment_parse(const char *text, struct pfw_moment *out_moment, struct error *err);

#endif
