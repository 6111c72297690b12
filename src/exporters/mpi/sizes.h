/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sizes: how many bytes a call moves, as seen by the rank that makes it: what leaves its buffers, and what arrives in
 * them. One function a rule of sizes.table; MPI 4.0 is the document meant by chapter numbers.
 *
 *   - Each rank counts its own contribution and its own receipt: a broadcast's root sends its buffer once, whatever the
 *     algorithm and the number of ranks; a gather's root receives a block from each rank.
 *   - In place, what stays where it is isn't counted: of a gather's root neither its sending nor its receiving itself.
 *     What is reduced in place is read and replaced, so it is counted.
 *   - MPI_PROC_NULL moves nothing, nor does a rank of an intercommunicator that takes no part.
 *   - Sizes are those of the data (MPI_Type_size_x): holes in derived types don't travel.
 *
 * Called after the call has succeeded, so that arguments are known to be valid. Any thread.
 */
#ifndef MPI_SIZES_H
#define MPI_SIZES_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct sizes {
    uint64_t in, out; /* bytes */
};

/* An array of counts of either width, or none. */
struct sizes_counts {
    const int *narrow;
    const MPI_Count *wide;
};

/* An array of ints, and one of large counts. Borrowed. */
static inline struct sizes_counts sizes_narrow(const int *counts)
{
    return (struct sizes_counts){.narrow = counts};
}

/* The other one. */
static inline struct sizes_counts sizes_wide(const MPI_Count *counts)
{
    return (struct sizes_counts){.wide = counts};
}

/* Whichever it is. */
#define SIZES_COUNTS(counts) _Generic((counts)[0], int : sizes_narrow, MPI_Count : sizes_wide)(counts)

/* What the status of a completed call says has moved. Implementations keep bytes, so asking for bytes is exact. */
uint64_t sizes_of_status(const MPI_Status *status);

/* The same for a request. One that receives may have been cancelled; of others that isn't known. */
uint64_t sizes_of_request(const MPI_Status *status, bool is_receive);

/* Below, the rules of sizes.table: each adds to `moved` what a call with these arguments moves. MPI has checked them.
 */

/* Point to point and one-sided: to and from a rank, or nobody. `count` of partitions is that of one. */
void sizes_sent(struct sizes *moved, MPI_Count count, MPI_Datatype type, int to);
void sizes_got(struct sizes *moved, MPI_Count count, MPI_Datatype type, int from);
void sizes_partitions_sent(struct sizes *moved, int partitions, MPI_Count count, MPI_Datatype type, int to);
void sizes_partitions_received(struct sizes *moved, int partitions, MPI_Count count, MPI_Datatype type, int from);

/* One-sided, both ways. */
void sizes_get_accumulate(struct sizes *moved, MPI_Count origin_count, MPI_Datatype origin_type, MPI_Count result_count,
                          MPI_Datatype result_type, int target, MPI_Op op);
void sizes_fetch_and_op(struct sizes *moved, MPI_Datatype type, int target, MPI_Op op);
void sizes_compare_and_swap(struct sizes *moved, MPI_Datatype type, int target);

/* Collectives with a root. */
void sizes_bcast(struct sizes *moved, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm);
void sizes_gather(struct sizes *moved, const void *send_buffer, MPI_Count send_count, MPI_Datatype send_type,
                  MPI_Count recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm);
void sizes_gatherv(struct sizes *moved, const void *send_buffer, MPI_Count send_count, MPI_Datatype send_type,
                   struct sizes_counts recv_counts, MPI_Datatype recv_type, int root, MPI_Comm comm);
void sizes_scatter(struct sizes *moved, MPI_Count send_count, MPI_Datatype send_type, const void *recv_buffer,
                   MPI_Count recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm);
void sizes_scatterv(struct sizes *moved, struct sizes_counts send_counts, MPI_Datatype send_type,
                    const void *recv_buffer, MPI_Count recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm);
void sizes_reduce(struct sizes *moved, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm);

/* Collectives that reduce for all. */
void sizes_allreduce(struct sizes *moved, MPI_Count count, MPI_Datatype type);
void sizes_exscan(struct sizes *moved, MPI_Count count, MPI_Datatype type, MPI_Comm comm);
void sizes_reduce_scatter(struct sizes *moved, struct sizes_counts counts, MPI_Datatype type, MPI_Comm comm);
void sizes_reduce_scatter_block(struct sizes *moved, MPI_Count count, MPI_Datatype type, MPI_Comm comm);

/* Collectives of all with all. */
void sizes_allgather(struct sizes *moved, const void *send_buffer, MPI_Count send_count, MPI_Datatype send_type,
                     MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm);
void sizes_allgatherv(struct sizes *moved, const void *send_buffer, MPI_Count send_count, MPI_Datatype send_type,
                      struct sizes_counts recv_counts, MPI_Datatype recv_type, MPI_Comm comm);
void sizes_alltoall(struct sizes *moved, const void *send_buffer, MPI_Count send_count, MPI_Datatype send_type,
                    MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm);
void sizes_alltoallv(struct sizes *moved, const void *send_buffer, struct sizes_counts send_counts,
                     MPI_Datatype send_type, struct sizes_counts recv_counts, MPI_Datatype recv_type, MPI_Comm comm);
void sizes_alltoallw(struct sizes *moved, const void *send_buffer, struct sizes_counts send_counts,
                     const MPI_Datatype *send_types, struct sizes_counts recv_counts, const MPI_Datatype *recv_types,
                     MPI_Comm comm);

/* Collectives over neighbours. */
void sizes_neighbor_allgather(struct sizes *moved, MPI_Count send_count, MPI_Datatype send_type, MPI_Count recv_count,
                              MPI_Datatype recv_type, MPI_Comm comm);
void sizes_neighbor_allgatherv(struct sizes *moved, MPI_Count send_count, MPI_Datatype send_type,
                               struct sizes_counts recv_counts, MPI_Datatype recv_type, MPI_Comm comm);
void sizes_neighbor_alltoall(struct sizes *moved, MPI_Count send_count, MPI_Datatype send_type, MPI_Count recv_count,
                             MPI_Datatype recv_type, MPI_Comm comm);
void sizes_neighbor_alltoallv(struct sizes *moved, struct sizes_counts send_counts, MPI_Datatype send_type,
                              struct sizes_counts recv_counts, MPI_Datatype recv_type, MPI_Comm comm);
void sizes_neighbor_alltoallw(struct sizes *moved, struct sizes_counts send_counts, const MPI_Datatype *send_types,
                              struct sizes_counts recv_counts, const MPI_Datatype *recv_types, MPI_Comm comm);

#endif
