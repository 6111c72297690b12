/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The writer's thread works in passes. A pass writes all that was in the queue when it began, or ends at the first
 * failure; what was not taken goes back into the queue. Passes begin when lines have waited for a flush interval, when
 * somebody asks, or when the queue is half full; after a failure only at intervals or when somebody asks.
 *
 * Intervals are counted from the last append before a pass, not from the pass. The thread sleeps until a hundredth past
 * the end of the interval, or until an append that comes less than a sixteenth before it: so ticks that are as long as
 * the interval, or an even part of it, cost one wake-up a pass, though they come a little early or late, and from the
 * second pass on it is a tick that wakes the thread, when the caches hold the lines and the kernel's code. Has nothing
 * come by then, it sleeps until the next append, which then is written at once.
 */
#include "pfw/writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pfw/file.h"
#include "pfw/queue.h"
#include "util/clock.h"

enum {
    WRITER_STACK_BYTES = 256 * 1024,
    WRITER_EXTRA_MAX_BYTES = 1024 * 1024, /* of lines that a callback may add */
    WRITER_EARLY_PART = 16,               /* of a flush interval; a tenth would be where the ninth of ten ticks comes */
    WRITER_LATE_PART = 100,
};

/* At most so often a failure is tried again, and the file is looked for at its path. */
#define WRITER_RETRY_NS CLOCK_NS_PER_SECOND
#define WRITER_LOOK_NS  (CLOCK_NS_PER_SECOND / 2)

struct pfw_writer {
    struct pfw_writer_options options;
    char *path;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t wake;    /* for the writer's thread */
    pthread_cond_t settled; /* for drain and close */

    /* guarded by lock */
    struct pfw_queue queue;
    struct pfw_writer_status status; /* but for what the queue counts */
    uint64_t asked;                  /* number of the last request to flush */
    uint64_t answered;               /* the last request that a pass was for */
    struct error answer;             /* how that pass ended */
    bool is_asleep;                  /* the thread waits; nobody has woken it yet */
    int64_t next_flush_mono_ns;      /* INT64_MAX: only when asked */
    int64_t appended_mono_ns;        /* when the last lines came */
    bool is_closing;
    bool is_ended;     /* the thread has let go of the file */
    bool is_abandoned; /* the user has gone: no callback any more, and the thread frees the writer */

    /* the writer's thread alone */
    struct pfw_file *file;
    int64_t looked_mono_ns;  /* when the file was last looked for at its path */
    bool is_gone;            /* it has been removed, and no new one could be begun */
    bool is_new;             /* the file was begun anew, and on_new_file() not yet asked */
    bool is_unsynced;        /* something was written since the last sync */
    struct buf opening;      /* lines that a new file must begin with, and are not in it yet */
    uint64_t opening_events; /* their number */
    struct buf gap;          /* memory for the line that tells of a gap */
};

static void writer_lock(struct pfw_writer *writer)
{
    int rc = pthread_mutex_lock(&writer->lock);
    assert(rc == 0);
}

static void writer_unlock(struct pfw_writer *writer)
{
    int rc = pthread_mutex_unlock(&writer->lock);
    assert(rc == 0);
}

static int64_t writer_deadline(int64_t timeout_ms)
{
    int64_t now_mono_ns = clock_mono_ns();
    return timeout_ms < (INT64_MAX - now_mono_ns) / CLOCK_NS_PER_MS ? now_mono_ns + timeout_ms * CLOCK_NS_PER_MS
                                                                    : INT64_MAX;
}

/* With the lock held. False when the deadline has passed. */
static bool writer_wait(struct pfw_writer *writer, pthread_cond_t *condition, int64_t deadline_mono_ns)
{
    if (deadline_mono_ns == INT64_MAX)
        return pthread_cond_wait(condition, &writer->lock) == 0;
    struct timespec until = {.tv_sec = deadline_mono_ns / CLOCK_NS_PER_SECOND,
                             .tv_nsec = deadline_mono_ns % CLOCK_NS_PER_SECOND};
    return pthread_cond_timedwait(condition, &writer->lock, &until) == 0;
}

static void writer_free(struct pfw_writer *writer)
{
    if (writer == NULL)
        return;
    (void)pfw_file_close(writer->file, NULL); /* the thread has closed it and told, unless it was never started */
    pfw_queue_fini(&writer->queue);
    buf_fini(&writer->opening);
    buf_fini(&writer->gap);
    (void)pthread_mutex_destroy(&writer->lock); /* nobody else knows them any more */
    (void)pthread_cond_destroy(&writer->wake);
    (void)pthread_cond_destroy(&writer->settled);
    free(writer->path);
    free(writer);
}

