/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread reads when it is asked, until the end of the file or until FOLLOWER_READY_BYTES of events wait to be
 * taken, and then sleeps. It works on a buffer of its own, and hands it over under the lock, which nobody holds while
 * he reads.
 */
#include "service/follower.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"

enum {
    FOLLOWER_CHUNK_BYTES = 65536,
    FOLLOWER_LINE_MAX_BYTES = 2 * OMNISTAT_LINE_MAX_BYTES,
    FOLLOWER_READY_BYTES = 8 << 20,       /* of events that wait to be taken: then no more is read */
    FOLLOWER_EVENTS_MAX_BYTES = 64 << 20, /* that one piece of the file may become */
    FOLLOWER_STACK_BYTES = 512 * 1024,
};

struct follower {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_cond_t settled;

    /* guarded by lock */
    struct buf ready; /* events that wait to be taken */
    uint64_t ready_events;
    uint64_t asked;    /* number of the last request to read */
    uint64_t answered; /* the last request that was worked on */
    bool is_at_end;    /* that one reached the end of the file */
    bool is_closing;
    bool is_abandoned; /* the user has gone: the thread frees all of it */

    /* the thread's own */
    char *path;
    struct omnistat *omnistat;
    struct buf text;  /* what was read and is not yet a whole line */
    struct buf lines; /* events on their way into `ready` */
    uint64_t events;
    struct stat file; /* which file it is; st_ino 0: none yet */
    off_t offset;
    bool is_refused;                 /* its header makes no sense: said, and not read on */
    char said[ERROR_TEXT_MAX_BYTES]; /* the last trouble that was said */
};

static void follower_free(struct follower *follower)
{
    if (follower == NULL)
        return;
    omnistat_free(follower->omnistat);
    free(follower->path);
    buf_fini(&follower->ready);
    buf_fini(&follower->text);
    buf_fini(&follower->lines);
    (void)pthread_mutex_destroy(&follower->lock); /* nobody else knows them any more */
    (void)pthread_cond_destroy(&follower->wake);
    (void)pthread_cond_destroy(&follower->settled);
    free(follower);
}

static void follower_cleanup(struct follower **follower)
{
    follower_free(*follower);
}

static void follower_lock(struct follower *follower)
{
    int rc = pthread_mutex_lock(&follower->lock);
    assert(rc == 0);
}

static void follower_unlock(struct follower *follower)
{
    int rc = pthread_mutex_unlock(&follower->lock);
    assert(rc == 0);
}

static bool follower_is_abandoned(struct follower *follower)
{
    follower_lock(follower);
    bool is_abandoned = follower->is_abandoned;
    follower_unlock(follower);
    return is_abandoned;
}

/* Says a trouble once, until it is another one; "" means that there is none. */
static void follower_say(struct follower *follower, const char *trouble)
{
    if (strcmp(follower->said, trouble) == 0)
        return;
    (void)snprintf(follower->said, sizeof follower->said, "%s", trouble); /* cut when too long */
    if (trouble[0] != '\0')
        log_error("omnistat: '%s': %s", follower->path, trouble);
}

static void follower_begin_anew(struct follower *follower, const struct stat *file)
{
    follower->file = *file;
    follower->offset = 0;
    follower->is_refused = false;
    buf_reset(&follower->text);
    omnistat_restart(follower->omnistat);
}

