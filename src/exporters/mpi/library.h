/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library: the functions and values of the MPI that the exporter itself needs. Its calls go to PMPI and are counted
 * nowhere. Compiled once for each MPI. Any thread.
 */
#ifndef MPI_LIBRARY_H
#define MPI_LIBRARY_H

#include <mpi.h>

#include "exporters/mpi/calls.h"

struct library {
    int (*type_size_x)(MPI_Datatype, MPI_Count *);
    int (*get_elements_x)(const MPI_Status *, MPI_Datatype, MPI_Count *);
    int (*test_cancelled)(const MPI_Status *, int *);
    int (*comm_rank)(MPI_Comm, int *);
    int (*comm_size)(MPI_Comm, int *);
    int (*comm_remote_size)(MPI_Comm, int *);
    int (*comm_test_inter)(MPI_Comm, int *);
    int (*topo_test)(MPI_Comm, int *);
    int (*cartdim_get)(MPI_Comm, int *);
    int (*cart_shift)(MPI_Comm, int, int, int *, int *);
    int (*graph_neighbors_count)(MPI_Comm, int, int *);
    int (*dist_graph_neighbors_count)(MPI_Comm, int *, int *, int *);
    int (*initialized)(int *);
    int (*finalized)(int *);
    MPI_Datatype byte;
    MPI_Op no_op;
    MPI_Comm world;
};

extern __attribute__((visibility("hidden"))) struct library library;

/*
 * The MPI that is loaded is of another kind than the one that we were compiled for: its handles and statuses are
 * others, so no call may be looked at. What the program calls is passed on to CALLS_OTHER, the function of the exporter
 * for that MPI, which lies beside ours, or of MPI where there is none. This happens to the programs of a script, of
 * which a launcher can't tell the MPI. Fixed at the first look-up.
 */
extern __attribute__((visibility("hidden"))) bool library_is_foreign;

/*
 * What to call for `function` under that name, looked up at the first call; the exporter begins with the first of all.
 * NULL when the MPI that is loaded has no such function.
 */
void *library_look_up(struct calls_function *function, enum calls_entry entry);

/* The same, quick from the second call on. */
static inline void *library_next(struct calls_function *function, enum calls_entry entry)
{
    void *next = __atomic_load_n(&function->next[entry], __ATOMIC_ACQUIRE);
    return __builtin_expect(next != NULL, 1) ? next : library_look_up(function, entry);
}

#endif
