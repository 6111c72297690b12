/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool: another preloaded tool, as there are many: it wraps three functions and writes how often they were called into
 * the file $TOOL_FILE.<pid> at the end. It goes on by PMPI, as MPI's profiling interface has it, or with -DTOOL_NEXT to
 * whoever is next. It has calls of its own, which are not the program's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int inits, sends, receives;

#ifdef TOOL_NEXT
#define GO_ON(name, type) ((type)dlsym(RTLD_NEXT, "MPI_" #name))
#else
#define GO_ON(name, type) ((type)PMPI_##name)
#endif

typedef int init_function(int *, char ***);
typedef int send_function(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int receive_function(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);

int MPI_Init(int *argc, char ***argv)
{
    int size = 0;
    inits++;
    int result = GO_ON(Init, init_function *)(argc, argv);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    return result;
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    int bytes = 0;
    sends++;
    PMPI_Type_size(type, &bytes);
    return GO_ON(Send, send_function *)(buffer, count, type, to, tag, comm);
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    receives++;
    return GO_ON(Recv, receive_function *)(buffer, count, type, from, tag, comm, status);
}

__attribute__((destructor)) static void tool_end(void)
{
    char path[4096];
    if (inits == 0)
        return;
    (void)snprintf(path, sizeof path, "%s.%d", getenv("TOOL_FILE"), (int)getpid());
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return;
    (void)fprintf(file, "%d %d %d\n", inits, sends, receives);
    (void)fclose(file);
}
