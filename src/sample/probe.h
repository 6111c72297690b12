/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe: questions to the kernel that may never return, asked on threads of their own.
 *
 * statvfs() of a mount whose server is dead, or a read of a device that doesn't answer, hangs its thread for good,
 * often where not even SIGKILL reaches it. A probe has keys (a mount, a device), each with one question. One thread
 * asks them in turn, once a tick; when it is held by a key for too long, it is left with that key, and another one goes
 * on with the rest: there are as many threads as stuck keys, plus one. When the question returns after all, its key is
 * well again and the surplus thread ends. Whoever reads takes the latest answer and never waits.
 *
 * A thread that is held in the kernel outlives the process's end and keeps alive whatever it has open: file locks,
 * traces. So the threads have a table of descriptors of their own, empty from 3 on. What asks can't use a descriptor
 * of its caller: it opens by path.
 *
 * A struct probe and its keys belong to one thread; the probing threads are its own business.
 */
#ifndef SAMPLE_PROBE_H
#define SAMPLE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/cleanup.h"
#include "util/error.h"

struct probe;
struct probe_key;

struct probe_kind {
    /*
     * Runs on a probing thread, never twice at once for one subject. Fills `answer` (zeroed) and returns 0, or a
     * negative errno. May hang. May not use descriptors from outside, locks, or memory but its two arguments: it may
     * still be running when its owner is gone.
     */
    int (*ask)(const void *subject, void *answer);

    /* Frees a subject when nobody uses it any more; on any thread. */
    void (*free_subject)(void *subject);

    /*
     * A key is asked again when this long has passed since it was asked, however often it ticks; 0: at every tick. What
     * is asked over a network is one of thousands of nodes asking.
     */
    int64_t rest_ns;
};

/* How many threads may be stuck; past it, keys wait for one to return. */
#define PROBE_THREADS_MAX 256

/* A mount or device that has not answered for this long is stuck. */
#define PROBE_STUCK_AFTER_NS INT64_C(1000000000)

/*
 * A probe without keys and threads. `kind` is borrowed for ever (static): a stuck thread may return to it after
 * probe_free(). A key is stuck when its question takes `stuck_after_ns`. -ENOMEM.
 */
MUST_CHECK int probe_new(const struct probe_kind *kind, int64_t stuck_after_ns, struct probe **out_probe,
                         struct error *err);

/* Frees the probe and its keys. Doesn't wait: what a thread still uses is freed when that thread returns. */
void probe_free(struct probe *probe);
DEFINE_CLEANUP(probe, probe_free);

/*
 * A new key, first asked at the next tick. Takes `subject` (freed with the key, or now on failure); an answer has
 * `answer_bytes`. `*out_key` is borrowed from the probe until probe_remove() or probe_free(). -ENOMEM.
 */
MUST_CHECK int probe_add(struct probe *probe, void *subject, size_t answer_bytes, struct probe_key **out_key,
                         struct error *err);
void probe_remove(struct probe_key *key);

/*
 * Asks every key whose last question has returned and that has had its rest, and sees which ones are stuck at
 * `now_boot_ns`. Fails with -EAGAIN when keys wait and there is no thread for them; the next tick tries again.
 */
MUST_CHECK int probe_tick(struct probe *probe, int64_t now_boot_ns, struct error *err);

enum probe_state {
    PROBE_NEW,      /* has never answered */
    PROBE_ANSWERED, /* the last question returned in time, or is still within its time */
    PROBE_STUCK,    /* the last question has not returned */
};

struct probe_result {
    enum probe_state state;
    int status;               /* of the latest answer: 0 or a negative errno; 0 while there is none */
    int64_t answered_boot_ns; /* when it came */
};

/* The latest answer, copied into `out_answer` (`answer_bytes`) when there is one and its status is 0. */
struct probe_result probe_latest(const struct probe_key *key, void *out_answer);

/* True once for each time that the key has become stuck or has come back since the last call; `*out_is_stuck` says
 * which. */
bool probe_has_turned(struct probe_key *key, bool *out_is_stuck);

/* How many threads this probe has now, and how many of them are stuck. */
struct probe_threads {
    size_t all;
    size_t stuck;
};
struct probe_threads probe_threads(struct probe *probe);

/*
 * For questions: reads the start of the small file `path` into `bytes`; returns how many there were, or a negative
 * errno.
 */
MUST_CHECK ssize_t probe_read_file(const char *path, char *bytes, size_t size);

#endif
