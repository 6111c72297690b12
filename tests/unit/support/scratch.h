/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scratch: a directory of a test's own that goes with the test, and what tests put there.
 *
 * In tests.cmake:   cicada_unit_test(util file DEPENDS test_support)
 * In the test:      CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
 * A failure to make it ends the test. One thread.
 */
#ifndef SUPPORT_SCRATCH_H
#define SUPPORT_SCRATCH_H

#include <limits.h>
#include <stddef.h>

struct scratch {
    char path[PATH_MAX]; /* empty, mode 0700, under TMPDIR or /tmp */
};

struct scratch scratch_new(void);

/*
 * Removes the directory and all below it, whatever its modes; doesn't cross into other file systems. A test that fails
 * jumps over this; the directory then goes when the process ends.
 */
void scratch_cleanup(struct scratch *scratch);

/* "<scratch>/<name>", in a buffer of the caller's of PATH_MAX bytes; returns it. */
char *scratch_path(const struct scratch *scratch, const char *name, char out_path[PATH_MAX]);

/* A file of the scratch directory with that text. */
void scratch_write(const struct scratch *scratch, const char *name, const void *bytes, size_t length);

/* How many entries the directory has. */
size_t scratch_entries(const struct scratch *scratch);

#endif
