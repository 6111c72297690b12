/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collectives: each collective, as it is, in place, and without waiting, over all ranks, over the two sides of an
 * intercommunicator, and over neighbourhoods. Rank r contributes amounts that depend on r.
 */
#include "expect.h"

enum { RANKS_MAX = 16, ROOM = 1 << 16 };

static int rank, ranks;
static int send[ROOM], receive[ROOM];
static int counts[RANKS_MAX], displacements[RANKS_MAX];
static int other_counts[RANKS_MAX], other_displacements[RANKS_MAX];
static MPI_Request request;

static void wait_for(void)
{
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_call("mpi_wait", 0, 0);
}

/* A block of i + 1 integers for rank i. Returns their sum. */
static int make_counts(void)
{
    int sum = 0;
    for (int i = 0; i < ranks; i++) {
        counts[i] = i + 1;
        displacements[i] = sum;
        sum += counts[i];
    }
    return sum;
}

static void rooted(void)
{
    const int root = 1;
    int sum = make_counts();
    int own = counts[rank];
    int is_root = rank == root;
    void *in_place = MPI_IN_PLACE;

    MPI_Bcast(send, 100, MPI_INT, root, MPI_COMM_WORLD);
    expect_call("mpi_bcast", is_root ? 0 : 400, is_root ? 400 : 0);
    MPI_Ibcast(send, 50, MPI_INT, root, MPI_COMM_WORLD, &request);
    wait_for();
    expect_call("mpi_ibcast", is_root ? 0 : 200, is_root ? 200 : 0);

    MPI_Gather(send, 10, MPI_INT, receive, 10, MPI_INT, root, MPI_COMM_WORLD);
    expect_call("mpi_gather", is_root ? ranks * 40 : 0, 40);
    MPI_Gather(is_root ? in_place : send, 10, MPI_INT, receive, 10, MPI_INT, root, MPI_COMM_WORLD);
    expect_call("mpi_gather", is_root ? (ranks - 1) * 40 : 0, is_root ? 0 : 40);
    MPI_Gatherv(send, own, MPI_INT, receive, counts, displacements, MPI_INT, root, MPI_COMM_WORLD);
    expect_call("mpi_gatherv", is_root ? sum * 4 : 0, own * 4);
    MPI_Igatherv(is_root ? in_place : send, own, MPI_INT, receive, counts, displacements, MPI_INT, root, MPI_COMM_WORLD,
                 &request);
    wait_for();
    expect_call("mpi_igatherv", is_root ? (sum - own) * 4 : 0, is_root ? 0 : own * 4);

    MPI_Scatter(send, 20, MPI_INT, receive, 20, MPI_INT, root, MPI_COMM_WORLD);
    expect_call("mpi_scatter", 80, is_root ? ranks * 80 : 0);
    MPI_Scatter(send, 20, MPI_INT, is_root ? in_place : receive, 20, MPI_INT, root, MPI_COMM_WORLD);
    expect_call("mpi_scatter", is_root ? 0 : 80, is_root ? (ranks - 1) * 80 : 0);
    MPI_Scatterv(send, counts, displacements, MPI_INT, receive, own, MPI_INT, root, MPI_COMM_WORLD);
    expect_call("mpi_scatterv", own * 4, is_root ? sum * 4 : 0);
    MPI_Scatterv(send, counts, displacements, MPI_INT, is_root ? in_place : receive, own, MPI_INT, root,
                 MPI_COMM_WORLD);
    expect_call("mpi_scatterv", is_root ? 0 : own * 4, is_root ? (sum - own) * 4 : 0);

    MPI_Reduce(send, receive, 25, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    expect_call("mpi_reduce", is_root ? 100 : 0, 100);
    MPI_Reduce(is_root ? in_place : send, receive, 25, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    expect_call("mpi_reduce", is_root ? 100 : 0, 100);
}

static void reduced(void)
{
    int sum = make_counts();
    int own = counts[rank];
    MPI_Allreduce(send, receive, 30, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_call("mpi_allreduce", 120, 120);
    MPI_Allreduce(MPI_IN_PLACE, receive, 30, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_call("mpi_allreduce", 120, 120);
    MPI_Iallreduce(send, receive, 7, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    wait_for();
    expect_call("mpi_iallreduce", 28, 28);
    MPI_Scan(send, receive, 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_call("mpi_scan", 20, 20);
    MPI_Exscan(send, receive, 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_call("mpi_exscan", rank == 0 ? 0 : 20, 20);
    MPI_Reduce_scatter(send, receive, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_call("mpi_reduce_scatter", own * 4, sum * 4);
    MPI_Reduce_scatter_block(send, receive, 6, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_call("mpi_reduce_scatter_block", 24, ranks * 24);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_call("mpi_barrier", 0, 0);
}

static int op_calls;

/* A reduction of the program's own, which calls MPI itself. */
static void add_and_ask(void *in, void *in_out, int *length, MPI_Datatype *type)
{
    int is_initialized = 0;
    (void)type;
    op_calls++;
    MPI_Initialized(&is_initialized);
    for (int i = 0; i < *length; i++)
        ((int *)in_out)[i] += ((const int *)in)[i];
}

/* Calls from callbacks are the program's. How many there are is the algorithm's choice. */
static void with_callback(void)
{
    MPI_Op op;
    MPI_Op_create(add_and_ask, 1, &op);
    MPI_Allreduce(send, receive, 3, MPI_INT, op, MPI_COMM_WORLD);
    MPI_Op_free(&op);
    expect_call("mpi_op_create", 0, 0);
    expect_call("mpi_allreduce", 12, 12);
    expect_call("mpi_op_free", 0, 0);
    expect_calls("mpi_initialized", op_calls, 0, 0);
    EXPECT_THAT(op_calls > 0);
}

static void gathered(void)
{
    int sum = make_counts();
    int own = counts[rank];
    MPI_Allgather(send, 11, MPI_INT, receive, 11, MPI_INT, MPI_COMM_WORLD);
    expect_call("mpi_allgather", ranks * 44, 44);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive, 11, MPI_INT, MPI_COMM_WORLD);
    expect_call("mpi_allgather", (ranks - 1) * 44, 44);
    MPI_Allgatherv(send, own, MPI_INT, receive, counts, displacements, MPI_INT, MPI_COMM_WORLD);
    expect_call("mpi_allgatherv", sum * 4, own * 4);
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive, counts, displacements, MPI_INT, MPI_COMM_WORLD,
                    &request);
    wait_for();
    expect_call("mpi_iallgatherv", (sum - own) * 4, own * 4);
}

/* Rank s sends s + 1 integers to each: from rank i arrive i + 1. */
static void all_to_all(void)
{
    MPI_Datatype types[RANKS_MAX], other_types[RANKS_MAX];
    int sum = make_counts();
    int own = rank + 1;
    for (int i = 0; i < ranks; i++) {
        other_counts[i] = own;
        other_displacements[i] = own * i;
        types[i] = other_types[i] = MPI_INT;
    }
    MPI_Alltoall(send, 9, MPI_INT, receive, 9, MPI_INT, MPI_COMM_WORLD);
    expect_call("mpi_alltoall", ranks * 36, ranks * 36);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive, 9, MPI_INT, MPI_COMM_WORLD);
    expect_call("mpi_alltoall", (ranks - 1) * 36, (ranks - 1) * 36);
    MPI_Alltoallv(send, other_counts, other_displacements, MPI_INT, receive, counts, displacements, MPI_INT,
                  MPI_COMM_WORLD);
    expect_call("mpi_alltoallv", sum * 4, own * ranks * 4);
    for (int i = 0; i < ranks; i++)
        other_displacements[i] *= 4;
    for (int i = 0; i < ranks; i++)
        displacements[i] *= 4;
    MPI_Alltoallw(send, other_counts, other_displacements, other_types, receive, counts, displacements, types,
                  MPI_COMM_WORLD);
    expect_call("mpi_alltoallw", sum * 4, own * ranks * 4);
    /* In place all blocks have one size here: both sides must agree. */
    for (int i = 0; i < ranks; i++) {
        counts[i] = 3;
        displacements[i] = 3 * i;
    }
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, receive, counts, displacements, MPI_INT, MPI_COMM_WORLD);
    expect_call("mpi_alltoallv", (ranks - 1) * 12, (ranks - 1) * 12);
}

/* Two sides: all ranks but the last, and the last. Amounts of one are counted by the number of ranks of the other. */
static void between_groups(void)
{
    MPI_Comm side, inter;
    int is_last = rank == ranks - 1;
    int others = is_last ? ranks - 1 : 1;
    MPI_Comm_split(MPI_COMM_WORLD, is_last, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, is_last ? 0 : ranks - 1, 1, &inter);
    expect_call("mpi_comm_split", 0, 0);
    expect_call("mpi_intercomm_create", 0, 0);

    /* Rank 1 of the many has what the last one wants. */
    int is_root = rank == 1;
    int root = is_last ? 1 : is_root ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Bcast(send, 100, MPI_INT, root, inter);
    expect_call("mpi_bcast", is_last ? 400 : 0, is_root ? 400 : 0);
    MPI_Gather(send, 10, MPI_INT, receive, 10, MPI_INT, root, inter);
    expect_call("mpi_gather", is_root ? 40 : 0, is_last ? 40 : 0);
    MPI_Scatter(send, 12, MPI_INT, receive, 12, MPI_INT, root, inter);
    expect_call("mpi_scatter", is_last ? 48 : 0, is_root ? 48 : 0);
    MPI_Reduce(send, receive, 14, MPI_INT, MPI_SUM, root, inter);
    expect_call("mpi_reduce", is_root ? 56 : 0, is_last ? 56 : 0);
    /* And the other way round: the last one has what the many want. */
    root = is_last ? MPI_ROOT : 0;
    MPI_Gather(send, 10, MPI_INT, receive, 10, MPI_INT, root, inter);
    expect_call("mpi_gather", is_last ? others * 40 : 0, is_last ? 0 : 40);
    MPI_Scatter(send, 12, MPI_INT, receive, 12, MPI_INT, root, inter);
    expect_call("mpi_scatter", is_last ? 0 : 48, is_last ? others * 48 : 0);

    MPI_Allgather(send, is_last ? 3 : 5, MPI_INT, receive, is_last ? 5 : 3, MPI_INT, inter);
    expect_call("mpi_allgather", others * (is_last ? 20 : 12), is_last ? 12 : 20);
    MPI_Alltoall(send, 4, MPI_INT, receive, 4, MPI_INT, inter);
    expect_call("mpi_alltoall", others * 16, others * 16);
    MPI_Allreduce(send, receive, 8, MPI_INT, MPI_SUM, inter);
    expect_call("mpi_allreduce", 32, 32);
    /* As many for each side: 12 for each of three ranks, or 36 for one. */
    MPI_Reduce_scatter_block(send, receive, is_last ? 12 * others : 12, MPI_INT, MPI_SUM, inter);
    expect_call("mpi_reduce_scatter_block", is_last ? 48 * others : 48, 48 * (ranks - 1));

    MPI_Comm_free(&inter);
    MPI_Comm_free(&side);
    expect_calls("mpi_comm_free", 2, 0, 0);
}

/* A row of ranks with ends: the first and the last have one neighbour, and a place for nobody. */
static void neighbors(void)
{
    MPI_Comm row;
    int has_end = 0;
    int sides[2] = {2, 3};
    int places[2] = {0, 3};
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &has_end, 0, &row);
    expect_call("mpi_cart_create", 0, 0);
    int has_before = rank > 0;
    int has_after = rank < ranks - 1;
    int real = has_before + has_after;

    MPI_Neighbor_allgather(send, 6, MPI_INT, receive, 6, MPI_INT, row);
    expect_call("mpi_neighbor_allgather", real * 24, 24);
    MPI_Neighbor_alltoall(send, 6, MPI_INT, receive, 6, MPI_INT, row);
    expect_call("mpi_neighbor_alltoall", real * 24, real * 24);
    /* To the one before 2 integers, to the one after 3: from before come 3, from after 2. */
    int from[2] = {3, 2};
    MPI_Neighbor_alltoallv(send, sides, places, MPI_INT, receive, from, places, MPI_INT, row);
    expect_call("mpi_neighbor_alltoallv", has_before * 12 + has_after * 8, has_before * 8 + has_after * 12);
    MPI_Comm_free(&row);
    expect_call("mpi_comm_free", 0, 0);

    /* A graph with one direction: to the next rank, 10 integers. */
    MPI_Comm ring;
    int before = (rank + ranks - 1) % ranks;
    int after = (rank + 1) % ranks;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &after, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                   0, &ring);
    expect_call("mpi_dist_graph_create_adjacent", 0, 0);
    MPI_Neighbor_alltoall(send, 10, MPI_INT, receive, 10, MPI_INT, ring);
    expect_call("mpi_neighbor_alltoall", 40, 40);
    MPI_Ineighbor_allgather(send, 2, MPI_INT, receive, 2, MPI_INT, ring, &request);
    wait_for();
    expect_call("mpi_ineighbor_allgather", 8, 8);
    MPI_Comm_free(&ring);
    expect_call("mpi_comm_free", 0, 0);
}

/* More than 2^31 bytes in one call, none of which has to be copied: a type that names the same memory again and again.
 */
static void large(void)
{
    MPI_Datatype block, many;
    MPI_Type_contiguous(ROOM, MPI_INT, &block);
    MPI_Type_create_hvector(20000, 1, 0, block, &many);
    MPI_Type_commit(&many);
    expect_call("mpi_type_contiguous", 0, 0);
    expect_call("mpi_type_create_hvector", 0, 0);
    expect_call("mpi_type_commit", 0, 0);
    MPI_Bcast(send, 2, many, 0, MPI_COMM_SELF);
    expect_call("mpi_bcast", 0, 2LL * 20000 * ROOM * 4);
    MPI_Type_free(&many);
    MPI_Type_free(&block);
    expect_calls("mpi_type_free", 2, 0, 0);
}

int main(int argc, char **argv)
{
    expect_begin(&argc, &argv, &rank, &ranks);
    EXPECT_THAT(ranks >= 3 && ranks <= RANKS_MAX);
    rooted();
    reduced();
    with_callback();
    gathered();
    all_to_all();
    between_groups();
    neighbors();
    large();
    expect_end(argv, rank);
    return 0;
}
