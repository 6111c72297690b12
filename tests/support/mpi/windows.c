/* SPDX-License-Identifier: BSD-3-Clause */
/* windows: each one-sided operation, from each rank on the next one's window. */
#include "expect.h"

enum { ROOM = 1000 };

static int rank, ranks;
static int origin[ROOM], result[ROOM], window[ROOM];
static MPI_Win win;

static void fence(void)
{
    MPI_Win_fence(0, win);
    expect_call("mpi_win_fence", 0, 0);
}

static void simple(int target)
{
    fence();
    MPI_Put(origin, 100, MPI_INT, target, 0, 100, MPI_INT, win);
    expect_call("mpi_put", 0, 400);
    MPI_Put(origin, 100, MPI_INT, MPI_PROC_NULL, 0, 100, MPI_INT, win);
    expect_call("mpi_put", 0, 0);
    fence();
    MPI_Get(result, 70, MPI_INT, target, 0, 70, MPI_INT, win);
    expect_call("mpi_get", 280, 0);
    fence();
    MPI_Accumulate(origin, 30, MPI_INT, target, 0, 30, MPI_INT, MPI_SUM, win);
    expect_call("mpi_accumulate", 0, 120);
    fence();
    MPI_Get_accumulate(origin, 20, MPI_INT, result, 20, MPI_INT, target, 0, 20, MPI_INT, MPI_SUM, win);
    expect_call("mpi_get_accumulate", 80, 80);
    MPI_Get_accumulate(NULL, 0, MPI_INT, result, 20, MPI_INT, target, 0, 20, MPI_INT, MPI_NO_OP, win);
    expect_call("mpi_get_accumulate", 80, 0);
    fence();
    MPI_Fetch_and_op(origin, result, MPI_INT, target, 0, MPI_SUM, win);
    expect_call("mpi_fetch_and_op", 4, 4);
    MPI_Fetch_and_op(NULL, result, MPI_INT, target, 0, MPI_NO_OP, win);
    expect_call("mpi_fetch_and_op", 4, 0);
    fence();
    MPI_Compare_and_swap(origin, origin, result, MPI_INT, target, 0, win);
    expect_call("mpi_compare_and_swap", 4, 8);
    fence();
}

static void with_requests(int target)
{
    MPI_Request request;
    MPI_Win_lock_all(0, win);
    MPI_Rput(origin, 10, MPI_INT, target, 0, 10, MPI_INT, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Rget(result, 10, MPI_INT, target, 0, 10, MPI_INT, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Raccumulate(origin, 10, MPI_INT, target, 0, 10, MPI_INT, MPI_SUM, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
    expect_call("mpi_win_lock_all", 0, 0);
    expect_call("mpi_win_unlock_all", 0, 0);
    expect_call("mpi_rput", 0, 40);
    expect_call("mpi_rget", 40, 0);
    expect_call("mpi_raccumulate", 0, 40);
    expect_calls("mpi_wait", 3, 0, 0);
}

int main(int argc, char **argv)
{
    expect_begin(&argc, &argv, &rank, &ranks);
    MPI_Win_create(window, sizeof window, sizeof window[0], MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    expect_call("mpi_win_create", 0, 0);
    simple((rank + 1) % ranks);
    with_requests((rank + 1) % ranks);
    MPI_Win_free(&win);
    expect_call("mpi_win_free", 0, 0);
    expect_end(argv, rank);
    return 0;
}
