/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state: what a proxy leaves for its successor: the bases of all jobs, what they are, and which segments are in them.
 *
 * Two files, <directory>/proxy-<host>.state.0 and .1, written in turn: the one with the higher generation and a right
 * check sum counts, so a kill in the middle of a write leaves the other. They are on this node (tmpfs or a local disk)
 * and are not synced: they are for the death of a proxy, not of a machine. The lock on proxy-<host>.lock keeps a second
 * proxy out.
 *
 * In a file, all numbers little-endian as on the machines that we run on, texts as u32 length and bytes:
 *
 *   head      magic, generation, bytes of the body, FNV-1a of the body
 *   ids       u32 count, 16 bytes each: segments that are in the bases
 *   jobs      u32 count, each: u8 kind, u32 uid, key, description (JSON),
 *             u32 count of counters, each: name, doc, f64, i64 µs
 *
 * Loop thread only: the files are small and in memory.
 */
#ifndef PROXY_STATE_H
#define PROXY_STATE_H

#include <stdint.h>

#include "proxy/jobs.h"
#include "proxy/segments.h"
#include "util/error.h"

struct state;

#define STATE_MAX_BYTES (256u << 20)

/* Locks. -EADDRINUSE: a live proxy of this user and host has it; -ENOMEM; what open() gives. */
MUST_CHECK int state_open(const char *directory, const char *hostname, struct state **out_state, struct error *err);
void state_close(struct state *state); /* NULL is fine. The files stay */
DEFINE_CLEANUP(state, state_close);

/*
 * Puts what the predecessor left into `jobs` and `segments`, which are new. Nothing there is fine, and so is a file
 * that can't be read: that is said in the log. -ENOMEM.
 */
MUST_CHECK int state_load(struct state *state, struct jobs *jobs, struct segments *segments, int64_t now_mono_ns,
                          struct error *err);

/*
 * Writes the next generation. Between jobs_begin(), with the contributors added that a successor won't find again, and
 * the adding of the others: the values at this moment are what is kept. On failure the generation before still counts.
 */
MUST_CHECK int state_write(struct state *state, const struct jobs *jobs, const struct segments *segments,
                           struct error *err);

#endif
