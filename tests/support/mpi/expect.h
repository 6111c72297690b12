/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * expect: what a test program must have moved, written beside each call that moves it.
 *
 * expect_call() adds to what is expected of a function, expect_write() writes one line for each function into
 * <argument 1>/<rank>: the test compares their sums with the metrics. Header only, for MPI's compilers.
 */
#ifndef EXPECT_H
#define EXPECT_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXPECT_FUNCTIONS_MAX = 128 };

static struct {
    const char *key;
    long long hits, in_bytes, out_bytes;
} expect_rows[EXPECT_FUNCTIONS_MAX];

/* One call (`hits` of them) of a function by its metrics' name, and the bytes of all of them. */
static inline void expect_calls(const char *key, long long hits, long long in_bytes, long long out_bytes)
{
    int i = 0;
    while (expect_rows[i].key != NULL && strcmp(expect_rows[i].key, key) != 0)
        i++;
    expect_rows[i].key = key;
    expect_rows[i].hits += hits;
    expect_rows[i].in_bytes += in_bytes;
    expect_rows[i].out_bytes += out_bytes;
}

static inline void expect_call(const char *key, long long in_bytes, long long out_bytes)
{
    expect_calls(key, 1, in_bytes, out_bytes);
}

static inline void expect_write(char **argv, int rank)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%d", argv[1], rank);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        exit(3);
    }
    for (int i = 0; expect_rows[i].key != NULL; i++)
        (void)fprintf(file, "%s %lld %lld %lld\n", expect_rows[i].key, expect_rows[i].hits, expect_rows[i].in_bytes,
                      expect_rows[i].out_bytes);
    if (fclose(file) != 0)
        exit(3);
}

/* Begins as most programs do, and expects that. */
static inline void expect_begin(int *argc, char ***argv, int *out_rank, int *out_ranks)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, out_rank);
    MPI_Comm_size(MPI_COMM_WORLD, out_ranks);
    expect_call("mpi_init", 0, 0);
    expect_call("mpi_comm_rank", 0, 0);
    expect_call("mpi_comm_size", 0, 0);
}

static inline void expect_end(char **argv, int rank)
{
    MPI_Finalize();
    expect_call("mpi_finalize", 0, 0);
    expect_write(argv, rank);
}

/* Ends the program with a message when something that must hold doesn't. */
#define EXPECT_THAT(condition)                                                                                         \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                              \
            exit(4);                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
