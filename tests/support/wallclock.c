/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wallclock: a wall clock of a process's own, for tests. Preloaded, it adds the number of milliseconds that stands in
 * the file $WALLCLOCK_FILE to CLOCK_REALTIME, each time it is asked. All other clocks, and all waiting, are the
 * kernel's: libfaketime, which can do the same, breaks pthread_cond_timedwait() on the way.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WALLCLOCK_TEXT_BYTES = 32 };

static long wallclock_offset_ms(void)
{
    const char *path = getenv("WALLCLOCK_FILE");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return 0;
    char text[WALLCLOCK_TEXT_BYTES] = "";
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    return got > 0 ? strtol(text, NULL, 10) : 0;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's names are reserved */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *now)
{
    int rc = (int)syscall(SYS_clock_gettime, id, now);
    if (rc != 0 || id != CLOCK_REALTIME)
        return rc;
    long offset_ms = wallclock_offset_ms();
    now->tv_sec += offset_ms / 1000;
    now->tv_nsec += offset_ms % 1000 * 1000000;
    if (now->tv_nsec >= 1000000000) {
        now->tv_nsec -= 1000000000;
        now->tv_sec++;
    } else if (now->tv_nsec < 0) {
        now->tv_nsec += 1000000000;
        now->tv_sec--;
    }
    return 0;
}
