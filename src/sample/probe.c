/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/probe.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/num.h"

enum {
    PROBE_FIRST_DESCRIPTOR = 3,     /* 0 to 2 stay: an assertion that fails must be able to say so */
    PROBE_STACK_BYTES = 256 * 1024, /* address space; what is touched is a few pages */
};

enum probe_phase {
    PROBE_IDLE,
    PROBE_WAITING, /* in the queue */
    PROBE_RUNNING, /* a thread is in its question; `working` is that thread's */
};

struct probe_key {
    struct probe *probe;
    void *subject;
    size_t answer_bytes;
    bool is_stuck_told; /* as the owner knows it from probe_has_turned() */
    char *working;      /* [answer_bytes], written by the thread that asks */
    char *answer;       /* [answer_bytes]; this and all below is guarded by probe->lock */
    enum probe_phase phase;
    bool is_stuck;   /* running, and given up by its thread's turn */
    bool is_removed; /* running, and nobody wants the answer: the thread frees it */
    bool is_asked;   /* at least once, at asked_boot_ns */
    int64_t asked_boot_ns;
    struct probe_result latest;
    struct probe_key *next_waiting;
    struct probe_key *next; /* in probe->keys */
};

struct probe {
    const struct probe_kind *kind;
    int64_t stuck_after_ns;
    pthread_mutex_t lock;
    pthread_cond_t is_needed;
    /* the rest is guarded by lock */
    size_t references; /* the owner, and each thread */
    bool is_closed;
    size_t threads;
    size_t stuck;           /* of those, how many are held by a stuck key */
    struct probe_key *keys; /* with those that are removed and still running */
    struct probe_key *waiting_first;
    struct probe_key *waiting_last;
};

static void probe_key_free(struct probe_key *key)
{
    key->probe->kind->free_subject(key->subject);
    free(key->working);
    free(key->answer);
    free(key);
}

/* Gives up one reference with the lock held; the last one frees the probe. */
static void probe_unlock_and_unref(struct probe *probe)
{
    assert(probe->references > 0);
    bool is_last = --probe->references == 0;
    (void)pthread_mutex_unlock(&probe->lock);
    if (!is_last)
        return;
    (void)pthread_cond_destroy(&probe->is_needed);
    (void)pthread_mutex_destroy(&probe->lock);
    free(probe);
}

static void probe_enqueue(struct probe *probe, struct probe_key *key)
{
    key->phase = PROBE_WAITING;
    key->next_waiting = NULL;
    if (probe->waiting_last != NULL)
        probe->waiting_last->next_waiting = key;
    else
        probe->waiting_first = key;
    probe->waiting_last = key;
}

static struct probe_key *probe_dequeue(struct probe *probe)
{
    struct probe_key *key = probe->waiting_first;
    probe->waiting_first = key->next_waiting;
    if (probe->waiting_first == NULL)
        probe->waiting_last = NULL;
    return key;
}

static void probe_unlink(struct probe *probe, const struct probe_key *key)
{
    struct probe_key **link = &probe->keys;
    while (*link != key)
        link = &(*link)->next;
    *link = key->next;
}

static void probe_unqueue(struct probe *probe, const struct probe_key *key)
{
    struct probe_key *before = NULL;
    for (struct probe_key *at = probe->waiting_first; at != key; at = at->next_waiting)
        before = at;
    if (before != NULL)
        before->next_waiting = key->next_waiting;
    else
        probe->waiting_first = key->next_waiting;
    if (probe->waiting_last == key)
        probe->waiting_last = before;
}

/* Closes what the process had open, in a table of descriptors that is already this thread's own. */
static void probe_close_each(void)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/fd", syscall(SYS_gettid)); /* thread-self came with 3.17 */
    CLEANUP(dir_cleanup) DIR *dir = opendir(path);
    if (dir == NULL)
        return;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        int fd = 0;
        for (const char *at = entry->d_name; *at >= '0' && *at <= '9'; at++)
            fd = fd * 10 + (*at - '0');
        if (fd >= PROBE_FIRST_DESCRIPTOR && fd != dirfd(dir))
            (void)close(fd); /* nothing was written through it, so nothing can be lost */
    }
}

/* See the top of the header. Where the kernel refuses, the thread shares the process's descriptors as any other. */
static void probe_leave_descriptors(void)
{
#ifdef SYS_close_range
    enum { PROBE_CLOSE_RANGE_UNSHARE = 2 }; /* older headers know the call's number and not its flag */
    if (syscall(SYS_close_range, PROBE_FIRST_DESCRIPTOR, ~0U, PROBE_CLOSE_RANGE_UNSHARE) == 0)
        return;
#endif
    if (unshare(CLONE_FILES) == 0) /* closing without it would close them for all */
        probe_close_each();
}

