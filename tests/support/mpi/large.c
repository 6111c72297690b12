/* SPDX-License-Identifier: BSD-3-Clause */
/* large: one message of more than 2^31 bytes, in calls whose counts are small. Needs that memory twice. */
#include "expect.h"

enum { BLOCK = 1 << 20, BLOCKS = 2200 };

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Datatype block;
    MPI_Request request;
    expect_begin(&argc, &argv, &rank, &ranks);
    char *buffer = malloc((size_t)BLOCK * BLOCKS);
    EXPECT_THAT(buffer != NULL);
    memset(buffer, rank, (size_t)BLOCK * BLOCKS);
    MPI_Type_contiguous(BLOCK, MPI_CHAR, &block);
    MPI_Type_commit(&block);
    expect_call("mpi_type_contiguous", 0, 0);
    expect_call("mpi_type_commit", 0, 0);
    if (rank == 0) {
        MPI_Send(buffer, BLOCKS, block, 1, 1, MPI_COMM_WORLD);
        MPI_Send(buffer, BLOCKS, block, 1, 1, MPI_COMM_WORLD);
        expect_calls("mpi_send", 2, 0, 2LL * BLOCK * BLOCKS);
    } else {
        MPI_Recv(buffer, BLOCKS, block, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(buffer, BLOCKS, block, 0, 1, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect_call("mpi_recv", (long long)BLOCK * BLOCKS, 0);
        expect_call("mpi_irecv", (long long)BLOCK * BLOCKS, 0);
        expect_call("mpi_wait", 0, 0);
    }
    free(buffer);
    expect_end(argv, rank);
    return 0;
}
