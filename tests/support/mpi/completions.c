/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * completions: receives that complete in each of the eight calls that complete something, few at once and many, with
 * and without statuses. Each rank receives from the one before it, and sends to the one after it.
 */
#include "expect.h"

enum { MANY = 300 };

static int rank, ranks;
static char received[MANY][MANY + 1];
static char sent[MANY + 1];
static MPI_Request requests[2 * MANY];
static MPI_Status statuses[2 * MANY];
static int indices[2 * MANY];

/* `count` receives, then as many sends: of 1, 2, … bytes. Message i is received where there is more room than it needs.
 */
static int post(int count)
{
    int before = (rank + ranks - 1) % ranks;
    int after = (rank + 1) % ranks;
    for (int i = 0; i < count; i++)
        MPI_Irecv(received[i], MANY + 1, MPI_CHAR, before, i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < count; i++)
        MPI_Isend(sent, i + 1, MPI_CHAR, after, i, MPI_COMM_WORLD, &requests[count + i]);
    long long bytes = (long long)count * (count + 1) / 2;
    expect_calls("mpi_irecv", count, bytes, 0);
    expect_calls("mpi_isend", count, 0, bytes);
    return 2 * count;
}

static void one_by_one(int count)
{
    int posted = post(count);
    for (int i = 0; i < posted; i++)
        MPI_Wait(&requests[i], i % 2 == 0 ? MPI_STATUS_IGNORE : &statuses[0]);
    expect_calls("mpi_wait", posted, 0, 0);

    posted = post(count);
    for (int i = 0; i < posted; i++) {
        for (int flag = 0; !flag;) {
            MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
            expect_call("mpi_test", 0, 0);
        }
    }
}

static void all_at_once(int count)
{
    int posted = post(count);
    MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    posted = post(count);
    MPI_Waitall(posted, requests, statuses);
    for (int i = 0; i < count; i++) {
        int bytes = 0;
        MPI_Get_count(&statuses[i], MPI_CHAR, &bytes);
        EXPECT_THAT(bytes == i + 1);
    }
    expect_calls("mpi_get_count", count, 0, 0);
    expect_calls("mpi_waitall", 2, 0, 0);

    posted = post(count);
    for (int flag = 0; !flag;) {
        MPI_Testall(posted, requests, &flag, MPI_STATUSES_IGNORE);
        expect_call("mpi_testall", 0, 0);
    }
}

static void any_of_them(int count)
{
    int posted = post(count);
    for (int i = 0; i < posted; i++) {
        int index = -1;
        MPI_Waitany(posted, requests, &index, MPI_STATUS_IGNORE);
        EXPECT_THAT(index >= 0 && index < posted);
    }
    expect_calls("mpi_waitany", posted, 0, 0);

    posted = post(count);
    for (int done = 0; done < posted;) {
        int index = -1;
        int flag = 0;
        MPI_Testany(posted, requests, &index, &flag, MPI_STATUS_IGNORE);
        expect_call("mpi_testany", 0, 0);
        done += flag ? 1 : 0;
    }
}

static void some_of_them(int count)
{
    int posted = post(count);
    for (int done = 0; done < posted;) {
        int some = 0;
        MPI_Waitsome(posted, requests, &some, indices, MPI_STATUSES_IGNORE);
        expect_call("mpi_waitsome", 0, 0);
        done += some;
    }
    posted = post(count);
    for (int done = 0; done < posted;) {
        int some = 0;
        MPI_Testsome(posted, requests, &some, indices, statuses);
        expect_call("mpi_testsome", 0, 0);
        done += some;
    }
}

int main(int argc, char **argv)
{
    expect_begin(&argc, &argv, &rank, &ranks);
    for (int count = 1; count <= MANY; count += MANY - 1) {
        one_by_one(count);
        all_at_once(count);
        any_of_them(count);
        some_of_them(count);
    }
    expect_end(argv, rank);
    return 0;
}