static void writer_cleanup(struct pfw_writer **writer)
{
    writer_free(*writer);
}

static bool writer_is_abandoned(struct pfw_writer *writer)
{
    writer_lock(writer);
    bool is_abandoned = writer->is_abandoned;
    writer_unlock(writer);
    return is_abandoned;
}

/* Appends to the file; `*out_taken` as in pfw_file_append(). */
static int writer_put(struct pfw_writer *writer, const char *lines, size_t length, size_t *out_taken, struct error *err)
{
    *out_taken = 0;
    if (writer_is_abandoned(writer))
        return error_set(err, -ECANCELED, "the trace has been left behind");
    int rc = pfw_file_append(writer->file, lines, length, out_taken, err);
    writer->is_unsynced = writer->is_unsynced || *out_taken > 0;
    return rc;
}

static void writer_count(struct pfw_writer *writer, uint64_t events)
{
    writer_lock(writer);
    writer->status.events_written += events;
    writer->status.bytes_written = pfw_file_size(writer->file);
    writer_unlock(writer);
}

/* Begins the file anew. The old one may still have another name; then it keeps what it has. */
static int writer_begin_anew(struct pfw_writer *writer, struct error *err)
{
    int fd = open(writer->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return error_errno(err, "the file was removed; beginning it anew");
    struct pfw_file *file = NULL;
    int rc = pfw_file_new(fd, writer->options.is_compressed, &file, err);
    if (rc < 0)
        return rc;
    (void)pfw_file_close(writer->file, NULL); /* what became of the removed file is nobody's concern */
    writer->file = file;
    writer->is_new = true;
    buf_reset(&writer->opening);
    writer_lock(writer);
    writer->status.events_written = 0;
    writer->status.bytes_written = 0;
    writer_unlock(writer);
    return 0;
}

/* Looks for the file at its path, not more often than it makes sense, and begins it anew if it is not there. */
static int writer_look(struct pfw_writer *writer, int64_t now_mono_ns, struct error *err)
{
    if (!writer->is_gone && now_mono_ns - writer->looked_mono_ns < WRITER_LOOK_NS)
        return 0;
    writer->looked_mono_ns = now_mono_ns;
    writer->is_gone = false;
    enum pfw_file_place place = pfw_file_place(writer->file, writer->path);
    if (place == PFW_FILE_AT_PATH || writer_is_abandoned(writer))
        return 0;
    int rc = writer_begin_anew(writer, err);
    if (rc < 0 && place == PFW_FILE_ELSEWHERE)
        return 0; /* it was moved, and its old place is taken or gone: it lives on where it is, nothing is lost */
    writer->is_gone = rc < 0;
    return rc;
}

/* Writes what a new file begins with, or the rest of it. */
static int writer_put_opening(struct pfw_writer *writer, struct error *err)
{
    if (writer->is_new && writer->options.on_new_file != NULL && !writer_is_abandoned(writer)) {
        buf_reset(&writer->opening);
        writer->opening_events = 0;
        writer->options.on_new_file(writer->options.context, &writer->opening, &writer->opening_events);
        int rc = buf_status(&writer->opening, err);
        if (rc < 0) {
            buf_reset(&writer->opening);
            return rc;
        }
    }
    writer->is_new = false;
    if (writer->opening.length == 0)
        return 0;
    size_t taken;
    int rc = writer_put(writer, writer->opening.data, writer->opening.length, &taken, err);
    if (taken == writer->opening.length) {
        writer_count(writer, writer->opening_events);
        buf_reset(&writer->opening);
    } else if (taken > 0) {
        memmove(writer->opening.data, writer->opening.data + taken, writer->opening.length - taken);
        buf_truncate(&writer->opening, writer->opening.length - taken);
    }
    return rc;
}

/* Tells that lines are missing before those of `chunk`. */
static int writer_put_gap(struct pfw_writer *writer, struct pfw_chunk *chunk, struct error *err)
{
    if (chunk->dropped_before == 0)
        return 0;
    if (writer->options.on_dropped == NULL || writer_is_abandoned(writer)) {
        chunk->dropped_before = 0;
        return 0;
    }
    buf_reset(&writer->gap);
    writer->options.on_dropped(writer->options.context, chunk->dropped_before, &writer->gap);
    int rc = buf_status(&writer->gap, err);
    if (rc < 0)
        return rc;
    size_t taken;
    rc = writer_put(writer, writer->gap.data, writer->gap.length, &taken, err);
    if (taken == writer->gap.length) {
        chunk->dropped_before = 0;
        writer_count(writer, writer->gap.length > 0 ? 1 : 0);
    }
    return rc;
}

static int writer_put_chunk(struct pfw_writer *writer, struct pfw_chunk *chunk, struct error *err)
{
    size_t taken = 0;
    int rc = writer_put_gap(writer, chunk, err);
    if (rc == 0)
        rc = writer_put(writer, chunk->bytes + chunk->start, chunk->end - chunk->start, &taken, err);
    writer_lock(writer);
    writer->status.events_written += pfw_queue_give_back(&writer->queue, chunk, taken);
    writer->status.bytes_written = pfw_file_size(writer->file);
    writer_unlock(writer);
    return rc;
}

static struct pfw_chunk *writer_take(struct pfw_writer *writer)
{
    writer_lock(writer);
    struct pfw_chunk *chunk = pfw_queue_take(&writer->queue);
    writer_unlock(writer);
    return chunk;
}

/* Writes `length` bytes of the queue, and what else is due. */
static int writer_pass(struct pfw_writer *writer, size_t length, struct error *err)
{
    int rc = writer_look(writer, clock_mono_ns(), err);
    if (rc == 0)
        rc = writer_put_opening(writer, err);
    for (size_t done = 0; rc == 0 && done <= length;) {
        struct pfw_chunk *chunk = writer_take(writer);
        if (chunk == NULL)
            break;
        done += chunk->end - chunk->start + 1; /* an empty chunk counts, too: a pass has an end */
        rc = writer_put_chunk(writer, chunk, err);
    }
    if (rc == 0 && writer->options.is_synced && writer->is_unsynced) {
        rc = pfw_file_sync(writer->file, err);
        writer->is_unsynced = rc < 0;
    }
    return rc < 0 ? error_wrap(err, rc, "trace '%s'", writer->path) : 0;
}

/* Tells the user when writing begins to fail or works again. */
static void writer_report(struct pfw_writer *writer, int rc, const struct error *err)
{
    bool is_failing = rc < 0;
    writer_lock(writer);
    bool is_change = writer->status.is_failing != is_failing && !writer->is_abandoned;
    writer->status.is_failing = is_failing;
    writer_unlock(writer);
    if (is_change && writer->options.on_change != NULL)
        writer->options.on_change(writer->options.context, is_failing ? err->text : NULL);
}

static int64_t writer_interval_ns(const struct pfw_writer *writer)
{
    return writer->options.flush_interval_ms * CLOCK_NS_PER_MS;
}

/* After a pass that began at `pass_mono_ns` with lines the last of which came at `appended_mono_ns`. */
static int64_t writer_next_flush(const struct pfw_writer *writer, int64_t pass_mono_ns, int64_t appended_mono_ns,
                                 bool is_failing)
{
    int64_t interval_ns = writer_interval_ns(writer);
    if (is_failing)
        return pass_mono_ns + (interval_ns > WRITER_RETRY_NS ? interval_ns : WRITER_RETRY_NS);
    if (interval_ns == 0)
        return INT64_MAX;
    return (appended_mono_ns > pass_mono_ns - interval_ns ? appended_mono_ns : pass_mono_ns) + interval_ns;
}

/* With the lock held. */
static bool writer_is_half_full(const struct pfw_writer *writer)
{
    return writer->queue.buffered_bytes >= writer->options.buffer_max_bytes / 2 && !writer->status.is_failing;
}

/* With the lock held: are lines that are there now to be written? */
static bool writer_is_due(const struct pfw_writer *writer, int64_t now_mono_ns)
{
    return writer->next_flush_mono_ns != INT64_MAX &&
           now_mono_ns >= writer->next_flush_mono_ns - writer_interval_ns(writer) / WRITER_EARLY_PART;
}

/* Sleeps until a pass is due, with the lock held. */
static void writer_sleep(struct pfw_writer *writer)
{
    int64_t late_ns = writer_interval_ns(writer) / WRITER_LATE_PART;
    while (!writer->is_closing && writer->asked == writer->answered && !writer_is_half_full(writer)) {
        bool has_work = !pfw_queue_is_empty(&writer->queue) || writer->status.is_failing;
        bool is_due = writer_is_due(writer, clock_mono_ns());
        if (has_work && is_due)
            return;
        bool has_end = writer->next_flush_mono_ns != INT64_MAX && !is_due;
        writer->is_asleep = true;
        (void)writer_wait(writer, &writer->wake, has_end ? writer->next_flush_mono_ns + late_ns : INT64_MAX);
        writer->is_asleep = false;
    }
}

/* Closes the file: some file systems tell only now what they could not store. */
static void writer_end(struct pfw_writer *writer)
{
    struct error err = {0};
    int rc = pfw_file_close(TAKE(writer->file), &err);
    writer_lock(writer);
    if (rc < 0 && writer->answer.code == 0) {
        (void)error_wrap(&err, rc, "trace '%s'", writer->path); /* `err` is what matters */
        writer->answer = err;
    }
    writer->is_ended = true;
    bool is_abandoned = writer->is_abandoned;
    (void)pthread_cond_broadcast(&writer->settled); /* fails only for what is no condition */
    writer_unlock(writer);
    if (is_abandoned)
        writer_free(writer);
}

static void *writer_run(void *context)
{
    struct pfw_writer *writer = context;
    bool is_closing = false;
    while (!is_closing) {
        writer_lock(writer);
        writer_sleep(writer);
        is_closing = writer->is_closing;
        uint64_t asked = writer->asked;
        size_t length = writer->queue.buffered_bytes;
        int64_t appended_mono_ns = writer->appended_mono_ns;
        writer_unlock(writer);

        struct error err = {0};
        int64_t pass_mono_ns = clock_mono_ns();
        int rc = writer_pass(writer, length, &err);
        writer_report(writer, rc, &err);

        writer_lock(writer);
        writer->next_flush_mono_ns = writer_next_flush(writer, pass_mono_ns, appended_mono_ns, rc < 0);
        writer->answered = asked;
        writer->answer = rc < 0 ? err : (struct error){0}; /* a failure that did no harm may have left its words */
        (void)pthread_cond_broadcast(&writer->settled);    /* fails only for what is no condition */
        writer_unlock(writer);
    }
    writer_end(writer);
    return NULL;
}

/* Signals are for the user's threads; a file size limit's SIGXFSZ, too, becomes a plain error this way. */
static int writer_start(struct pfw_writer *writer, struct error *err)
{
    pthread_attr_t attributes;
    int rc = pthread_attr_init(&attributes);
    if (rc == 0) {
        sigset_t all, before;
        (void)sigfillset(&all);                                           /* can't fail */
        (void)pthread_attr_setstacksize(&attributes, WRITER_STACK_BYTES); /* fails: it gets the usual one */
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);                /* fails only for a bad `how` */
        rc = pthread_create(&writer->thread, &attributes, writer_run, writer);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        (void)pthread_attr_destroy(&attributes); /* memory of ours: can't fail */
    }
    if (rc != 0) {
        errno = rc;
        return error_errno(err, "starting a thread that writes '%s'", writer->path);
    }
    return 0;
}

