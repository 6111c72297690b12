/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * caller: whether a call is the program's own, told by the place that it returns to.
 *
 *   program ── MPI_Send ───────────────────────────────► counted at MPI_Send
 *   program ── mpi_send_ (Fortran) ── MPI_Send ────────► counted at MPI_Send    (MPICH's bindings call so)
 *   program ── mpi_send_ (Fortran) ── PMPI_Send ───────► counted at PMPI_Send   (Open MPI's)
 *   program ── MPI_Send of another tool ── PMPI_Send ──► counted at PMPI_Send, when that tool comes before us
 *   MPI itself ── MPI_File_iread_at_c ─────────────────► not counted: the program made another call
 *   a component of Open MPI ── MPI_Type_size_x ────────► the same; its components are libraries that it loads
 *   a binding ── PMPI_Comm_size for its own purposes ──► not counted
 *
 * So Fortran needs no wrappers of its own, whichever interface and mangling a program uses, and each call counts once,
 * with the arguments of C. A call of PMPI_X is the program's when the function that makes it is itself named after X.
 * Any thread, no locks once a place is known.
 */
#ifndef MPI_CALLER_H
#define MPI_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "exporters/mpi/symbols.h"

/* Where the MPI library is mapped; set once, before the first question. */
extern __attribute__((visibility("hidden"))) struct symbols_range caller_library;

/* Does MPI call itself? `site` is where the call of MPI_X returns to. */
static inline bool caller_is_library(const void *site)
{
    return (uintptr_t)site - caller_library.start < caller_library.bytes;
}

/* Does a component of MPI call MPI_X? To be asked within a call of MPI only: nothing else calls components. */
bool caller_is_component(const void *site);

/* Does a function that stands for `key` (mpi_send) call PMPI_X? `site` is where its call returns to. */
bool caller_is_binding(const void *site, const char *key);

/*
 * Is `symbol` a name of the function `key`? MPI_Send, mpi_send__, MPI_SEND, ompi_send_f, mpi_send_f08_ and
 * mpi_send_f08ts_ are names of mpi_send; mpi_send_f08ts_large_ is one of mpi_send_c.
 */
bool caller_is_name(const char *symbol, const char *key);

#endif