/* Asks `key` with the lock given up meanwhile. */
static void probe_serve(struct probe *probe, struct probe_key *key)
{
    key->phase = PROBE_RUNNING;
    key->is_asked = true;
    key->asked_boot_ns = clock_boot_ns();
    (void)pthread_mutex_unlock(&probe->lock);

    memset(key->working, 0, key->answer_bytes);
    int status = probe->kind->ask(key->subject, key->working);

    (void)pthread_mutex_lock(&probe->lock);
    key->phase = PROBE_IDLE;
    if (key->is_stuck) {
        key->is_stuck = false;
        probe->stuck--;
    }
    if (key->is_removed) {
        probe_unlink(probe, key);
        (void)pthread_mutex_unlock(&probe->lock);
        probe_key_free(key);
        (void)pthread_mutex_lock(&probe->lock);
        return;
    }
    char *answer = key->answer;
    key->answer = key->working;
    key->working = answer;
    key->latest = (struct probe_result){
        .state = PROBE_ANSWERED,
        .status = status,
        .answered_boot_ns = clock_boot_ns(),
    };
}

static void *probe_thread(void *argument)
{
    struct probe *probe = argument;
    (void)pthread_setname_np(pthread_self(), "cicada-probe");
    probe_leave_descriptors();

    (void)pthread_mutex_lock(&probe->lock);
    for (;;) {
        if (probe->is_closed)
            break;
        if (probe->waiting_first != NULL)
            probe_serve(probe, probe_dequeue(probe));
        else if (probe->threads - probe->stuck > 1)
            break; /* its key was stuck and is back, and another thread had taken over */
        else
            (void)pthread_cond_wait(&probe->is_needed, &probe->lock);
    }
    probe->threads--;
    probe_unlock_and_unref(probe);
    return NULL;
}

/* With the lock held. */
static int probe_start_thread(struct probe *probe)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return -ENOMEM;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, PROBE_STACK_BYTES);

    /* A signal must reach a thread that can handle it, so this one is born with all of them blocked. */
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int rc = pthread_create(&thread, &attributes, probe_thread, probe);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (rc != 0)
        return -rc;
    probe->threads++;
    probe->references++;
    return 0;
}

/*
 * Sees to it that somebody serves the queue, with the lock held. As many threads are started as are stuck already: a
 * server that dies takes many mounts with it, and so they are found in a few ticks instead of one a tick.
 */
static int probe_start_threads(struct probe *probe)
{
    if (probe->waiting_first == NULL || probe->threads > probe->stuck) {
        (void)pthread_cond_signal(&probe->is_needed);
        return 0;
    }
    size_t wanted = probe->stuck > 0 ? probe->stuck : 1;
    size_t waiting = 0;
    for (const struct probe_key *key = probe->waiting_first; key != NULL; key = key->next_waiting)
        waiting++;
    wanted = (size_t)num_min_u64(wanted, waiting);
    wanted = (size_t)num_min_u64(wanted, PROBE_THREADS_MAX - probe->threads);
    int rc = wanted > 0 ? 0 : -EAGAIN;
    for (size_t started = 0; started < wanted && rc == 0; started++) {
        rc = probe_start_thread(probe);
        if (rc < 0 && started > 0)
            rc = 0; /* one is enough to go on */
    }
    return rc;
}

int probe_new(const struct probe_kind *kind, int64_t stuck_after_ns, struct probe **out_probe, struct error *err)
{
    struct probe *probe = malloc(sizeof *probe);
    if (probe == NULL)
        return error_set(err, -ENOMEM, "no memory for a probe");
    *probe = (struct probe){.kind = kind, .stuck_after_ns = stuck_after_ns, .references = 1};
    /* With default attributes neither allocates nor fails (glibc, musl). */
    (void)pthread_mutex_init(&probe->lock, NULL);
    (void)pthread_cond_init(&probe->is_needed, NULL);
    *out_probe = probe;
    return 0;
}

void probe_free(struct probe *probe)
{
    if (probe == NULL)
        return;
    (void)pthread_mutex_lock(&probe->lock);
    probe->is_closed = true;
    probe->waiting_first = probe->waiting_last = NULL;
    struct probe_key *unused = NULL;
    for (struct probe_key **link = &probe->keys; *link != NULL;) {
        struct probe_key *key = *link;
        key->is_removed = true;
        if (key->phase == PROBE_RUNNING) {
            link = &key->next;
            continue;
        }
        *link = key->next;
        key->next = unused;
        unused = key;
    }
    (void)pthread_cond_broadcast(&probe->is_needed);
    (void)pthread_mutex_unlock(&probe->lock);

    struct probe_key *next;
    for (struct probe_key *key = unused; key != NULL; key = next) {
        next = key->next;
        probe_key_free(key);
    }
    (void)pthread_mutex_lock(&probe->lock);
    probe_unlock_and_unref(probe);
}

