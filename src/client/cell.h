/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cell: the additions to memory that programs make. Header only.
 */
#ifndef CLIENT_CELL_H
#define CLIENT_CELL_H

#include <stdint.h>

/*
 * Adds to a cell that only this thread writes. One instruction on x86-64, so that a signal handler which adds to the
 * same cell in between loses nothing; elsewhere the handler's addition can be lost.
 */
static inline void cell_add_whole(uint64_t *cell, uint64_t count)
{
#if defined(__x86_64__)
    __asm__ volatile("addq %1, %0" : "+m"(*cell) : "er"(count) : "cc");
#elif defined(__ARM_FEATURE_ATOMICS)
    __asm__ volatile("stadd %1, %0" : "+Q"(*cell) : "r"(count));
#else
    __atomic_store_n(cell, __atomic_load_n(cell, __ATOMIC_RELAXED) + count, __ATOMIC_RELAXED);
#endif
}

#endif