static int writer_init_locks(struct pfw_writer *writer)
{
    pthread_condattr_t monotonic;
    int rc = pthread_mutex_init(&writer->lock, NULL);
    if (rc == 0)
        rc = pthread_condattr_init(&monotonic);
    if (rc != 0)
        return -rc;
    rc = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    if (rc == 0)
        rc = pthread_cond_init(&writer->wake, &monotonic);
    if (rc == 0)
        rc = pthread_cond_init(&writer->settled, &monotonic);
    (void)pthread_condattr_destroy(&monotonic); /* memory of ours: can't fail */
    return -rc;
}

int pfw_writer_open(int fd, const char *path, const struct pfw_writer_options *options, struct pfw_writer **out_writer,
                    struct error *err)
{
    CLEANUP(fd_cleanup) int owned_fd = fd;
    CLEANUP(writer_cleanup) struct pfw_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return error_set(err, -ENOMEM, "no memory for the writer of '%s'", path);
    writer->options = *options;
    pfw_queue_init(&writer->queue, options->buffer_max_bytes);
    buf_init(&writer->opening, WRITER_EXTRA_MAX_BYTES);
    buf_init(&writer->gap, WRITER_EXTRA_MAX_BYTES);
    int rc = writer_init_locks(writer);
    writer->path = strdup(path);
    if (rc < 0 || writer->path == NULL)
        return error_set(err, -ENOMEM, "no memory for the writer of '%s'", path);
    rc = pfw_file_new(TAKE_FD(owned_fd), options->is_compressed, &writer->file, err);
    if (rc < 0)
        return error_wrap(err, rc, "trace '%s'", path);
    writer->looked_mono_ns = clock_mono_ns();
    writer->next_flush_mono_ns = writer_next_flush(writer, writer->looked_mono_ns, 0, false);
    writer->status.bytes_written = pfw_file_size(writer->file);
    rc = writer_start(writer, err);
    if (rc < 0)
        return rc;
    *out_writer = TAKE(writer);
    return 0;
}

