/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segments: the segments of applications: found, read, and folded when their processes have ended.
 *
 * A segment is found by its file in the user's directory (scan and inotify) or comes by descriptor over the socket; it
 * is known by its id and counts once. It is in use while somebody has it open or mapped, which the lock that its maker
 * holds tells (segment.h), also across pid name spaces; a client that could not lock is in use while one of its
 * processes lives.
 *
 * The end, in this order: nobody uses it; it is read for the last time; its values go into the bases of its jobs; the
 * state file, with its id, is written; the file is unlinked. A proxy that is killed anywhere in between has a successor
 * that counts it once: before the write the segment is still there, after it the state names it as folded.
 *
 * Loop thread only.
 */
#ifndef PROXY_SEGMENTS_H
#define PROXY_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proxy/jobs.h"
#include "segment/segment.h"
#include "util/error.h"

struct segments;

#define SEGMENTS_MAX_DEFAULT 65536

struct segments_stats {
    uint64_t found;   /* so far */
    uint64_t folded;  /* so far */
    uint64_t refused; /* no segment, somebody else's, or too many */
    uint64_t read_failures;
    uint64_t bad_records;     /* that readers passed over */
    uint64_t metrics_refused; /* by clients, for lack of room */
};

/* `path` (copied) is the directory of the segments of `uid`; it need not be there yet. -ENOMEM. */
MUST_CHECK int segments_new(struct jobs *jobs, const char *path, uint32_t uid, struct segments **out_segments,
                            struct error *err);
void segments_free(struct segments *segments); /* contributors go without being folded: a successor adopts them */
DEFINE_CLEANUP(segments, segments_free);

/* Takes a descriptor that came by the socket from process `peer_pid` (0: unknown) of `uid`. A known segment is fine. */
MUST_CHECK int segments_take(struct segments *segments, int fd, uint32_t uid, pid_t peer_pid, struct error *err);

/* Finds new segments, reads all, and folds those whose processes have ended. Before jobs_begin(). */
void segments_tick(struct segments *segments, int64_t now_mono_ns, int64_t now_wall_ms);

/* Ids that the state must remember: folded, and perhaps not yet unlinked. [segments_folded_count()] */
size_t segments_folded_count(const struct segments *segments);
const uint8_t *segments_folded_at(const struct segments *segments, size_t index); /* [SEGMENT_ID_BYTES] */

/* From an earlier proxy's state: the segment with this id is to be unlinked, not counted. -ENOMEM. */
MUST_CHECK int segments_restore_folded(struct segments *segments, const uint8_t id[SEGMENT_ID_BYTES],
                                       struct error *err);

/* The state on disk knows all that was folded: the files can go. */
void segments_unlink_folded(struct segments *segments);

/* Segments that are in use, and what became of all so far. */
size_t segments_count(const struct segments *segments);
struct segments_stats segments_stats(const struct segments *segments);

#endif
