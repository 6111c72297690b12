/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * floor: what no sampler of cpu, memory, disk and network can be below: wakes up every second, reads the four files of
 * /proc that hold them, and does nothing with what it reads. Runs until it is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FLOOR_FILES = 4, FLOOR_TEXT_BYTES = 65536 };

static const char *const floor_paths[FLOOR_FILES] = {"/proc/stat", "/proc/meminfo", "/proc/diskstats", "/proc/net/dev"};

int main(void)
{
    static char text[FLOOR_TEXT_BYTES];
    int fds[FLOOR_FILES];
    for (int i = 0; i < FLOOR_FILES; i++) {
        fds[i] = open(floor_paths[i], O_RDONLY | O_CLOEXEC);
        if (fds[i] < 0) {
            (void)fprintf(stderr, "bench_floor: opening '%s': %s\n", floor_paths[i], strerror(errno));
            return 1;
        }
    }
    struct timespec due;
    (void)clock_gettime(CLOCK_MONOTONIC, &due); /* can't fail for a clock that exists */
    for (;;) {
        due.tv_sec++;
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
            ;
        for (int i = 0; i < FLOOR_FILES; i++) {
            if (pread(fds[i], text, sizeof text, 0) < 0) {
                (void)fprintf(stderr, "bench_floor: reading '%s': %s\n", floor_paths[i], strerror(errno));
                return 1;
            }
        }
    }
}
