/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liveness: does a process that entered itself in a segment still live?
 *
 * A process is a pid and the time of its start, so a pid that was given out again is another process. It is held by a
 * pidfd; when there are too many of those, its start is looked up in /proc each time. A process of another pid name
 * space whose pid here nobody told (the socket knows its peer's) is unknown: it is taken to live, and its segment's
 * lock says when it is over. One thread.
 */
#ifndef PROXY_LIVENESS_H
#define PROXY_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum liveness_state { LIVENESS_ENDED, LIVENESS_BY_PIDFD, LIVENESS_BY_PROC, LIVENESS_UNKNOWN };

struct liveness {
    enum liveness_state state;
    int pidfd; /* LIVENESS_BY_PIDFD */
    pid_t pid; /* as we see it */
    uint64_t start_ticks;
};

/* The inode of our own pid name space; 0 when unknown. */
uint64_t liveness_own_namespace(void);

/* Field 22 of /proc/<pid>/stat; 0 when there is no such process, or it can't be read. */
uint64_t liveness_start_ticks(pid_t pid);

/* `pid` as we see it; 0: unknown. `start_ticks` is what it entered. `has_pidfd`: false saves a descriptor. */
struct liveness liveness_of(pid_t pid, uint64_t start_ticks, bool has_pidfd);

/* Has it ended? From then on always; its pidfd is closed. */
bool liveness_has_ended(struct liveness *liveness);
void liveness_fini(struct liveness *liveness);

#endif
