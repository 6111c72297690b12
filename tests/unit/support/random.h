/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * random: random numbers of a test that can be had again.
 *
 * The seed is printed, and taken from CICADA_TEST_SEED when that is set. In tests.cmake: DEPENDS test_support.
 * One thread.
 */
#ifndef SUPPORT_RANDOM_H
#define SUPPORT_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

/* Chooses a seed and prints it under the name of the test. */
struct random random_new(const char *test_name);

uint64_t random_u64(struct random *random);

/* 0 to `limit` - 1. */
size_t random_below(struct random *random, size_t limit);

#endif
