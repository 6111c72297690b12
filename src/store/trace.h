/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace: one job's time series in an SQLite file: its description, and epochs of ticks, each with a chunk for every
 * metric that was measured in it.
 *
 * An epoch is in the file whole or not at all, whenever the process is killed. Time never runs backwards in it. Who
 * collects the ticks of an epoch, where the file stands and when a bad one is set aside is the caller's.
 * docs/trace-format.md has the schema. Blocks on the file system: not for a loop's callbacks. One thread; one writer a
 * file.
 */
#ifndef STORE_TRACE_H
#define STORE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "metric/value.h"
#include "store/chunk.h"
#include "util/buf.h"
#include "util/error.h"

struct trace;

/* One metric in an epoch. Its chunk's ticks are the epoch's. */
struct trace_metric {
    const char *name;
    struct chunk chunk;
};

struct trace_point {
    int64_t wall_us;
    int32_t missing;                  /* as in a chunk; CHUNK_ABSENT: not measured, the values are 0 */
    double values[CHUNK_COLUMNS_MAX]; /* as many as its kind has columns, else 0 */
};

/* A metric is its name and its kind: one that changes kind is two. From and to are included. */
struct trace_query {
    const char *name;
    enum metric_kind kind;
    int64_t from_wall_us;
    int64_t to_wall_us;
};

/*
 * Opens the trace at `path`; a file that is not there, or is empty, becomes one without epochs. `*out_trace` is for
 * trace_close(). -EBADMSG: damaged, or no trace (a directory, too); -ENOTSUP: of another version; -EBUSY: somebody has
 * it locked; -ENOSPC, -EROFS, -ENOMEM, -EIO, or open()'s errno. A file that is not ours is not changed.
 */
MUST_CHECK int trace_open(const char *path, struct trace **out_trace, struct error *err);
void trace_close(struct trace *trace);

static inline void trace_cleanup(struct trace **trace)
{
    trace_close(*trace);
}

/*
 * Renames what is at `path`, which must not be open, and its journal to `path`.broken, or .broken.2 and so on when that
 * is taken, so that a new trace can take its place. Appends the new path to `out`. rename()'s errnos, -EEXIST after
 * TRACE_BROKEN_MAX of them.
 */
#define TRACE_BROKEN_MAX 1000
MUST_CHECK int trace_set_aside(const char *path, struct buf *out, struct error *err);

/* Replaces the job's description, JSON that is kept as it is. */
MUST_CHECK int trace_describe(struct trace *trace, const char *json, struct error *err);

/*
 * Appends an epoch: `wall_us[ticks]`, rising, and the metrics measured in it. When it returns 0, it is on the disk.
 * -EEXIST: its first tick is not after the last that is in the file, so what was appended before a crash can be
 * appended again and isn't doubled. -EINVAL (ticks that don't rise, a metric twice), -ENOSPC and the others of
 * trace_open(): nothing of it is in the file.
 */
MUST_CHECK int trace_append(struct trace *trace, const int64_t *wall_us, size_t ticks,
                            const struct trace_metric *metrics, size_t count, struct error *err);

/* Appends the job's description to `out`; nothing when it has none. -EBADMSG, or as `out` fails. */
MUST_CHECK int trace_description(struct trace *trace, struct buf *out, struct error *err);

/* Gives `on_metric` each metric by name; the name is borrowed until it returns. -EBADMSG as in trace_open(). */
MUST_CHECK int trace_metrics(struct trace *trace,
                             void (*on_metric)(void *context, const char *name, enum metric_kind kind), void *context,
                             struct error *err);

/* The last tick, INT64_MIN of a trace without one. */
MUST_CHECK int trace_last(struct trace *trace, int64_t *out_wall_us, struct error *err);

/*
 * Gives `on_point` the points of one metric in the order of time, one for each tick of every epoch in which it was
 * measured at all; none when there is no such metric. The point is borrowed until it returns. -EBADMSG when an epoch is
 * damaged: those before it have been given.
 */
MUST_CHECK int trace_read(struct trace *trace, const struct trace_query *query,
                          void (*on_point)(void *context, const struct trace_point *point), void *context,
                          struct error *err);

#endif