void pfw_writer_append(struct pfw_writer *writer, const char *lines, size_t length, uint64_t events)
{
    if (length == 0)
        return;
    writer_lock(writer);
    pfw_queue_append(&writer->queue, lines, length, events);
    writer->appended_mono_ns = clock_mono_ns();
    if (writer->is_asleep && (writer_is_due(writer, writer->appended_mono_ns) || writer_is_half_full(writer))) {
        writer->is_asleep = false;
        (void)pthread_cond_signal(&writer->wake); /* fails only for what is no condition */
    }
    writer_unlock(writer);
}

/* With the lock held. */
static uint64_t writer_ask(struct pfw_writer *writer)
{
    (void)pthread_cond_signal(&writer->wake); /* fails only for what is no condition */
    return ++writer->asked;
}

void pfw_writer_flush(struct pfw_writer *writer)
{
    writer_lock(writer);
    (void)writer_ask(writer); /* nobody waits for this one */
    writer_unlock(writer);
}

int pfw_writer_drain(struct pfw_writer *writer, int64_t timeout_ms, struct error *err)
{
    int64_t deadline_mono_ns = writer_deadline(timeout_ms);
    writer_lock(writer);
    uint64_t asked = writer_ask(writer);
    bool is_in_time = true;
    while (writer->answered < asked && is_in_time)
        is_in_time = writer_wait(writer, &writer->settled, deadline_mono_ns);
    bool is_answered = writer->answered >= asked;
    struct error answer = writer->answer;
    writer_unlock(writer);
    if (!is_answered)
        return error_set(err, -ETIMEDOUT, "trace '%s': the file system did not answer within %lld ms", writer->path,
                         (long long)timeout_ms);
    if (answer.code < 0 && err != NULL)
        *err = answer;
    return answer.code;
}

