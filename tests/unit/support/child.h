/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * child: runs part of a test in a process of its own, where it may change limits, users and mounts.
 *
 * cmocka's asserts belong to the parent; the child's are CHILD_CHECK(). In tests.cmake: DEPENDS test_support.
 *
 *     static int body(void *context)
 *     {
 *         if (!child_enter_mounts())
 *             return CHILD_SKIP;
 *         CHILD_CHECK(thing() == 0);
 *         return 0;
 *     }
 *     ...
 *     child_run(body, &context);
 */
#ifndef SUPPORT_CHILD_H
#define SUPPORT_CHILD_H

#include <stdbool.h>
#include <stdio.h>

#define CHILD_SKIP 77

/* Tells where and what, and ends the body. Only within one. */
#define CHILD_CHECK(condition)                                                                                         \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "%s:%d: in the child: %s\n", __FILE__, __LINE__, #condition);                        \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Runs `body` in a fork. Fails the test when it returns neither 0 nor CHILD_SKIP or dies; skips on CHILD_SKIP. */
void child_run(int (*body)(void *context), void *context);

/* The process gets mounts of its own, as root or in a user name space. False when this machine allows neither. */
bool child_enter_mounts(void);

/* Mounts an empty tmpfs at `path`, mode 1777; `size` as mount(8) takes it. After child_enter_mounts(). */
bool child_mount_tmpfs(const char *path, const char *size);

/* From now on not root, so that modes hold for us. True as well when we weren't. */
bool child_leave_root(void);

#endif
