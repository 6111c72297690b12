/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * start: when a process started, which with its pid names it for ever (of one boot).
 */
#ifndef CLIENT_START_H
#define CLIENT_START_H

#include <stddef.h>
#include <stdint.h>

/* Field 22 of /proc/<process>/stat: ticks since boot; 0 when it can't be read. `process`: "self", or digits. */
uint64_t start_ticks(const char *process, size_t process_bytes);

#endif
