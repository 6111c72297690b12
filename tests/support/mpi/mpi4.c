/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi4: what came with MPI 4.0: large counts, persistent collectives, partitioned messages, sessions. */
#include "expect.h"

enum { ROOM = 4096 };

static int rank, ranks;
static int send[ROOM], receive[ROOM];

static void large_counts(void)
{
    MPI_Datatype block, many;
    MPI_Count counts[16];
    MPI_Aint places[16];
    MPI_Sendrecv_c(send, 100, MPI_INT, (rank + 1) % ranks, 1, receive, ROOM, MPI_INT, (rank + ranks - 1) % ranks, 1,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect_call("mpi_sendrecv_c", 400, 400);
    for (int i = 0; i < ranks; i++) {
        counts[i] = i + 1;
        places[i] = 16 * i;
    }
    MPI_Allgatherv_c(send, rank + 1, MPI_INT, receive, counts, places, MPI_INT, MPI_COMM_WORLD);
    expect_call("mpi_allgatherv_c", ranks * (ranks + 1) / 2 * 4, (rank + 1) * 4);

    /* A type that names the same memory again and again: five billion of them are sent to nobody but ourselves. */
    MPI_Type_contiguous(ROOM, MPI_INT, &block);
    MPI_Type_create_hvector(1000, 1, 0, block, &many);
    MPI_Type_commit(&many);
    expect_call("mpi_type_contiguous", 0, 0);
    expect_call("mpi_type_create_hvector", 0, 0);
    expect_call("mpi_type_commit", 0, 0);
    MPI_Bcast_c(send, 5000000000, many, 0, MPI_COMM_SELF);
    expect_call("mpi_bcast_c", 0, 5000000000 * 1000 * ROOM * 4);
    MPI_Type_free(&many);
    MPI_Type_free(&block);
    expect_calls("mpi_type_free", 2, 0, 0);
}

static void persistent_collective(void)
{
    MPI_Request request;
    MPI_Allreduce_init(send, receive, 10, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    expect_call("mpi_allreduce_init", 3 * 40, 3 * 40);
    expect_calls("mpi_start", 3, 0, 0);
    expect_calls("mpi_wait", 3, 0, 0);
    expect_call("mpi_request_free", 0, 0);
}

static void exchange_at_once(void)
{
    MPI_Request request;
    MPI_Isendrecv(send, 30, MPI_INT, (rank + 1) % ranks, 2, receive, 30, MPI_INT, (rank + ranks - 1) % ranks, 2,
                  MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_call("mpi_isendrecv", 120, 120);
    expect_call("mpi_wait", 0, 0);
}

/* Four partitions of 8 integers, from rank 0 to rank 1. */
static void partitioned(void)
{
    MPI_Request request;
    if (rank > 1)
        return;
    if (rank == 0) {
        MPI_Psend_init(send, 4, 8, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Pready_range(0, 3, request);
        expect_call("mpi_psend_init", 0, 128);
        expect_call("mpi_pready_range", 0, 0);
    } else {
        MPI_Precv_init(receive, 4, 8, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        expect_call("mpi_precv_init", 128, 0);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    expect_call("mpi_start", 0, 0);
    expect_call("mpi_wait", 0, 0);
    expect_call("mpi_request_free", 0, 0);
}

static void body(void)
{
    large_counts();
    persistent_collective();
    exchange_at_once();
    partitioned();
}

/* With the argument "session", MPI is begun and ended by a session alone. */
static void in_session(char **argv)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "cicada", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Allreduce(send, receive, 10, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    const char *const calls[] = {"mpi_session_init",
                                 "mpi_group_from_session_pset",
                                 "mpi_comm_create_from_group",
                                 "mpi_comm_rank",
                                 "mpi_comm_free",
                                 "mpi_group_free",
                                 "mpi_session_finalize"};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        expect_call(calls[i], 0, 0);
    expect_call("mpi_allreduce", 40, 40);
    expect_write(argv, rank);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[2], "session") == 0) {
        in_session(argv);
        return 0;
    }
    expect_begin(&argc, &argv, &rank, &ranks);
    body();
    expect_end(argv, rank);
    return 0;
}
