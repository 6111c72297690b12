/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stencil: heat in a plane, as such programs are written: a Cartesian grid of ranks, borders exchanged with four
 * neighbours in each step, columns by a derived type, and a sum now and then.
 *
 *   stencil DIRECTORY SIDE STEPS
 */
#include "expect.h"

static int rank, ranks;
static int side, steps, stride;
static double *now, *then;
static MPI_Comm grid;
static MPI_Datatype column;
static int up, down, left, right;

static double *at(double *plane, int row, int place)
{
    return plane + (size_t)row * (size_t)stride + place;
}

static void exchange(void)
{
    MPI_Request requests[8];
    MPI_Irecv(at(now, 0, 1), side, MPI_DOUBLE, up, 1, grid, &requests[0]);
    MPI_Irecv(at(now, side + 1, 1), side, MPI_DOUBLE, down, 2, grid, &requests[1]);
    MPI_Irecv(at(now, 1, 0), 1, column, left, 3, grid, &requests[2]);
    MPI_Irecv(at(now, 1, side + 1), 1, column, right, 4, grid, &requests[3]);
    MPI_Isend(at(now, side, 1), side, MPI_DOUBLE, down, 1, grid, &requests[4]);
    MPI_Isend(at(now, 1, 1), side, MPI_DOUBLE, up, 2, grid, &requests[5]);
    MPI_Isend(at(now, 1, side), 1, column, right, 3, grid, &requests[6]);
    MPI_Isend(at(now, 1, 1), 1, column, left, 4, grid, &requests[7]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    int real = (up >= 0) + (down >= 0) + (left >= 0) + (right >= 0);
    expect_calls("mpi_irecv", 4, (long long)real * side * 8, 0);
    expect_calls("mpi_isend", 4, 0, (long long)real * side * 8);
    expect_call("mpi_waitall", 0, 0);
}

static void step(void)
{
    exchange();
    for (int row = 1; row <= side; row++) {
        for (int place = 1; place <= side; place++)
            *at(then, row, place) = 0.25 * (*at(now, row - 1, place) + *at(now, row + 1, place) +
                                            *at(now, row, place - 1) + *at(now, row, place + 1));
    }
    double *kept = now;
    now = then;
    then = kept;
}

static void make_grid(void)
{
    int sides[2] = {0, 0};
    int has_end[2] = {0, 0};
    MPI_Dims_create(ranks, 2, sides);
    MPI_Cart_create(MPI_COMM_WORLD, 2, sides, has_end, 0, &grid);
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &left, &right);
    MPI_Type_vector(side, 1, stride, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    expect_call("mpi_dims_create", 0, 0);
    expect_call("mpi_cart_create", 0, 0);
    expect_calls("mpi_cart_shift", 2, 0, 0);
    expect_call("mpi_type_vector", 0, 0);
    expect_call("mpi_type_commit", 0, 0);
}

int main(int argc, char **argv)
{
    expect_begin(&argc, &argv, &rank, &ranks);
    side = (int)strtol(argv[2], NULL, 10);
    steps = (int)strtol(argv[3], NULL, 10);
    stride = side + 2;
    now = calloc((size_t)stride * (size_t)stride, sizeof *now);
    then = calloc((size_t)stride * (size_t)stride, sizeof *then);
    EXPECT_THAT(now != NULL && then != NULL);
    make_grid();
    *at(now, side / 2, side / 2) = 1;
    for (int i = 0; i < steps; i++) {
        double own = *at(now, 1, 1);
        double sum = 0;
        step();
        if (i % 10 == 0) {
            MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, grid);
            expect_call("mpi_allreduce", 8, 8);
        }
    }
    expect_end(argv, rank);
    return 0;
}
