/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exporters: the libraries that can be preloaded, as they are installed beside this program, and which of them a
 * program gets.
 */
#ifndef RUN_EXPORTERS_H
#define RUN_EXPORTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "run/binary.h"
#include "util/buf.h"
#include "util/error.h"

#define EXPORTERS_MAX            64
#define EXPORTERS_NAME_MAX_BYTES 64

struct exporters {
    char *lib;    /* the folder of the libraries; owned */
    char *strace; /* the program that counts system calls; NULL: not installed. Owned */
    size_t count;
    char names[EXPORTERS_MAX][EXPORTERS_NAME_MAX_BYTES]; /* of those that are libraries, "finstrument" the first */
};

/* Finds what is installed beside this program. -ENOENT: nothing; -ENOMEM. exporters_fini() in any case. */
MUST_CHECK int exporters_find(struct exporters *out_exporters, struct error *err);
void exporters_fini(struct exporters *exporters);

static inline void exporters_cleanup(struct exporters *exporters)
{
    exporters_fini(exporters);
}

/* Is it one of them, "strace" included? */
bool exporters_has(const struct exporters *exporters, const char *name);

/* What was chosen. */
struct exporters_choice {
    bool has_strace;
    struct buf preload; /* LD_PRELOAD's new part: paths, ':' between them */
};

/* What is to be run, under whose launcher. Borrowed. */
struct exporters_program {
    const char *path;
    const struct binary *binary;
    enum binary_mpi launcher;
};

/*
 * Chooses by `wanted` ("mpi,strace"; "all"; NULL: what costs nothing) for the program `path`, which is `binary`, under
 * a launcher of `launcher`. -ENOENT: an exporter that isn't installed, with the list of those that are.
 */
MUST_CHECK int exporters_choose(const struct exporters *exporters, const char *wanted,
                                const struct exporters_program *program, struct exporters_choice *out_choice,
                                struct error *err);

/* Appends the path of exporter `name`, that of MPI for `mpi`. */
void exporters_path(const struct exporters *exporters, const char *name, enum binary_mpi mpi, struct buf *out);

#endif
