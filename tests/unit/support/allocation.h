/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allocation: makes the n-th allocation fail, so that a test can try every one.
 *
 * Works by the linker's --wrap on malloc, calloc, realloc, strdup and strndup, and so on our own code alone: what a
 * shared library allocates for itself always succeeds. Works under the sanitizers. Any thread, but one test at a time.
 *
 * In tests.cmake:   cicada_unit_test(util config DEPENDS test_allocation)
 * In the test:
 *     bool has_failed;
 *     for (size_t n = 0; ; n++) {
 *         allocation_fail_at(n);
 *         int rc = thing_open(&thing, &err);
 *         if (!allocation_stop())
 *             break;                       (n is beyond the last allocation: rc is 0, as always)
 *         assert_int_equal(rc, -ENOMEM);   (and nothing leaks, as the sanitizer sees)
 *     }
 */
#ifndef SUPPORT_ALLOCATION_H
#define SUPPORT_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>

/* From now on the `n`-th allocation fails, the next being number 0, and only that one. */
void allocation_fail_at(size_t n);

/* All succeed again. Was there an n-th? */
bool allocation_stop(void);

#endif
