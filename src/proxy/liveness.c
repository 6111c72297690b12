/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/liveness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/cursor.h"

enum {
    LIVENESS_PATH_BYTES = 32,
    LIVENESS_STAT_BYTES = 1024,
    LIVENESS_FIELDS_BEFORE = 19, /* between the name's ')' and the start time: fields 3 to 21 */
};

uint64_t liveness_own_namespace(void)
{
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 ? (uint64_t)info.st_ino : 0;
}

uint64_t liveness_start_ticks(pid_t pid)
{
    char path[LIVENESS_PATH_BYTES];
    char text[LIVENESS_STAT_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text) : -1;
    const char *name_end = got > 0 ? memrchr(text, ')', (size_t)got) : NULL; /* the name may hold anything */
    if (name_end == NULL)
        return 0;
    struct cursor fields = {.at = name_end + 1, .end = text + got};
    struct cursor field;
    for (int i = 0; i < LIVENESS_FIELDS_BEFORE; i++) {
        if (!cursor_word(&fields, &field))
            return 0;
    }
    uint64_t ticks;
    return cursor_u64(&fields, &ticks) ? ticks : 0;
}

struct liveness liveness_of(pid_t pid, uint64_t start_ticks, bool has_pidfd)
{
    struct liveness liveness = {.state = LIVENESS_UNKNOWN, .pidfd = -1, .pid = pid, .start_ticks = start_ticks};
    if (pid <= 0)
        return liveness;
    liveness.state = LIVENESS_BY_PROC;
    int pidfd = has_pidfd ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    bool is_gone = has_pidfd && pidfd < 0 && errno == ESRCH;
    /* Looked up after the descriptor was opened: if it is the process of then, the descriptor is of that one. */
    if (is_gone || liveness_start_ticks(pid) != start_ticks) {
        liveness.state = LIVENESS_ENDED;
        if (pidfd >= 0)
            close(pidfd);
        return liveness;
    }
    if (pidfd >= 0) {
        liveness.state = LIVENESS_BY_PIDFD;
        liveness.pidfd = pidfd;
    }
    return liveness;
}

bool liveness_has_ended(struct liveness *liveness)
{
    bool has_ended = false;
    switch (liveness->state) {
    case LIVENESS_ENDED:
        return true;
    case LIVENESS_UNKNOWN:
        return false;
    case LIVENESS_BY_PROC:
        has_ended = liveness_start_ticks(liveness->pid) != liveness->start_ticks;
        break;
    case LIVENESS_BY_PIDFD: {
        struct pollfd question = {.fd = liveness->pidfd, .events = POLLIN};
        has_ended = poll(&question, 1, 0) > 0;
        break;
    }
    }
    if (has_ended)
        liveness_fini(liveness);
    return has_ended;
}

void liveness_fini(struct liveness *liveness)
{
    if (liveness->pidfd >= 0)
        close(liveness->pidfd);
    liveness->pidfd = -1;
    liveness->state = LIVENESS_ENDED;
}
