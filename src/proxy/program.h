/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program: another program that runs beside the loop: started without a shell, with an end, its output kept.
 *
 * It is started by a worker, since an exec from a file system that hangs would hang whoever waits for it. It gets a
 * process group of its own, no input, usual signals, our stderr, and what it writes to stdout is read here. When its
 * time is over all of the group is killed. Loop thread only.
 */
#ifndef PROXY_PROGRAM_H
#define PROXY_PROGRAM_H

#include <stddef.h>
#include <uv.h>

#include "util/buf.h"
#include "util/error.h"

struct program;

struct program_result {
    int code;           /* 0: it ended by itself with status 0; -ECHILD: with another; -ETIMEDOUT; -E2BIG (output);
                           -ENOENT and what posix_spawn() gives: it was not started */
    struct error err;   /* the same in words */
    struct buf *output; /* of stdout; may be taken: leave an empty one */
};

/* Texts are copied. */
struct program_config {
    uv_loop_t *loop;              /* borrowed */
    const char *const *arguments; /* the first is looked for in PATH; NULL at the end */
    const char *const *variables; /* "NAME=value", added to our environment; NULL at the end, or NULL: none */
    unsigned timeout_ms;
    size_t output_max_bytes;                                       /* 0: the output is not wanted */
    void (*on_done)(void *context, struct program_result *result); /* once, from the loop */
    void *context;
};

/* `*out_program` is borrowed until on_done begins, which never comes before this returns. -ENOMEM, libuv's. */
MUST_CHECK int program_start(const struct program_config *config, struct program **out_program, struct error *err);

/* Kills it; on_done won't come. For the end of the daemon: nobody waits for the process. NULL is fine. */
void program_cancel(struct program *program);

#endif
