/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads: MPI_THREAD_MULTIPLE. Many threads that ask for nothing as fast as they can, then many that exchange messages
 * with the same threads of the next rank, so that handles of requests go from thread to thread.
 */
#include <pthread.h>

#include "expect.h"

enum { THREADS = 8, PROBES = 100000, ROUNDS = 200, REQUESTS = 8 };

static int rank, ranks;

static void *probe(void *unused)
{
    int flag = 0;
    (void)unused;
    for (int i = 0; i < PROBES / 2; i++) {
        MPI_Request none = MPI_REQUEST_NULL;
        MPI_Iprobe(MPI_ANY_SOURCE, 12345, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Test(&none, &flag, MPI_STATUS_IGNORE);
    }
    return NULL;
}

/* Messages of 1 to REQUESTS integers; the thread's number is the tag. */
static void *exchange(void *argument)
{
    int tag = *(const int *)argument;
    int sent[REQUESTS] = {0};
    int received[REQUESTS][REQUESTS];
    MPI_Request requests[2 * REQUESTS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < REQUESTS; i++)
            MPI_Irecv(received[i], REQUESTS, MPI_INT, (rank + ranks - 1) % ranks, tag, MPI_COMM_WORLD, &requests[i]);
        for (int i = 0; i < REQUESTS; i++)
            MPI_Isend(sent, i + 1, MPI_INT, (rank + 1) % ranks, tag, MPI_COMM_WORLD, &requests[REQUESTS + i]);
        MPI_Waitall(2 * REQUESTS, requests, MPI_STATUSES_IGNORE);
    }
    return NULL;
}

static void run(void *(*body)(void *))
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        EXPECT_THAT(pthread_create(&threads[i], NULL, body, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        EXPECT_THAT(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv)
{
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    expect_call("mpi_init_thread", 0, 0);
    EXPECT_THAT(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    expect_call("mpi_comm_rank", 0, 0);
    expect_call("mpi_comm_size", 0, 0);
    run(probe);
    expect_calls("mpi_iprobe", THREADS * PROBES / 2, 0, 0);
    expect_calls("mpi_test", THREADS * PROBES / 2, 0, 0);
    run(exchange);
    long long messages = (long long)THREADS * ROUNDS * REQUESTS;
    long long bytes = (long long)THREADS * ROUNDS * REQUESTS * (REQUESTS + 1) / 2 * (long long)sizeof(int);
    expect_calls("mpi_irecv", messages, bytes, 0);
    expect_calls("mpi_isend", messages, 0, bytes);
    expect_calls("mpi_waitall", THREADS * ROUNDS, 0, 0);
    expect_end(argv, rank);
    return 0;
}
