/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal: the service's log lines, written by a thread of their own, since the log directory may lie on a file system
 * that stops to answer while the loop must not.
 *
 * Lines go into a pipe and from there to descriptor 2; a full pipe loses lines rather than time. The thread also
 * reopens the .out and .err files. The process has one; loop thread.
 */
#ifndef SERVICE_JOURNAL_H
#define SERVICE_JOURNAL_H

#include <stdint.h>

#include "util/error.h"
#include "util/log.h"

struct journal;

/*
 * From now on log_line() goes through the journal. `out_path` and `err_path` (borrowed for the journal's life) are what
 * a reopening opens as descriptors 1 and 2; NULL when there is nothing to reopen. -ENOMEM, -EAGAIN, -EMFILE.
 */
MUST_CHECK int journal_open(enum log_level level, const char *out_path, const char *err_path,
                            struct journal **out_journal, struct error *err);

/* Asks for a reopening; returns at once. */
void journal_reopen(struct journal *journal);

/* Writes what is left, for at most `timeout_ms`, and logs to descriptor 2 directly from then on. Accepts NULL. */
void journal_close(struct journal *journal, int64_t timeout_ms);

#endif
