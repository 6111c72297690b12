/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * completion: calls that complete or start requests. They call MPI themselves and count the bytes of the requests, each
 * for the function that made it: what an MPI_Irecv receives is MPI_Irecv's, in whichever call it completes.
 *
 * Requests that nobody follows (requests.h) cost a look-up. Where MPI would not tell, since the program passed
 * MPI_STATUS_IGNORE, it is asked with a status of our own. Any thread; two threads never complete the same request.
 *
 * `next` is the function of MPI, whose parameters and result these have.
 */
#ifndef MPI_COMPLETION_H
#define MPI_COMPLETION_H

#include <mpi.h>

#include "exporters/mpi/calls.h"
#include "exporters/mpi/requests.h"
#include "exporters/mpi/sizes.h"

/* Follows a request that receives, reads or writes, or that is persistent and moves `by_start` with each start. */
void completion_follow(struct calls_function *function, MPI_Request request, enum requests_kind kind);
void completion_follow_persistent(struct calls_function *function, MPI_Request request, enum requests_kind kind,
                                  struct sizes by_start);

/* MPI_Start, MPI_Startall; MPI_Request_free: what such a request receives later nobody learns. */
int completion_start(int (*next)(MPI_Request *), MPI_Request *request);
int completion_startall(int (*next)(int, MPI_Request *), int count, MPI_Request *requests);
int completion_free(int (*next)(MPI_Request *), MPI_Request *request);

/* MPI_Wait… and MPI_Test…: called as MPI calls them, with `next` before. */
int completion_wait(int (*next)(MPI_Request *, MPI_Status *), MPI_Request *request, MPI_Status *status);
int completion_waitall(int (*next)(int, MPI_Request *, MPI_Status *), int count, MPI_Request *requests,
                       MPI_Status *statuses);
int completion_waitany(int (*next)(int, MPI_Request *, int *, MPI_Status *), int count, MPI_Request *requests,
                       int *out_index, MPI_Status *status);
int completion_waitsome(int (*next)(int, MPI_Request *, int *, int *, MPI_Status *), int count, MPI_Request *requests,
                        int *out_count, int *out_indices, MPI_Status *statuses);
int completion_test(int (*next)(MPI_Request *, int *, MPI_Status *), MPI_Request *request, int *out_flag,
                    MPI_Status *status);
int completion_testall(int (*next)(int, MPI_Request *, int *, MPI_Status *), int count, MPI_Request *requests,
                       int *out_flag, MPI_Status *statuses);
int completion_testany(int (*next)(int, MPI_Request *, int *, int *, MPI_Status *), int count, MPI_Request *requests,
                       int *out_index, int *out_flag, MPI_Status *status);
int completion_testsome(int (*next)(int, MPI_Request *, int *, int *, MPI_Status *), int count, MPI_Request *requests,
                        int *out_count, int *out_indices, MPI_Status *statuses);

#endif
