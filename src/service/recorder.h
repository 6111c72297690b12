/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recorder: the service's trace from its first event to its last: start, host, settings; what is handed in; the end.
 *
 * Owns the file's name, its writer and the stamps. Opened, closed, flushed and asked for its status on the loop; what
 * is handed in, and the clock's watch, are one other thread's between opening and closing. The writer's thread calls
 * back into what doesn't change.
 */
#ifndef SERVICE_RECORDER_H
#define SERVICE_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#include "pfw/event.h"
#include "pfw/writer.h"
#include "service/options.h"
#include "service/paths.h"
#include "util/buf.h"
#include "util/clock.h"
#include "util/error.h"

struct recorder;

/*
 * Creates the trace and writes its first events, so that a directory that takes nothing is found out now. `options` and
 * `paths` are borrowed for the recorder's life. What a person should know is appended to `notes`, a line each.
 */
MUST_CHECK int recorder_open(const struct options *options, const struct paths *paths, struct buf *notes,
                             struct recorder **out_recorder, struct error *err);

/* The file, who writes it, and its stamps: borrowed from the recorder. */
const char *recorder_path(const struct recorder *recorder);
const struct pfw_source *recorder_source(const struct recorder *recorder);
const struct clock_stamper *recorder_stamper(const struct recorder *recorder);

/* The stamp of an instant of the boot clock, in the trace's unit. Any thread. */
int64_t recorder_ts(const struct recorder *recorder, int64_t boot_ns);

/* Copies `events` whole lines into the writer. */
void recorder_append(struct recorder *recorder, const char *lines, size_t length, uint64_t events);

/* Writes a step of the wall clock down, if there was one; returns how far it is ahead of the stamps then, else 0. */
int64_t recorder_watch_clock(struct recorder *recorder, int64_t now_wall_ns, int64_t now_boot_ns);

/* As pfw_writer_flush() and pfw_writer_status(). */
void recorder_flush(struct recorder *recorder);
struct pfw_writer_status recorder_status(struct recorder *recorder);

/*
 * Writes the end event, with `used` (a JSON object: what the service cost) in it if the trace has metadata, and closes
 * the trace, within `timeout_ms`. `*out_status` is how it ended in any case. A failure (the disk is full, the file
 * system doesn't answer) is one of the writer's. Frees the recorder but for what a hanging thread still uses.
 */
MUST_CHECK int recorder_close(struct recorder *recorder, const struct buf *used, int64_t timeout_ms,
                              struct pfw_writer_status *out_status, struct error *err);

/* Removes the trace again: the service could not begin. Accepts NULL. */
void recorder_discard(struct recorder *recorder);

#endif
