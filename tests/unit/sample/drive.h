/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drive: runs a collector in a test, failing the test when something fails.
 */
#ifndef TESTS_UNIT_SAMPLE_DRIVE_H
#define TESTS_UNIT_SAMPLE_DRIVE_H

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lookup.h"
#include "sample/collector.h"
#include "support/scratch.h"
#include "util/clock.h"

/* A test waits for an event at most this long; none takes a hundredth of it. */
enum { DRIVE_DEADLINE_MS = 20000 };

static inline struct collector *drive_open(const struct collector_ops *ops, const struct sample_config *config)
{
    struct collector *collector = NULL;
    struct error err = {0};
    if (ops->open(config, &collector, &err) < 0)
        fail_msg("%s: %s", ops->name, err.text);
    assert_non_null(collector);
    return collector;
}

/* Expects that this machine has nothing to read; returns why. Static until the next call. */
static inline const char *drive_lacks(const struct collector_ops *ops, const struct sample_config *config)
{
    static struct error err;
    struct collector *collector = NULL;
    assert_int_equal(ops->open(config, &collector, &err), -ENODEV);
    assert_null(collector);
    return err.text;
}

static inline const struct sample_table *drive_read(const struct collector_ops *ops, struct collector *collector,
                                                    int64_t now_boot_ns)
{
    struct error err = {0};
    if (ops->read(collector, now_boot_ns, &err) < 0)
        fail_msg("%s: %s", ops->name, err.text);
    return ops->table(collector);
}

/* Ticks at `now_boot_ns` until there is a row `name`, or none: what a probe asks is answered by a later tick. */
static inline const struct sample_row *drive_until(const struct collector_ops *ops, struct collector *collector,
                                                   int64_t now_boot_ns, const char *name, bool is_there)
{
    int64_t until_ns = clock_mono_ns() + DRIVE_DEADLINE_MS * CLOCK_NS_PER_MS;
    for (;;) {
        const struct sample_row *row = lookup_row(drive_read(ops, collector, now_boot_ns), name);
        if ((row != NULL) == is_there)
            return row;
        if (clock_mono_ns() > until_ns)
            fail_msg("%s: '%s' is %s", ops->name, name, is_there ? "missing" : "still there");
        (void)poll(NULL, 0, 1);
    }
}

/* Expects that the collector wants `text` said. */
static inline void drive_expect_notes(const struct collector_ops *ops, struct collector *collector, const char *text)
{
    CLEANUP(buf_cleanup) struct buf notes;
    buf_init(&notes, 1 << 16);
    ops->take_notes(collector, &notes);
    assert_string_equal(buf_string(&notes), text);
}

/* Writes a file of a tree in the scratch directory, with the directories above it. */
static inline void drive_write(const struct scratch *scratch, const char *name, const char *text)
{
    char path[PATH_MAX];
    (void)scratch_path(scratch, name, path);
    *strrchr(path, '/') = '\0';
    assert_int_equal(file_make_directories(path, 0700, NULL), 0);
    scratch_write(scratch, name, text, strlen(text));
}

/* Copies a recorded tree, links as links, to <scratch>/<name>. */
static inline void drive_copy(const struct scratch *scratch, const char *tree, const char *name)
{
    char command[2 * PATH_MAX];
    (void)snprintf(command, sizeof command, "cp -R --no-dereference '%s' '%s/%s'", tree, scratch->path, name);
    assert_int_equal(system(command), 0);
}

#endif
