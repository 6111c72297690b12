/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * starve: runs a collector once for each of its allocations, with that one failing. Its tests see to it that nothing
 * crashes or leaks (a sanitizer tells) and that the collector goes on afterwards. Needs DEPENDS test_allocation.
 */
#ifndef TESTS_UNIT_SAMPLE_STARVE_H
#define TESTS_UNIT_SAMPLE_STARVE_H

#include "drive.h"
#include "support/allocation.h"

/* Opening fails with -ENOMEM, or, where a device could not be described, as if it weren't there. */
static inline void starve_open(const struct collector_ops *ops, const struct sample_config *config)
{
    for (size_t n = 0;; n++) {
        struct collector *collector = NULL;
        struct error err = {0};
        allocation_fail_at(n);
        int rc = ops->open(config, &collector, &err);
        bool has_failed = allocation_stop();
        if (rc == 0)
            ops->close(collector);
        else
            assert_null(collector);
        if (!has_failed) {
            assert_true(n > 0);
            assert_int_equal(rc, 0);
            return;
        }
        if (rc != 0 && rc != -ENOMEM && rc != -ENODEV)
            fail_msg("%s: allocation %zu: %d, %s", ops->name, n, rc, err.text);
    }
}

/* A tick fails or lacks rows; the next one doesn't. */
static inline void starve_read(const struct collector_ops *ops, const struct sample_config *config, const char *row)
{
    bool has_failed = true;
    for (size_t n = 0; has_failed; n++) {
        struct collector *collector = drive_open(ops, config);
        for (int ticks = 0; ticks < 3 && has_failed; ticks++) {
            struct error err = {0};
            allocation_fail_at(n);
            int rc = ops->read(collector, clock_boot_ns(), &err);
            has_failed = allocation_stop();
            if (rc != 0 && rc != -ENOMEM)
                fail_msg("%s: allocation %zu: %d, %s", ops->name, n, rc, err.text);
        }
        (void)drive_until(ops, collector, clock_boot_ns(), row, true);
        ops->close(collector);
    }
}

#endif