/* Opens the file where it was left, or at its beginning when it is another one or has shrunk. -1: not now. */
static int follower_open_file(struct follower *follower)
{
    int fd = open(follower->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would hold us */
    struct stat file;
    if (follower_is_abandoned(follower)) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (fd < 0 || fstat(fd, &file) < 0 || !S_ISREG(file.st_mode)) {
        struct error err = {0};
        if (fd < 0 && errno == ENOENT)
            follower->file.st_ino = 0; /* what comes next is another file, though it may get the same number */
        if (fd < 0)
            (void)error_errno(&err, "not read yet"); /* `err` is what matters */
        else
            (void)error_set(&err, -EINVAL, "is no regular file");
        follower_say(follower, err.text);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (file.st_ino != follower->file.st_ino || file.st_dev != follower->file.st_dev || file.st_size < follower->offset)
        follower_begin_anew(follower, &file);
    return fd;
}

/* Makes events of the whole lines that have been read. */
static void follower_parse(struct follower *follower)
{
    struct cursor text = cursor_of(follower->text.data, follower->text.length);
    const char *newline;
    while (!follower->is_refused && (newline = memchr(text.at, '\n', cursor_left(&text))) != NULL) {
        struct cursor line = {.at = text.at, .end = newline};
        text.at = newline + 1;
        struct error err = {0};
        int events = omnistat_line(follower->omnistat, line, &follower->lines, &err);
        if (events < 0) {
            follower_say(follower, err.text);
            follower->is_refused = true;
            break;
        }
        follower->events += (uint64_t)events;
    }
    size_t left = cursor_left(&text);
    if (left > 0)
        memmove(follower->text.data, text.at, left);
    buf_truncate(&follower->text, left);
}

/* Reads a piece. False at the end of the file, or when reading it fails. */
static bool follower_read_piece(struct follower *follower, int fd)
{
    char *to = buf_reserve(&follower->text, FOLLOWER_CHUNK_BYTES);
    if (to == NULL) {
        follower_say(follower, "a line of it is too long");
        follower->is_refused = true;
        return false;
    }
    ssize_t got = pread(fd, to, FOLLOWER_CHUNK_BYTES, follower->offset);
    if (got < 0) {
        struct error err = {0};
        (void)error_errno(&err, "reading it"); /* `err` is what matters */
        follower_say(follower, err.text);
    }
    if (got <= 0 || follower_is_abandoned(follower))
        return false;
    buf_commit(&follower->text, (size_t)got);
    follower->offset += got;
    follower_parse(follower);
    return !follower->is_refused;
}

/* Hands the events over; false when enough of them wait already, or nobody waits for them. */
static bool follower_hand_over(struct follower *follower)
{
    if (follower->lines.status != 0) {
        follower_say(follower, "a piece of it makes too many events");
        follower->is_refused = true;
    }
    follower_lock(follower);
    if (follower->lines.status == 0) {
        buf_bytes(&follower->ready, follower->lines.data, follower->lines.length);
        if (follower->ready.status == 0)
            follower->ready_events += follower->events;
    }
    bool is_wanted = follower->ready.length < FOLLOWER_READY_BYTES && !follower->is_abandoned;
    follower_unlock(follower);
    buf_reset(&follower->lines);
    follower->events = 0;
    return is_wanted;
}

/* True when the end of the file was reached, or there is none to be read. */
static bool follower_read(struct follower *follower)
{
    CLEANUP(fd_cleanup) int fd = follower_open_file(follower);
    if (fd < 0 || follower->is_refused)
        return true;
    bool is_wanted = true;
    bool is_more = true;
    while (is_wanted && is_more) {
        is_more = follower_read_piece(follower, fd);
        is_wanted = follower_hand_over(follower);
    }
    if (!is_more && !follower->is_refused)
        follower_say(follower, "");
    return !is_more;
}

static void *follower_run(void *context)
{
    struct follower *follower = context;
    for (;;) {
        follower_lock(follower);
        while (follower->asked == follower->answered && !follower->is_closing && !follower->is_abandoned)
            (void)pthread_cond_wait(&follower->wake, &follower->lock); /* fails only for what is no condition */
        uint64_t asked = follower->asked;
        bool is_over = follower->is_abandoned || (follower->is_closing && asked == follower->answered);
        bool is_abandoned = follower->is_abandoned;
        follower_unlock(follower);
        if (is_over) {
            if (is_abandoned)
                follower_free(follower);
            return NULL;
        }
        bool is_at_end = follower_read(follower);
        follower_lock(follower);
        follower->answered = asked;
        follower->is_at_end = is_at_end;
        (void)pthread_cond_signal(&follower->settled);
        follower_unlock(follower);
    }
}

static int follower_init_locks(struct follower *follower)
{
    pthread_condattr_t monotonic;
    int rc = pthread_mutex_init(&follower->lock, NULL);
    if (rc == 0)
        rc = pthread_condattr_init(&monotonic);
    if (rc != 0)
        return rc;
    rc = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    if (rc == 0)
        rc = pthread_cond_init(&follower->wake, &monotonic);
    if (rc == 0)
        rc = pthread_cond_init(&follower->settled, &monotonic);
    (void)pthread_condattr_destroy(&monotonic); /* memory of ours: can't fail */
    return rc;
}

static int follower_start(struct follower *follower, struct error *err)
{
    pthread_attr_t attributes;
    int rc = pthread_attr_init(&attributes);
    if (rc == 0) {
        sigset_t all, before;
        (void)sigfillset(&all);                                             /* can't fail */
        (void)pthread_attr_setstacksize(&attributes, FOLLOWER_STACK_BYTES); /* fails: it gets the usual one */
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);                  /* fails only for a bad `how` */
        rc = pthread_create(&follower->thread, &attributes, follower_run, follower);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        (void)pthread_attr_destroy(&attributes);
    }
    errno = rc;
    return rc == 0 ? 0 : error_errno(err, "starting a thread to read '%s'", follower->path);
}

int follower_open(const char *path, struct omnistat *omnistat, struct follower **out_follower, struct error *err)
{
    CLEANUP(follower_cleanup) struct follower *follower = calloc(1, sizeof *follower);
    if (follower == NULL) {
        omnistat_free(omnistat);
        return error_set(err, -ENOMEM, "no memory to follow '%s'", path);
    }
    follower->omnistat = omnistat;
    buf_init(&follower->ready, FOLLOWER_READY_BYTES + FOLLOWER_EVENTS_MAX_BYTES);
    buf_init(&follower->text, FOLLOWER_LINE_MAX_BYTES);
    buf_init(&follower->lines, FOLLOWER_EVENTS_MAX_BYTES);
    int rc = follower_init_locks(follower);
    follower->path = strdup(path);
    if (rc != 0 || follower->path == NULL)
        return error_set(err, -ENOMEM, "no memory to follow '%s'", path);
    rc = follower_start(follower, err);
    if (rc < 0)
        return rc;
    *out_follower = TAKE(follower);
    return 0;
}

/* With the lock held. */
static uint64_t follower_take_ready(struct follower *follower, struct buf *out)
{
    uint64_t events = follower->ready_events;
    buf_bytes(out, follower->ready.data, follower->ready.length);
    buf_reset(&follower->ready);
    follower->ready_events = 0;
    return events;
}

/* With the lock held. */
static void follower_ask(struct follower *follower)
{
    follower->asked++;
    (void)pthread_cond_signal(&follower->wake); /* fails only for what is no condition */
}

uint64_t follower_take(struct follower *follower, struct buf *out)
{
    follower_lock(follower);
    uint64_t events = follower_take_ready(follower, out);
    follower_ask(follower);
    follower_unlock(follower);
    return events;
}

uint64_t follower_drain(struct follower *follower, int64_t deadline_mono_ns, struct buf *out, bool *out_has_more)
{
    struct timespec until = {.tv_sec = deadline_mono_ns / CLOCK_NS_PER_SECOND,
                             .tv_nsec = deadline_mono_ns % CLOCK_NS_PER_SECOND};
    bool is_in_time = true;
    follower_lock(follower);
    follower_ask(follower);
    while (follower->answered < follower->asked && is_in_time)
        is_in_time = pthread_cond_timedwait(&follower->settled, &follower->lock, &until) == 0;
    uint64_t events = follower_take_ready(follower, out);
    *out_has_more = is_in_time && !follower->is_at_end;
    follower_unlock(follower);
    return events;
}

void follower_close(struct follower *follower)
{
    if (follower == NULL)
        return;
    follower_lock(follower);
    bool is_settled = follower->answered >= follower->asked;
    follower->is_closing = true;
    follower->is_abandoned = !is_settled;
    if (!is_settled)
        (void)pthread_detach(follower->thread); /* a thread of ours that nobody else joins */
    (void)pthread_cond_signal(&follower->wake);
    follower_unlock(follower);
    if (!is_settled)
        return;
    (void)pthread_join(follower->thread, NULL);
    if (omnistat_bad_rows(follower->omnistat) > 0)
        log_warn("omnistat: '%s': %" PRIu64 " rows made no sense and were passed over", follower->path,
                 omnistat_bad_rows(follower->omnistat));
    follower_free(follower);
}
