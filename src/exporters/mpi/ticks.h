/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ticks: the cheapest clock that is right for durations.
 *
 * That is the time stamp counter where the kernel itself keeps time by it: it is then synchronous over the CPUs and of
 * one rate. Elsewhere it is the monotonic clock. Nothing is waited for: the counter's rate is measured between
 * ticks_open() and the first conversions, and fixed when enough time lies between them to know it to a millionth.
 * The environment variable FORCED_TICKS gives the rate instead, in ticks per second. Any thread.
 */
#ifndef MPI_TICKS_H
#define MPI_TICKS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

__extension__ typedef unsigned __int128 ticks_product;

struct ticks {
    bool is_counter;         /* fixed by ticks_open() */
    uint64_t ns_per_tick_32; /* atomic: nanoseconds per tick, in 2^-32; 0: not known yet */
    uint64_t opened_ticks;
    int64_t opened_mono_ns;
    uint64_t opened_spread; /* ticks by which the two may be apart */
};

extern struct ticks ticks;

/* Chooses the clock; before any other call, once. */
void ticks_open(void);

/* The rate so far; fixes it when it is good. The slow path of ticks_to_ns(). */
uint64_t ticks_measure(void);

/* Nanoseconds of the monotonic clock. */
static inline int64_t ticks_mono_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* can't fail for this clock */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* An instant, for ticks_to_ns(). */
static inline uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(ticks.is_counter, 1))
        return __rdtsc();
#endif
    return (uint64_t)ticks_mono_ns();
}

/* The time between two instants; 0 when the later one is the earlier. */
static inline uint64_t ticks_to_ns(uint64_t start, uint64_t end)
{
    uint64_t rate = __atomic_load_n(&ticks.ns_per_tick_32, __ATOMIC_RELAXED);
    if (__builtin_expect(rate == 0, 0))
        rate = ticks_measure();
    return end > start ? (uint64_t)((ticks_product)(end - start) * rate >> 32) : 0;
}

#endif
