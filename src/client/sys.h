/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sys: the system calls of the slow path, made directly.
 *
 * The slow path may run in a forked child of a program with threads, in a signal handler, or inside somebody's malloc()
 * wrapper; another preloaded library may wrap the functions of libc. So nothing here goes through libc but syscall(),
 * no call is a cancellation point, and results are negative errnos. errno is changed: the entry points of the slow path
 * keep it.
 */
#ifndef CLIENT_SYS_H
#define CLIENT_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* syscall()'s result as the kernel gave it: a negative errno on failure. */
static inline long sys_result(long result)
{
    return result == -1 ? -errno : result;
}

/* A close-on-exec descriptor, or a negative errno. */
static inline int sys_open(int dir_fd, const char *path, int flags, unsigned mode)
{
    return (int)sys_result(syscall(SYS_openat, dir_fd, path, flags | O_CLOEXEC, mode));
}

/* Closes `fd`; a negative one is none. */
static inline void sys_close(int fd)
{
    if (fd >= 0)
        (void)syscall(SYS_close, fd);
}

/* Bytes read, 0 at the end, or a negative errno. */
static inline long sys_read(int fd, void *to, size_t length)
{
    return sys_result(syscall(SYS_read, fd, to, length));
}

/* fstat(); 0 or a negative errno. */
static inline int sys_stat_fd(int fd, struct stat *out_stat)
{
    /* The layout that the kernel fills in is libc's on all 64-bit machines. */
    return fstat(fd, out_stat) == 0 ? 0 : -errno;
}

/* Anonymous memory of our own, zeroed; NULL when there is none. */
static inline void *sys_memory(size_t length)
{
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* The calling thread's id, never libc's cached one: it must be right in every kind of child. */
static inline int sys_tid(void)
{
    return (int)syscall(SYS_gettid);
}

/* The process's id, with the same care. */
static inline int sys_pid(void)
{
    return (int)syscall(SYS_getpid);
}

/* False only when no thread `tid` of process `pid` exists any more. */
static inline bool sys_has_thread(int pid, int tid)
{
    return sys_result(syscall(SYS_tgkill, pid, tid, 0)) != -ESRCH;
}

/* Blocks all signals of this thread: a handler that counts must not meet a lock that its own thread holds. */
static inline void sys_block_signals(uint64_t *out_before)
{
    uint64_t all = ~UINT64_C(0);
    (void)syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, out_before, sizeof all);
}

static inline void sys_restore_signals(const uint64_t *before)
{
    (void)syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, before, NULL, sizeof *before);
}

#endif
