/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halo: what a simulation does all day: ranks in a ring compute on their part of a bar, exchange its ends with their
 * neighbours, and now and then look together how far they are. For script/demo; knows nothing of Cicada.
 *
 *     mpirun -np 4 halo SECONDS
 */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { CELLS = 20000, ENDS = 512, STEPS_BETWEEN_LOOKS = 20, PAUSE_NS = 2000000 };

static double bar[2][CELLS + 2 * ENDS];

/* One step of diffusion. */
static double step(const double *from, double *to)
{
    double change = 0;
    for (int i = ENDS; i < CELLS + ENDS; i++) {
        to[i] = from[i] + 0.25 * (from[i - 1] - 2 * from[i] + from[i + 1]);
        change += (to[i] - from[i]) * (to[i] - from[i]);
    }
    return change;
}

static void exchange(double *cells, int left, int right)
{
    MPI_Sendrecv(cells + ENDS, ENDS, MPI_DOUBLE, left, 0, cells + CELLS + ENDS, ENDS, MPI_DOUBLE, right, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(cells + CELLS, ENDS, MPI_DOUBLE, right, 1, cells, ENDS, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank;
    int size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    double end = MPI_Wtime() + seconds;
    bar[0][ENDS + CELLS / 2] = rank == 0 ? 1e6 : 0;
    int is_over = 0;
    for (int n = 0; !is_over; n++) {
        const struct timespec pause = {.tv_nsec = PAUSE_NS}; /* stands for more work: a demonstration heats no room */
        exchange(bar[n % 2], (rank + size - 1) % size, (rank + 1) % size);
        double change = step(bar[n % 2], bar[(n + 1) % 2]);
        double all;
        if (n % STEPS_BETWEEN_LOOKS == 0) {
            MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            is_over = MPI_Wtime() >= end;
            MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        nanosleep(&pause, NULL);
    }
    MPI_Finalize();
    return 0;
}
