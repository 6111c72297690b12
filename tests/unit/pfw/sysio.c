/* SPDX-License-Identifier: BSD-3-Clause */
#include "sysio.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

enum sysio_kind { SYSIO_PASS, SYSIO_FAIL, SYSIO_HANG, SYSIO_INTERRUPT };

/* The one state of a test program: the wrapped calls have no other way to find it. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* guarded by lock */
    enum sysio_kind kind;
    size_t countdown; /* SYSIO_FAIL: writes that still work */
    size_t bytes;
    int number;
    bool is_failing; /* SYSIO_FAIL: the short one is past */
    bool is_interrupted;
    int truncate_number;
    int sync_number;
    size_t hanging;
    size_t writes;
    size_t syncs;
} sysio = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

ssize_t __real_pwrite(int fd, const void *bytes, size_t length, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t length, off_t offset);
int __real_ftruncate(int fd, off_t length);
int __wrap_ftruncate(int fd, off_t length);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

static void sysio_lock(void)
{
    (void)pthread_mutex_lock(&sysio.lock); /* a plain one: can't fail */
}

static void sysio_unlock(void)
{
    (void)pthread_mutex_unlock(&sysio.lock); /* the same */
}

static bool sysio_is_within(int fd, size_t length, off_t offset)
{
    struct stat state;
    return fstat(fd, &state) == 0 && offset + (off_t)length <= state.st_size;
}

/* With the lock held: how much of a write of `length` bytes may be done; -1 with errno: none. */
static ssize_t sysio_judge_write(size_t length, bool is_within)
{
    sysio.writes++;
    if (sysio.kind == SYSIO_FAIL && sysio.is_failing && !is_within) {
        errno = sysio.number;
        return -1;
    }
    if (sysio.kind == SYSIO_FAIL && !sysio.is_failing && sysio.countdown-- == 0) {
        sysio.is_failing = true;
        if (sysio.bytes == 0)
            errno = sysio.number;
        return sysio.bytes == 0 ? -1 : (ssize_t)(sysio.bytes < length ? sysio.bytes : length);
    }
    if (sysio.kind == SYSIO_INTERRUPT) {
        sysio.is_interrupted = !sysio.is_interrupted;
        errno = EINTR;
        return sysio.is_interrupted ? -1 : (ssize_t)(sysio.bytes < length ? sysio.bytes : length);
    }
    return (ssize_t)length;
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
    sysio_lock();
    while (sysio.kind == SYSIO_HANG) {
        sysio.hanging++;
        (void)pthread_cond_broadcast(&sysio.changed); /* can't fail */
        (void)pthread_cond_wait(&sysio.changed, &sysio.lock);
        sysio.hanging--;
    }
    ssize_t allowed = sysio_judge_write(length, sysio_is_within(fd, length, offset));
    sysio_unlock();
    return allowed < 0 ? allowed : __real_pwrite(fd, bytes, (size_t)allowed, offset);
}

int __wrap_ftruncate(int fd, off_t length)
{
    sysio_lock();
    int number = sysio.truncate_number;
    sysio.truncate_number = 0;
    sysio_unlock();
    if (number == 0)
        return __real_ftruncate(fd, length);
    errno = number;
    return -1;
}

int __wrap_fdatasync(int fd)
{
    sysio_lock();
    int number = sysio.sync_number;
    sysio.syncs++;
    sysio_unlock();
    if (number == 0)
        return __real_fdatasync(fd);
    errno = number;
    return -1;
}

void sysio_reset(void)
{
    sysio_lock();
    sysio.kind = SYSIO_PASS;
    sysio.truncate_number = 0;
    sysio.sync_number = 0;
    sysio.writes = 0;
    sysio.syncs = 0;
    (void)pthread_cond_broadcast(&sysio.changed); /* can't fail */
    sysio_unlock();
}

void sysio_fail_write(size_t n, size_t bytes, int number)
{
    sysio_lock();
    sysio.kind = SYSIO_FAIL;
    sysio.countdown = n;
    sysio.bytes = bytes;
    sysio.number = number;
    sysio.is_failing = false;
    sysio_unlock();
}

void sysio_fail_truncate(int number)
{
    sysio_lock();
    sysio.truncate_number = number;
    sysio_unlock();
}

void sysio_fail_sync(int number)
{
    sysio_lock();
    sysio.sync_number = number;
    sysio_unlock();
}

void sysio_hang_writes(void)
{
    sysio_lock();
    sysio.kind = SYSIO_HANG;
    sysio_unlock();
}

void sysio_wait_hanging(void)
{
    sysio_lock();
    while (sysio.hanging == 0)
        (void)pthread_cond_wait(&sysio.changed, &sysio.lock); /* can't fail */
    sysio_unlock();
}

void sysio_interrupt_writes(size_t bytes)
{
    sysio_lock();
    sysio.kind = SYSIO_INTERRUPT;
    sysio.bytes = bytes;
    sysio.is_interrupted = false;
    sysio_unlock();
}

size_t sysio_writes(void)
{
    sysio_lock();
    size_t writes = sysio.writes;
    sysio_unlock();
    return writes;
}

size_t sysio_syncs(void)
{
    sysio_lock();
    size_t syncs = sysio.syncs;
    sysio_unlock();
    return syncs;
}
