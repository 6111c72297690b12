/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * messages: every way to send from rank to rank, with amounts that tell them apart. Two ranks or more; rank 0 and 1
 * talk, the others take part in barriers.
 */
#include "expect.h"

enum { ROOM = 100000 };

static char buffer[ROOM];
static char other[ROOM];
static int rank;

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    expect_call("mpi_barrier", 0, 0);
}

/* Each mode of sending, received with and without a status, in part, and from anybody. */
static void blocking(void)
{
    MPI_Status status;
    double numbers[64] = {0};
    if (rank == 0) {
        MPI_Send(buffer, 1001, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        expect_call("mpi_send", 0, 1001);
        MPI_Send(numbers, 64, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
        expect_call("mpi_send", 0, 512);
        MPI_Ssend(buffer, 17, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        expect_call("mpi_ssend", 0, 17);
        MPI_Send(buffer, 0, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        expect_call("mpi_send", 0, 0);
        MPI_Send(buffer, 5000, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
        expect_call("mpi_send", 0, 0);
        MPI_Buffer_attach(other, ROOM);
        expect_call("mpi_buffer_attach", 0, 0);
        MPI_Bsend(buffer, 333, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        expect_call("mpi_bsend", 0, 333);
        void *detached;
        int detached_bytes;
        MPI_Buffer_detach(&detached, &detached_bytes);
        expect_call("mpi_buffer_detach", 0, 0);
    } else if (rank == 1) {
        MPI_Recv(buffer, ROOM, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(numbers, 64, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        EXPECT_THAT(status.MPI_SOURCE == 0 && status.MPI_TAG == 1);
        MPI_Recv(buffer, 18, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &status);
        MPI_Recv(buffer, 18, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(buffer, 18, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(buffer, ROOM, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect_calls("mpi_recv", 6, 1001 + 512 + 17 + 0 + 0 + 333, 0);
    }
    barrier();
}

/* A receive that is ready first, as Rsend wants it; matched probes. */
static void ready_and_matched(void)
{
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    int flag = 0;
    if (rank == 1) {
        MPI_Irecv(buffer, 500, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &request);
        barrier();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect_call("mpi_irecv", 444, 0);
        expect_call("mpi_wait", 0, 0);
        MPI_Mprobe(0, 3, MPI_COMM_WORLD, &message, &status);
        expect_call("mpi_mprobe", 0, 0);
        MPI_Mrecv(buffer, ROOM, MPI_CHAR, &message, MPI_STATUS_IGNORE);
        expect_call("mpi_mrecv", 88, 0);
        MPI_Mprobe(0, 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        expect_call("mpi_mprobe", 0, 0);
        MPI_Imrecv(buffer, ROOM, MPI_CHAR, &message, &request);
        expect_call("mpi_imrecv", 99, 0);
        MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
        expect_call("mpi_waitall", 0, 0);
        MPI_Probe(0, 4, MPI_COMM_WORLD, &status);
        expect_call("mpi_probe", 0, 0);
        MPI_Iprobe(0, 4, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        expect_call("mpi_iprobe", 0, 0);
        MPI_Recv(buffer, ROOM, MPI_CHAR, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect_call("mpi_recv", 5, 0);
        return;
    }
    barrier();
    if (rank == 0) {
        MPI_Rsend(buffer, 444, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
        expect_call("mpi_rsend", 0, 444);
        MPI_Send(buffer, 88, MPI_CHAR, 1, 3, MPI_COMM_WORLD);
        MPI_Send(buffer, 99, MPI_CHAR, 1, 3, MPI_COMM_WORLD);
        MPI_Send(buffer, 5, MPI_CHAR, 1, 4, MPI_COMM_WORLD);
        expect_calls("mpi_send", 3, 0, 88 + 99 + 5);
    }
}

static void exchange(void)
{
    if (rank > 1)
        return;
    int peer = 1 - rank;
    /* Rank 0 sends 700 bytes, rank 1 900. */
    int sent = rank == 0 ? 700 : 900;
    MPI_Sendrecv(buffer, sent, MPI_CHAR, peer, 5, other, ROOM, MPI_CHAR, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect_call("mpi_sendrecv", 1600 - sent, sent);
    MPI_Sendrecv(buffer, 300, MPI_CHAR, rank == 0 ? 1 : MPI_PROC_NULL, 5, other, ROOM, MPI_CHAR,
                 rank == 1 ? 0 : MPI_PROC_NULL, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect_call("mpi_sendrecv", rank == 1 ? 300 : 0, rank == 0 ? 300 : 0);
    MPI_Sendrecv_replace(buffer, 250, MPI_CHAR, peer, 5, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect_call("mpi_sendrecv_replace", 250, 250);
}

/* A matrix' column: 10 of 100 doubles, with holes that don't travel. Received as bytes in a row. */
static void derived(void)
{
    static double matrix[100];
    MPI_Datatype column;
    if (rank > 1)
        return;
    MPI_Type_vector(10, 1, 10, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    expect_call("mpi_type_vector", 0, 0);
    expect_call("mpi_type_commit", 0, 0);
    if (rank == 0) {
        MPI_Send(matrix, 1, column, 1, 6, MPI_COMM_WORLD);
        expect_call("mpi_send", 0, 80);
        MPI_Send(matrix, 10, MPI_DOUBLE, 1, 6, MPI_COMM_WORLD);
        expect_call("mpi_send", 0, 80);
    } else {
        MPI_Recv(matrix, 10, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(matrix, 1, column, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect_calls("mpi_recv", 2, 160, 0);
    }
    MPI_Type_free(&column);
    expect_call("mpi_type_free", 0, 0);
}

/* The same as one persistent request on each side, started three times, the last two at once with others. */
static void persistent(void)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (rank > 1)
        return;
    if (rank == 0) {
        MPI_Send_init(buffer, 40, MPI_CHAR, 1, 7, MPI_COMM_WORLD, &requests[0]);
        MPI_Ssend_init(buffer, 60, MPI_CHAR, 1, 8, MPI_COMM_WORLD, &requests[1]);
        expect_call("mpi_send_init", 0, 3 * 40);
        expect_call("mpi_ssend_init", 0, 2 * 60);
    } else {
        MPI_Recv_init(buffer, 90, MPI_CHAR, 0, 7, MPI_COMM_WORLD, &requests[0]);
        MPI_Recv_init(other, 90, MPI_CHAR, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &requests[1]);
        expect_calls("mpi_recv_init", 2, 3 * 40 + 2 * 60, 0);
    }
    MPI_Start(&requests[0]);
    expect_call("mpi_start", 0, 0);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    expect_call("mpi_wait", 0, 0);
    for (int i = 0; i < 2; i++) {
        MPI_Startall(2, requests);
        expect_call("mpi_startall", 0, 0);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        expect_call("mpi_waitall", 0, 0);
    }
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* inactive: nothing more */
    expect_call("mpi_wait", 0, 0);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    expect_calls("mpi_request_free", 2, 0, 0);
}

/* A receive that is cancelled receives nothing. */
static void cancelled(void)
{
    MPI_Request request;
    if (rank != 1)
        return;
    MPI_Irecv(buffer, 1000, MPI_CHAR, 0, 99, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Irecv(buffer, 1000, MPI_CHAR, MPI_PROC_NULL, 99, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_calls("mpi_irecv", 2, 0, 0);
    expect_calls("mpi_wait", 2, 0, 0);
    expect_call("mpi_cancel", 0, 0);
}

int main(int argc, char **argv)
{
    int ranks;
    expect_begin(&argc, &argv, &rank, &ranks);
    blocking();
    ready_and_matched();
    exchange();
    derived();
    persistent();
    cancelled();
    expect_end(argv, rank);
    return 0;
}
