/* SPDX-License-Identifier: BSD-3-Clause */
/* files: every way to read and write a file. Rank r writes r + 1 blocks; reads past the file's end get what there is.
 */
#include "expect.h"

enum { BLOCK = 1000, ROOM = 20000 };

static int rank, ranks;
static char buffer[ROOM];
static MPI_File file;
static MPI_Request request;

static void wait_for(void)
{
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_call("mpi_wait", 0, 0);
}

static void sync_all(void)
{
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_call("mpi_file_sync", 0, 0);
    expect_call("mpi_barrier", 0, 0);
}

static void write_at(int bytes, MPI_Offset offset)
{
    MPI_Status status;
    MPI_File_write_at(file, offset, buffer, bytes, MPI_CHAR, &status);
    expect_call("mpi_file_write_at", 0, bytes);
    MPI_File_write_at_all(file, offset, buffer, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
    expect_call("mpi_file_write_at_all", 0, bytes);
    MPI_File_iwrite_at(file, offset, buffer, bytes, MPI_CHAR, &request);
    wait_for();
    expect_call("mpi_file_iwrite_at", 0, bytes);
    MPI_File_write_at_all_begin(file, offset, buffer, bytes, MPI_CHAR);
    MPI_File_write_at_all_end(file, buffer, MPI_STATUS_IGNORE);
    expect_call("mpi_file_write_at_all_begin", 0, 0);
    expect_call("mpi_file_write_at_all_end", 0, bytes);
}

static void read_at(int bytes, MPI_Offset offset)
{
    MPI_File_read_at(file, offset, buffer, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
    expect_call("mpi_file_read_at", bytes, 0);
    MPI_File_read_at_all(file, offset, buffer, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
    expect_call("mpi_file_read_at_all", bytes, 0);
    MPI_File_iread_at(file, offset, buffer, bytes, MPI_CHAR, &request);
    wait_for();
    expect_call("mpi_file_iread_at", bytes, 0);
}

static void at_own_position(int bytes)
{
    MPI_File_seek(file, (MPI_Offset)rank * ROOM, MPI_SEEK_SET);
    MPI_File_write(file, buffer, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_seek(file, (MPI_Offset)rank * ROOM, MPI_SEEK_SET);
    MPI_File_read(file, buffer, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
    expect_calls("mpi_file_seek", 2, 0, 0);
    expect_call("mpi_file_write", 0, bytes);
    expect_call("mpi_file_read", bytes, 0);
}

/* The file is 4 bytes longer than `end`: of what is asked for, 4 bytes come. */
static void past_the_end(MPI_Offset end)
{
    MPI_File_set_size(file, end + 4);
    expect_call("mpi_file_set_size", 0, 0);
    MPI_File_read_at(file, end, buffer, 100, MPI_CHAR, MPI_STATUS_IGNORE);
    expect_call("mpi_file_read_at", 4, 0);
    MPI_File_read_at(file, end + 4, buffer, 100, MPI_CHAR, MPI_STATUS_IGNORE);
    expect_call("mpi_file_read_at", 0, 0);
}

/* Every second integer of the file; in memory without holes. */
static void through_a_view(void)
{
    MPI_Datatype every_second;
    MPI_Type_vector(50, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    expect_call("mpi_type_vector", 0, 0);
    expect_call("mpi_type_commit", 0, 0);
    MPI_File_set_view(file, (MPI_Offset)rank * ROOM, MPI_INT, every_second, "native", MPI_INFO_NULL);
    expect_call("mpi_file_set_view", 0, 0);
    MPI_File_write_all(file, buffer, 50, MPI_INT, MPI_STATUS_IGNORE);
    expect_call("mpi_file_write_all", 0, 200);
    MPI_Type_free(&every_second);
    expect_call("mpi_type_free", 0, 0);
}

int main(int argc, char **argv)
{
    char path[4096];
    expect_begin(&argc, &argv, &rank, &ranks);
    (void)snprintf(path, sizeof path, "%s/data", argv[1]);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    expect_call("mpi_file_open", 0, 0);
    int bytes = (rank + 1) * BLOCK;
    write_at(bytes, (MPI_Offset)rank * ROOM);
    sync_all();
    read_at(bytes, (MPI_Offset)rank * ROOM);
    at_own_position(bytes);
    sync_all();
    past_the_end((MPI_Offset)ranks * ROOM);
    through_a_view();
    MPI_File_close(&file);
    expect_call("mpi_file_close", 0, 0);
    expect_end(argv, rank);
    return 0;
}
