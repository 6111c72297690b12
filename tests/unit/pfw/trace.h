/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace: a writer with a directory of its own, numbered events for it, and an account of what is in its file.
 *
 * In tests.cmake: DEPENDS test_support test_members test_sysio test_trace. What must not fail ends the test if it does.
 */
#ifndef PFW_TRACE_H
#define PFW_TRACE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pfw/writer.h"
#include "support/scratch.h"

enum {
    TRACE_DEADLINE_MS = 20000, /* of what must happen */
    TRACE_SHORT_MS = 50,       /* of what must not */
    TRACE_TEXT_MAX_BYTES = 64 * 1024 * 1024,
    TRACE_SMALL_BUFFER_BYTES = 64 * 1024,
    TRACE_LARGE_BUFFER_BYTES = 4 * 1024 * 1024,
};

struct trace {
    struct scratch scratch;
    char directory[PATH_MAX];
    char path[PATH_MAX]; /* in `directory` */
    struct pfw_writer *writer;
    uint64_t next; /* number of the next event */
    /* what the writer told */
    atomic_size_t failures;
    atomic_size_t recoveries;
    char reason[ERROR_TEXT_MAX_BYTES]; /* of the last failure; to be read after a drain */
};

/* Makes the directory; then trace_open() makes the file and the writer. */
void trace_init(struct trace *trace);
void trace_open(struct trace *trace, const struct pfw_writer_options *options);
void trace_cleanup(struct trace *trace);

/* Compressed, a large buffer, no flush unless asked, all callbacks. */
struct pfw_writer_options trace_options(struct trace *trace);

/* Appends one numbered event; many that deflate badly. */
void trace_append(struct trace *trace);
void trace_append_noise(struct trace *trace, size_t events);

/* Drains: it must work; it may fail. */
void trace_drain(struct trace *trace);
int trace_try_drain(struct trace *trace);

struct pfw_writer_status trace_close(struct trace *trace);

/* Waits until so many events are in the file. */
void trace_wait_written(struct trace *trace, uint64_t events);

/* What a trace holds. */
struct content {
    uint64_t first; /* number of the first event */
    uint64_t next;  /* number after the last event, those that are told missing counted */
    uint64_t lines;
    uint64_t missing;
    size_t gaps;
    size_t openings;
};

/* Takes a trace apart: valid to its last byte, events in order, each of them there or told missing. */
struct content trace_read(const char *path);

/* Between two looks at something that takes its time; and how long to look at most. */
void trace_sleep(void);
int64_t trace_deadline_mono_ns(void);

/* Threads of this process. */
size_t trace_threads(void);
void trace_wait_for_threads(size_t count);

#endif
