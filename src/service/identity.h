/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * identity: which process is meant, beyond its number: numbers are given out again, and after a boot from the start.
 *
 * A process is the one that was meant only if it was born at the same instant of the same boot. No signal is ever sent
 * to a process of which that isn't known. Also the text of a PID file. Any thread.
 */
#ifndef SERVICE_IDENTITY_H
#define SERVICE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/buf.h"
#include "util/error.h"

#define IDENTITY_BOOT_ID_BYTES 36

struct identity {
    pid_t pid;            /* 0: nobody */
    uint64_t start_ticks; /* field 22 of /proc/<pid>/stat; 0: unknown */
    char boot_id[IDENTITY_BOOT_ID_BYTES + 1];
};

/* The calling process. */
MUST_CHECK int identity_of_self(struct identity *out_identity, struct error *err);

/* Does the process live, and is it the one that is meant? A zombie counts as dead. */
bool identity_is_alive(const struct identity *identity);

/* Is there a process of that number whose program is called like ours? Enough to be careful, never to send a signal. */
bool identity_looks_alive(const struct identity *identity);

/*
 * Sends `signal_number` to the process that is meant and to no other, through a pidfd where the kernel has them.
 * -ESRCH when it isn't there (any more), -EPERM when it belongs to another user.
 */
MUST_CHECK int identity_signal(const struct identity *identity, int signal_number, struct error *err);

/*
 * The text of a PID file: the number alone on the first line, since scripts read it; then what tells whose it is:
 *   4711
 *   start_ticks=862
 *   boot_id=3c2d…
 */
void identity_print(const struct identity *identity, struct buf *out);

/* Parses it. Pure. -EINVAL (no number); a number alone is fine: start_ticks is 0 then. */
MUST_CHECK int identity_parse(const char *text, size_t length, struct identity *out_identity, struct error *err);

/* Field 22 of the text of /proc/<pid>/stat, and its state letter. Pure; false when it isn't such a text. */
bool identity_parse_stat(const char *text, size_t length, uint64_t *out_start_ticks, char *out_state);

#endif
