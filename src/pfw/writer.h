/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writer: puts whole lines into a trace without ever making its user wait.
 *
 * Lines go into a bounded buffer; a thread of the writer's own compresses and writes what has gathered, at each flush
 * interval or when asked. What is in the file is valid after each page that the kernel has taken (see file.h of this
 * folder), so a SIGKILL at any moment loses at most the last flush interval. When the file system fails (full, gone,
 * dead), lines stay in the buffer; past its limit the oldest are dropped and counted; once writing works again, an
 * event that tells the count comes first. A trace whose file was removed is begun anew
 * under the same path, once its directory is there (it is not made again: whoever removed it may have meant it). A
 * file that was moved is begun anew, too, unless its old place is taken or gone: then it is written where it is.
 *
 * The user's thread calls everything; the callbacks run on the writer's thread.
 */
#ifndef PFW_WRITER_H
#define PFW_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/error.h"

struct pfw_writer;

struct pfw_writer_options {
    bool is_compressed;        /* gzip members; else plain lines */
    bool is_synced;            /* fdatasync() after each flush: survives power loss up to the last flush */
    size_t buffer_max_bytes;   /* of lines that are not yet in the file */
    int64_t flush_interval_ms; /* a hundredth more at most. 0: only when asked or when the buffer is half full */

    /*
     * Appends the line that says that `dropped` events are missing here. Called before the first write that works
     * after some were dropped; again with the same or a higher number if that write failed after all. May be NULL.
     */
    void (*on_dropped)(void *context, uint64_t dropped, struct buf *out);

    /* Writing began to fail (`reason`), or works again (NULL). Once per change. May be NULL. */
    void (*on_change)(void *context, const char *reason);

    /*
     * The file was begun anew because the old one had been removed: appends the lines that a file begins with (and that
     * an earlier file of this writer has, too). `*out_events` is their number. May be NULL.
     */
    void (*on_new_file)(void *context, struct buf *out, uint64_t *out_events);
    void *context; /* of the callbacks; must stay valid when pfw_writer_close() has left the thread behind */
};

struct pfw_writer_status {
    uint64_t events_written; /* are in the file, those of the callbacks too; from 0 when it is begun anew */
    uint64_t events_dropped; /* since the start */
    uint64_t bytes_written;  /* size of the file */
    size_t buffered_bytes;
    bool is_failing;
};

/*
 * Takes `fd`, a regular file open for writing at `path` (copied, used to begin the file anew: should be absolute), even
 * on failure. Starts the thread. Returns owned through `*out_writer`. -EINVAL (no regular file), -ENOMEM, -EAGAIN.
 */
MUST_CHECK int pfw_writer_open(int fd, const char *path, const struct pfw_writer_options *options,
                               struct pfw_writer **out_writer, struct error *err);

/* Copies `events` whole lines. Never waits for the file system. */
void pfw_writer_append(struct pfw_writer *writer, const char *lines, size_t length, uint64_t events);

/* Asks for a flush; returns at once. */
void pfw_writer_flush(struct pfw_writer *writer);

/*
 * Waits until all that was appended before is in the file, or `timeout_ms` has passed (-ETIMEDOUT), or writing it
 * fails: then that failure, and the lines stay in the buffer.
 */
MUST_CHECK int pfw_writer_drain(struct pfw_writer *writer, int64_t timeout_ms, struct error *err);

/* The state at this moment; never waits for the file system. */
struct pfw_writer_status pfw_writer_status(struct pfw_writer *writer);

/*
 * Writes what is left, closes the file, ends the thread, frees the writer. A file system that doesn't answer within
 * `timeout_ms` is left behind with its thread (-ETIMEDOUT): the process is expected to end then. Other failures are
 * returned as well; `*out_status` is the last state in any case and may be NULL. Accepts NULL.
 */
int pfw_writer_close(struct pfw_writer *writer, int64_t timeout_ms, struct pfw_writer_status *out_status,
                     struct error *err);

#endif
