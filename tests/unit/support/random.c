/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/random.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/clock.h"

struct random random_new(const char *test_name)
{
    const char *wanted = getenv("CICADA_TEST_SEED");
    uint64_t seed = wanted != NULL ? strtoull(wanted, NULL, 10) : (uint64_t)clock_wall_ns();
    (void)printf("%s: CICADA_TEST_SEED=%llu\n", test_name, (unsigned long long)seed);
    (void)fflush(stdout); /* a crash must not take it along */
    return (struct random){.state = seed};
}

/* A Weyl sequence whose steps are mixed (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
 */
uint64_t random_u64(struct random *random)
{
    random->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = random->state;
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

size_t random_below(struct random *random, size_t limit)
{
    return (size_t)(random_u64(random) % limit);
}
