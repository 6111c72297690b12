/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * binary: what a program is, as far as it decides what can be preloaded into it: static, set-uid, of which MPI.
 *
 * Reads the ELF file's headers and the list of its libraries, not those of the libraries themselves. Any thread.
 */
#ifndef RUN_BINARY_H
#define RUN_BINARY_H

#include <stdbool.h>
#include <stddef.h>

#include "util/cursor.h"
#include "util/error.h"

enum binary_mpi { BINARY_MPI_NONE, BINARY_MPI_OPENMPI, BINARY_MPI_MPICH };

struct binary {
    bool is_elf;               /* else a script, or something else that execve() may know */
    bool is_static;            /* has no loader: nothing can be preloaded */
    bool is_privileged;        /* set-uid or set-gid for us: the loader ignores LD_PRELOAD */
    bool is_foreign;           /* of another architecture */
    bool has_instrument_hooks; /* calls __cyg_profile_func_enter: was built with -finstrument-functions */
    enum binary_mpi mpi;
};

/* Of the file `path`. open()'s and read()'s errors. A file that is no ELF, or a broken one, is no failure. */
MUST_CHECK int binary_look(const char *path, struct binary *out_binary, struct error *err);

/* The pure part, of a whole file: fills all but is_privileged. False: no ELF, or a broken one. */
bool binary_parse(struct cursor file, struct binary *out_binary);

/* Is it, by its name, a program that starts others: mpirun, srun, a shell? "/usr/bin/mpirun.openmpi" is one, too. */
bool binary_is_starter(const char *path);

/* The library that a dependency is of. */
enum binary_mpi binary_mpi_of(const char *library);

#endif
