/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace: which file a service writes, so that no trace is ever lost: <prefix>_<host>.pfw.gz, or a numbered one.
 *
 * A file that is there already and that nobody writes is renamed to <prefix>_<host>.<n>.pfw.gz first. When another
 * service of this node writes it, the new one takes <prefix>_<host>.<n>.pfw.gz for itself. n grows, so a higher number
 * is a later trace; past a limit, those with the lowest numbers are removed. Blocks on the file system. One thread.
 */
#ifndef SERVICE_TRACE_H
#define SERVICE_TRACE_H

#include <stdbool.h>

#include "service/claim.h"
#include "util/buf.h"
#include "util/error.h"

struct trace {
    char *path;         /* absolute; owned */
    int fd;             /* the new, empty file; handed on with TAKE_FD() */
    struct claim claim; /* nobody else writes the file while we have it */
};

#define TRACE_NONE ((struct trace){.path = NULL, .fd = -1, .claim = CLAIM_NONE})

struct trace_request {
    const char *prefix; /* absolute; its directory must exist */
    const char *host;   /* as in file names */
    bool is_compressed;
    unsigned keep; /* numbered traces without an owner that stay */
};

/*
 * Creates the file. What a person should know (renamed, numbered) is appended to `notes`, a line each.
 * Given up by trace_close(). Fails with the errno of the directory or the file.
 */
MUST_CHECK int trace_open(const struct trace_request *request, struct buf *notes, struct trace *out_trace,
                          struct error *err);

/* Gives the claim up, and the descriptor if it is still here. Accepts TRACE_NONE. */
void trace_close(struct trace *trace);

#endif
