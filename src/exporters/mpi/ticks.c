/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporters/mpi/ticks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const uint64_t ticks_one = UINT64_C(1) << 32;
static const double ticks_ns_per_second = 1e9;

/* What can be the rate of a counter, per second: others are mistakes. */
static const double ticks_forced_least = 1e6;
static const double ticks_forced_most = 1e11;

/* A rate is good when both readings together are off by less than a millionth of the time between them. */
static const uint64_t ticks_good_share = 1000000;

/* Both clocks at one instant: within `spread` ticks, some 100 when nothing comes between. */
struct ticks_pair {
    uint64_t count;
    int64_t mono_ns;
    uint64_t spread;
};

enum { TICKS_TRIES = 5, TICKS_SPREAD_USUAL = 300 };

struct ticks ticks;

/* Does the kernel keep time by the counter? It checks for rate, drift and differences of CPUs all the time. */
static bool ticks_is_kernels_clock(void)
{
    char name[8] = "";
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, name, sizeof name - 1);
    (void)close(fd);
    return got == 4 && memcmp(name, "tsc\n", 4) == 0;
}

static bool ticks_is_invariant(void)
{
#if defined(__x86_64__)
    const unsigned leaf = 0x80000007; /* advanced power management; bit 8 of edx: AMD64 manual 3, E.4.6; Intel SDM 2A */
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(leaf, &eax, &ebx, &ecx, &edx) != 0 && (edx & 1u << 8) != 0;
#else
    return false;
#endif
}

/* The rate that a person gives, or 0. */
static uint64_t ticks_forced_rate(void)
{
    const char *text = secure_getenv("FORCED_TICKS");
    double per_second = 0;
    for (; text != NULL && *text >= '0' && *text <= '9'; text++)
        per_second = per_second * 10 + (*text - '0');
    if (text == NULL || *text != '\0' || per_second < ticks_forced_least || per_second > ticks_forced_most)
        return 0;
    return (uint64_t)(ticks_ns_per_second * (double)ticks_one / per_second);
}

/* The closest of some tries: between two readings the process may be interrupted for milliseconds. */
static struct ticks_pair ticks_read_pair(void)
{
    struct ticks_pair best = {.spread = UINT64_MAX};
    for (int i = 0; i < TICKS_TRIES && best.spread > TICKS_SPREAD_USUAL; i++) {
        uint64_t before = ticks_now();
        int64_t mono_ns = ticks_mono_ns();
        uint64_t spread = ticks_now() - before;
        if (spread < best.spread)
            best = (struct ticks_pair){.count = before + spread / 2, .mono_ns = mono_ns, .spread = spread};
    }
    return best;
}

void ticks_open(void)
{
    uint64_t forced = ticks_is_invariant() ? ticks_forced_rate() : 0;
    ticks.is_counter = forced != 0 || (ticks_is_invariant() && ticks_is_kernels_clock());
    struct ticks_pair opened = ticks_read_pair();
    ticks.opened_mono_ns = opened.mono_ns;
    ticks.opened_ticks = opened.count;
    ticks.opened_spread = opened.spread;
    __atomic_store_n(&ticks.ns_per_tick_32, ticks.is_counter ? forced : ticks_one, __ATOMIC_RELAXED);
}

uint64_t ticks_measure(void)
{
    struct ticks_pair now = ticks_read_pair();
    int64_t mono_ns = now.mono_ns - ticks.opened_mono_ns;
    uint64_t count = now.count - ticks.opened_ticks;
    if (mono_ns <= 0 || count == 0)
        return ticks_one;
    uint64_t rate = (uint64_t)((double)mono_ns / (double)count * (double)ticks_one);
    if ((now.spread + ticks.opened_spread) < count / ticks_good_share)
        __atomic_store_n(&ticks.ns_per_tick_32, rate, __ATOMIC_RELAXED);
    return rate;
}
