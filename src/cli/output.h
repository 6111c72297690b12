/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * output: where a command's result goes: standard output or a file, plain or as one gzip member.
 *
 * Text is appended to `text` and written when there is enough of it. A file appears under its name only when it is
 * whole: until then it has none or, where the file system can't do that, is "<name>.<pid>-<n>.part", which is removed
 * when something fails. A reader that has gone away
 * (EPIPE) is no failure: the rest is thrown away in silence. One thread.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "util/buf.h"
#include "util/error.h"

struct output {
    struct buf text;     /* append here, then output_drain() */
    uint64_t bytes;      /* of text, drained so far */
    bool is_reader_gone; /* nobody reads any more */
    /* the rest is output.c's */
    int fd;
    char *path;      /* NULL: standard output */
    char *part_path; /* NULL: written in place (a device, a pipe), or without a name */
    bool is_unnamed;
    struct output_gzip *gzip; /* NULL: plain */
};

/*
 * To be called first in main. Descriptors 0 to 2 that whoever started us had closed are filled with ones that can only
 * fail: else the next file to be opened would have such a number, and messages would be written into it.
 */
void output_guard_standard(void);

/* `path` NULL or "-" is standard output. -ENOMEM and what open() fails with; `err` names the path. */
MUST_CHECK int output_open(struct output *output, const char *path, bool is_gzip, struct error *err);

/* Is the file that `path` names now the one that `status` describes? Whoever would overwrite its input asks first. */
bool output_is_file(const char *path, const struct stat *status);

/* Writes what was appended, if it is much. Fails for a failed append, too. */
MUST_CHECK int output_drain(struct output *output, struct error *err);

/* Writes the rest and gives the file its name. */
MUST_CHECK int output_finish(struct output *output, struct error *err);

/* Frees all; what was not finished is removed. A zeroed output may be closed, too. */
void output_close(struct output *output);

static inline void output_cleanup(struct output *output)
{
    output_close(output);
}

#endif
