/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong: what a call of MPI costs by two ways that a program can call it, in turns, in the same process: as the
 * program is linked, which is through whatever is preloaded, and straight into the MPI library.
 *
 *   pingpong LIBRARY BATCHES ROUNDS
 *
 * LIBRARY is the file of the MPI that the program is linked with. Two ranks. Rank 0 prints one line for each kind of
 * call: its name, then for both ways the fastest and the median batch, in nanoseconds a call.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCHES_MAX = 1000, MESSAGE_BYTES = 8 };

struct way {
    int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
    int (*receive)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
    int (*isend)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*ireceive)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*waitall)(int, MPI_Request *, MPI_Status *);
    int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
    int (*rank)(MPI_Comm, int *);
};

static char out[MESSAGE_BYTES], in[MESSAGE_BYTES];
static int rank;

/* The clock itself, since MPI_Wtime goes through what is measured. */
static double now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Half of a round trip is a send and a receive, each other rank's after the other: four calls in a row. */
static void blocking(const struct way *way, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        if (rank == 0) {
            way->send(out, MESSAGE_BYTES, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
            way->receive(in, MESSAGE_BYTES, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            way->receive(in, MESSAGE_BYTES, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            way->send(out, MESSAGE_BYTES, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
    }
}

/* Three calls, on both sides at once. */
static void with_requests(const struct way *way, int rounds)
{
    MPI_Request requests[2];
    MPI_Status *none = MPI_STATUSES_IGNORE;
    for (int i = 0; i < rounds; i++) {
        way->ireceive(in, MESSAGE_BYTES, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, &requests[0]);
        way->isend(out, MESSAGE_BYTES, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, &requests[1]);
        way->waitall(2, requests, none);
    }
}

static void alone(const struct way *way, int rounds)
{
    for (int i = 0; i < rounds; i++)
        way->allreduce(out, in, MESSAGE_BYTES, MPI_CHAR, MPI_MAX, MPI_COMM_SELF);
}

static void trivial(const struct way *way, int rounds)
{
    int found;
    for (int i = 0; i < rounds; i++)
        way->rank(MPI_COMM_WORLD, &found);
}

static const struct {
    const char *name;
    void (*body)(const struct way *, int rounds);
    int calls; /* a round */
} kinds[] = {
    {"ping-pong: MPI_Send, MPI_Recv", blocking, 4},
    {"exchange: MPI_Irecv, MPI_Isend, MPI_Waitall", with_requests, 3},
    {"MPI_Allreduce with oneself", alone, 1},
    {"MPI_Comm_rank", trivial, 1},
};

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        (void)fprintf(stderr, "pingpong: %s\n", dlerror());
        exit(2);
    }
    return found;
}

static struct way straight(const char *path)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) {
        (void)fprintf(stderr, "pingpong: %s is not loaded\n", path);
        exit(2);
    }
    struct way way;
    *(void **)&way.send = find(library, "PMPI_Send");
    *(void **)&way.receive = find(library, "PMPI_Recv");
    *(void **)&way.isend = find(library, "PMPI_Isend");
    *(void **)&way.ireceive = find(library, "PMPI_Irecv");
    *(void **)&way.waitall = find(library, "PMPI_Waitall");
    *(void **)&way.allreduce = find(library, "PMPI_Allreduce");
    *(void **)&way.rank = find(library, "PMPI_Comm_rank");
    return way;
}

int main(int argc, char **argv)
{
    static double times_ns[2][BATCHES_MAX];
    if (argc != 4)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const struct way ways[2] = {{MPI_Send, MPI_Recv, MPI_Isend, MPI_Irecv, MPI_Waitall, MPI_Allreduce, MPI_Comm_rank},
                                straight(argv[1])};
    int batches = (int)strtol(argv[2], NULL, 10);
    int rounds = (int)strtol(argv[3], NULL, 10);
    batches = batches < BATCHES_MAX ? batches : BATCHES_MAX;
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        for (int i = 0; i < 2 * batches; i++) {
            PMPI_Barrier(MPI_COMM_WORLD);
            double start_ns = now_ns();
            kinds[kind].body(&ways[i % 2], rounds);
            times_ns[i % 2][i / 2] = (now_ns() - start_ns) / rounds / kinds[kind].calls;
        }
        for (int way = 0; way < 2; way++)
            qsort(times_ns[way], (size_t)batches, sizeof times_ns[0][0], compare);
        if (rank == 0)
            (void)printf("%s|%.2f|%.2f|%.2f|%.2f\n", kinds[kind].name, times_ns[0][0], times_ns[0][batches / 2],
                         times_ns[1][0], times_ns[1][batches / 2]);
    }
    MPI_Finalize();
    return 0;
}