int probe_add(struct probe *probe, void *subject, size_t answer_bytes, struct probe_key **out_key, struct error *err)
{
    struct probe_key *key = malloc(sizeof *key);
    if (key == NULL) {
        probe->kind->free_subject(subject);
        return error_set(err, -ENOMEM, "no memory for a probe's key");
    }
    *key = (struct probe_key){
        .probe = probe,
        .subject = subject,
        .answer_bytes = answer_bytes,
        .working = malloc(answer_bytes),
        .answer = malloc(answer_bytes),
    };
    if (key->working == NULL || key->answer == NULL) {
        probe_key_free(key);
        return error_set(err, -ENOMEM, "no memory for a probe's answers of %zu bytes", answer_bytes);
    }
    (void)pthread_mutex_lock(&probe->lock);
    key->next = probe->keys;
    probe->keys = key;
    (void)pthread_mutex_unlock(&probe->lock);
    *out_key = key;
    return 0;
}

void probe_remove(struct probe_key *key)
{
    struct probe *probe = key->probe;
    (void)pthread_mutex_lock(&probe->lock);
    bool is_ours = key->phase != PROBE_RUNNING;
    key->is_removed = true;
    if (key->phase == PROBE_WAITING)
        probe_unqueue(probe, key);
    if (is_ours)
        probe_unlink(probe, key);
    (void)pthread_mutex_unlock(&probe->lock);
    if (is_ours)
        probe_key_free(key);
}

/* Is it too early to ask again? A time before the last question is of a test that has its own clock. */
static bool probe_rests(const struct probe_key *key, int64_t now_boot_ns)
{
    int64_t since_ns = now_boot_ns - key->asked_boot_ns;
    return key->is_asked && since_ns >= 0 && since_ns < key->probe->kind->rest_ns;
}

int probe_tick(struct probe *probe, int64_t now_boot_ns, struct error *err)
{
    (void)pthread_mutex_lock(&probe->lock);
    for (struct probe_key *key = probe->keys; key != NULL; key = key->next) {
        if (key->phase == PROBE_IDLE) {
            if (!probe_rests(key, now_boot_ns))
                probe_enqueue(probe, key);
        } else if (key->phase == PROBE_RUNNING && !key->is_stuck &&
                   now_boot_ns - key->asked_boot_ns >= probe->stuck_after_ns) {
            key->is_stuck = true;
            probe->stuck++;
        }
    }
    int rc = probe_start_threads(probe);
    size_t threads = probe->threads;
    (void)pthread_mutex_unlock(&probe->lock);
    if (rc < 0) {
        errno = -rc;
        (void)error_errno(err, "starting a probing thread beside %zu others", threads);
        return -EAGAIN;
    }
    return 0;
}

struct probe_result probe_latest(const struct probe_key *key, void *out_answer)
{
    struct probe *probe = key->probe;
    (void)pthread_mutex_lock(&probe->lock);
    struct probe_result result = key->latest;
    if (key->is_stuck)
        result.state = PROBE_STUCK;
    if (result.state == PROBE_ANSWERED && result.status == 0)
        memcpy(out_answer, key->answer, key->answer_bytes);
    (void)pthread_mutex_unlock(&probe->lock);
    return result;
}

bool probe_has_turned(struct probe_key *key, bool *out_is_stuck)
{
    (void)pthread_mutex_lock(&key->probe->lock);
    bool is_stuck = key->is_stuck;
    (void)pthread_mutex_unlock(&key->probe->lock);
    if (is_stuck == key->is_stuck_told)
        return false;
    key->is_stuck_told = is_stuck;
    *out_is_stuck = is_stuck;
    return true;
}

struct probe_threads probe_threads(struct probe *probe)
{
    (void)pthread_mutex_lock(&probe->lock);
    struct probe_threads threads = {.all = probe->threads, .stuck = probe->stuck};
    (void)pthread_mutex_unlock(&probe->lock);
    return threads;
}

ssize_t probe_read_file(const char *path, char *bytes, size_t size)
{
    /*
     * System calls instead of libc's functions: thread sanitizer follows those and takes a number for the same
     * descriptor in all threads, which it isn't here.
     */
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t got = syscall(SYS_read, fd, bytes, size);
    int read_errno = errno;
    (void)syscall(SYS_close, fd);
    return got >= 0 ? got : -read_errno;
}
