/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon: turns a command into a process in the background, and tells the one who started it how that went.
 *
 * The starter waits at a pipe for the daemon's own word: "ready", or the reason why not. Nothing of the starter stays
 * open in the daemon, since mpirun and srun wait until nobody holds their pipes. Before the first thread.
 */
#ifndef SERVICE_DAEMON_H
#define SERVICE_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/error.h"

/* Who returns from daemon_spawn(). */
enum daemon_side { DAEMON_STARTER, DAEMON_CHILD };

/*
 * Forks twice, so that the daemon leads no session and has no terminal. Returns in both processes: `*out_side` says in
 * which. `*out_pipe` is the starter's end to read from, or the daemon's end to write to; each closes its own.
 */
MUST_CHECK int daemon_spawn(enum daemon_side *out_side, int *out_pipe, struct error *err);

/*
 * In the daemon: the word to the starter, and no other: ready, or not, and what the user should read. Takes `pipe_fd`:
 * its end is the end of the word. After bad news it stays open until the process ends: the starter shall return when
 * nothing is left. -EPIPE when the starter has given up waiting: then the daemon must not go on, since
 * the user was told that it failed.
 */
int daemon_report(int pipe_fd, bool is_ready, const char *text, struct error *err);

/*
 * In the starter: waits for the word. 0 when the daemon is ready, and what it wants to be shown is appended to `text`;
 * else its reason is the error: -ECANCELED when it said so itself, -ETIMEDOUT without an answer, -ECHILD when it died
 * without a word.
 */
MUST_CHECK int daemon_wait(int pipe_fd, int64_t timeout_ms, struct buf *text, struct error *err);

/* In the daemon: opens the two files (appending) as descriptors 1 and 2; those that are open there are closed. */
MUST_CHECK int daemon_redirect(const char *out_path, const char *err_path, struct error *err);

#endif
