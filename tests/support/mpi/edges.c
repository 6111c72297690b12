/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * edges: calls where MPI isn't there, or ends otherwise than by MPI_Finalize. Argument 1:
 *
 *   never      links MPI and never calls it
 *   outside    calls before MPI_Init and after MPI_Finalize, which are allowed
 *   abort      MPI_Abort with status 3
 *   errors     calls that fail, and say so: they move nothing
 *   wait       rank 1 waits for rank 0, which sleeps 200 ms
 *   hang       counts, says so in the file that argument 2 names, and waits to be killed
 */
#include <unistd.h>

#include "expect.h"

static int buffer[100];

static int errors(int rank)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT_THAT(MPI_Send(buffer, 10, MPI_INT, 1000, 1, MPI_COMM_WORLD) != MPI_SUCCESS);
    EXPECT_THAT(MPI_Irecv(buffer, -1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request) != MPI_SUCCESS);
    if (rank == 0)
        MPI_Send(buffer, 10, MPI_INT, 1, 1, MPI_COMM_WORLD);
    if (rank == 1) {
        /* Longer than there is room for. */
        MPI_Irecv(buffer, 5, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
        EXPECT_THAT(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE) != MPI_SUCCESS);
    }
    return MPI_Finalize();
}

static void hang(const char *path)
{
    MPI_Allreduce(MPI_IN_PLACE, buffer, 10, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    FILE *file = fopen(path, "w");
    EXPECT_THAT(file != NULL && fclose(file) == 0);
    pause();
}

static int begun(const char *what, char **argv)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(what, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (strcmp(what, "errors") == 0)
        return errors(rank);
    if (strcmp(what, "hang") == 0)
        hang(argv[2]);
    if (strcmp(what, "wait") == 0 && rank == 0)
        (void)usleep(200000);
    if (strcmp(what, "wait") == 0 && rank == 0)
        MPI_Send(buffer, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    if (strcmp(what, "wait") == 0 && rank == 1)
        MPI_Recv(buffer, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return MPI_Finalize();
}

int main(int argc, char **argv)
{
    int flag = 0;
    int version[2];
    const char *what = argv[1];
    if (strcmp(what, "never") == 0)
        return argc > 100 ? MPI_Initialized(&flag) : 7;
    if (strcmp(what, "outside") == 0) {
        EXPECT_THAT(MPI_Initialized(&flag) == MPI_SUCCESS && !flag);
        EXPECT_THAT(MPI_Get_version(&version[0], &version[1]) == MPI_SUCCESS);
    }
    MPI_Init(&argc, &argv);
    int result = begun(what, argv);
    if (strcmp(what, "outside") == 0)
        EXPECT_THAT(MPI_Finalized(&flag) == MPI_SUCCESS && flag);
    return result;
}
