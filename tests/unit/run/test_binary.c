/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/binary.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/random.h"
#include "support/scratch.h"
#include "util/buf.h"
#include "util/cleanup.h"
#include "util/file.h"

enum { FILE_MAX_BYTES = 64 << 20, RANDOM_ROUNDS = 20000 };

static void libraries_tell_which_mpi(void **state)
{
    (void)state;
    static const struct {
        const char *library;
        enum binary_mpi mpi;
    } cases[] = {
        {"libmpi.so.40", BINARY_MPI_OPENMPI},   {"libmpi_mpifh.so.40", BINARY_MPI_OPENMPI},
        {"libmpi.so.12", BINARY_MPI_MPICH},     {"libmpich.so.12", BINARY_MPI_MPICH},
        {"libmpifort.so.12", BINARY_MPI_MPICH}, {"libmpi_cray.so.12", BINARY_MPI_MPICH},
        {"libm.so.6", BINARY_MPI_NONE},         {"", BINARY_MPI_NONE},
        {"mylibmpi.so", BINARY_MPI_NONE},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        if (binary_mpi_of(cases[i].library) != cases[i].mpi)
            fail_msg("'%s'", cases[i].library);
    }
}

static void what_is_no_program_is_none(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    struct binary binary = {.is_elf = true, .is_static = true};
    scratch_write(&scratch, "script", "#!/bin/sh\n", 10);
    scratch_write(&scratch, "empty", "", 0);
    assert_int_equal(binary_look(scratch_path(&scratch, "script", path), &binary, NULL), 0);
    assert_false(binary.is_elf || binary.is_static);
    assert_int_equal(binary_look(scratch_path(&scratch, "empty", path), &binary, NULL), 0);
    assert_false(binary.is_elf);
    assert_int_equal(binary_look(scratch_path(&scratch, "missing", path), &binary, NULL), -ENOENT);
    assert_int_equal(binary_look("/", &binary, NULL), 0);
    assert_false(binary.is_elf);
}

static void this_program_has_a_loader_and_no_mpi(void **state)
{
    (void)state;
    struct binary binary;
    assert_int_equal(binary_look("/proc/self/exe", &binary, NULL), 0);
    assert_true(binary.is_elf);
    assert_false(binary.is_static || binary.is_foreign || binary.is_privileged || binary.has_instrument_hooks);
    assert_int_equal(binary.mpi, BINARY_MPI_NONE);
}

static void program_of_another_machine_is_foreign(void **state)
{
    (void)state;
    Elf64_Ehdr head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                       .e_machine = EM_SPARCV9};
    struct binary binary;
    assert_true(binary_parse(cursor_of((const char *)&head, sizeof head), &binary));
    assert_true(binary.is_foreign);
    head.e_ident[EI_CLASS] = ELFCLASS32;
    assert_true(binary_parse(cursor_of((const char *)&head, sizeof head), &binary));
    assert_true(binary.is_foreign);
    assert_false(binary_parse(cursor_of((const char *)&head, sizeof head - 1), &binary));
}

/* Cut anywhere, and with any bytes changed, a file is read without touching what it has not; sanitizers see it. */
static void damaged_programs_are_survived(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf file;
    buf_init(&file, FILE_MAX_BYTES);
    assert_int_equal(file_read(AT_FDCWD, "/proc/self/exe", &file, NULL), 0);
    struct random random = random_new("damaged_programs_are_survived");
    enum { HEAD_BYTES = 2048 };
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        size_t length = random_below(&random, 4) == 0 ? random_below(&random, file.length) : file.length;
        char saved[8];
        size_t at = random_below(&random, HEAD_BYTES);
        memcpy(saved, file.data + at, sizeof saved);
        for (size_t k = 0; k < sizeof saved; k++)
            file.data[at + k] = (char)random_below(&random, 256);
        struct binary binary;
        (void)binary_parse(cursor_of(file.data, length), &binary); /* any answer will do */
        memcpy(file.data + at, saved, sizeof saved);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libraries_tell_which_mpi),
        cmocka_unit_test(what_is_no_program_is_none),
        cmocka_unit_test(this_program_has_a_loader_and_no_mpi),
        cmocka_unit_test(program_of_another_machine_is_foreign),
        cmocka_unit_test(damaged_programs_are_survived),
    };
    return cmocka_run_group_tests_name("binary", tests, NULL, NULL);
}