/* With the lock held. */
static struct pfw_writer_status writer_get_status(const struct pfw_writer *writer)
{
    struct pfw_writer_status status = writer->status;
    status.events_dropped = writer->queue.events_dropped;
    status.buffered_bytes = writer->queue.buffered_bytes;
    return status;
}

struct pfw_writer_status pfw_writer_status(struct pfw_writer *writer)
{
    writer_lock(writer);
    struct pfw_writer_status status = writer_get_status(writer);
    writer_unlock(writer);
    return status;
}

int pfw_writer_close(struct pfw_writer *writer, int64_t timeout_ms, struct pfw_writer_status *out_status,
                     struct error *err)
{
    if (writer == NULL)
        return 0;
    int64_t deadline_mono_ns = writer_deadline(timeout_ms);
    writer_lock(writer);
    writer->is_closing = true;
    (void)pthread_cond_signal(&writer->wake); /* fails only for what is no condition */
    bool is_in_time = true;
    while (!writer->is_ended && is_in_time)
        is_in_time = writer_wait(writer, &writer->settled, deadline_mono_ns);
    bool is_ended = writer->is_ended;
    if (out_status != NULL)
        *out_status = writer_get_status(writer);
    struct error answer = writer->answer;
    if (!is_ended) {
        (void)error_set(&answer, -ETIMEDOUT, "trace '%s': the file system did not answer within %lld ms", writer->path,
                        (long long)timeout_ms); /* `answer` is what matters */
        writer->is_abandoned = true;
        (void)pthread_detach(writer->thread); /* a thread of ours that nobody else joins */
    }
    writer_unlock(writer);
    if (is_ended) {
        (void)pthread_join(writer->thread, NULL);
        writer_free(writer);
    }
    if (answer.code < 0 && err != NULL)
        *err = answer;
    return answer.code;
}
