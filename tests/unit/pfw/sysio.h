/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sysio: makes the system calls that write a trace fail, stop short, or hang.
 *
 * Works by the linker's --wrap on pwrite, ftruncate and fdatasync. In tests.cmake: DEPENDS test_sysio. What is set here
 * may be set while another thread writes; everything goes through to the kernel again after sysio_reset().
 */
#ifndef PFW_SYSIO_H
#define PFW_SYSIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Forgets all plans; calls that hang go on. */
void sysio_reset(void);

/*
 * The `n`-th pwrite() from now on (0 is the next) writes only its first `bytes` and each one after it fails with
 * `number`, until sysio_reset(); but for what lies within the file, as on a full disk.
 */
void sysio_fail_write(size_t n, size_t bytes, int number);

/* The next ftruncate(), or each fdatasync(), fails with `number`. */
void sysio_fail_truncate(int number);
void sysio_fail_sync(int number);

/* Each pwrite() hangs before it does anything; sysio_wait_hanging() returns when one does. */
void sysio_hang_writes(void);
void sysio_wait_hanging(void);

/* Each pwrite() returns EINTR once before it works, and writes at most `bytes`. */
void sysio_interrupt_writes(size_t bytes);

/* Calls that came in since sysio_reset(). */
size_t sysio_writes(void);
size_t sysio_syncs(void);

#endif
