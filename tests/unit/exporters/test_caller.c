/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporters/mpi/caller.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void names_of_all_bindings_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *symbol, *key;
        bool is_name;
    } cases[] = {
        {"MPI_Send", "mpi_send", true},
        {"PMPI_Send", "mpi_send", true},
        {"mpi_send", "mpi_send", true},
        {"mpi_send_", "mpi_send", true},
        {"mpi_send__", "mpi_send", true},
        {"MPI_SEND", "mpi_send", true},
        {"pmpi_send_", "mpi_send", true},
        {"ompi_send_f", "mpi_send", true},
        {"mpi_send_f08_", "mpi_send", true},
        {"mpi_send_f08ts_", "mpi_send", true},
        {"pmpir_send_f08ts_", "mpi_send", true},
        {"mpi_send_f08ts_large_", "mpi_send_c", true},
        {"mpi_type_size_f08_large_", "mpi_type_size_c", true},
        {"MPI_Send_c", "mpi_send_c", true},
        {"mpi_send_f08ts_large_", "mpi_send", false},
        {"mpi_send_f08ts_", "mpi_send_c", false},
        {"MPI_Sendrecv", "mpi_send", false},
        {"MPI_Send", "mpi_sendrecv", false},
        {"MPI_Bsend", "mpi_send", false},
        {"ompi_alltoallw_f", "mpi_comm_size", false},
        {"mpi_send_init_", "mpi_send", false},
        {"mpi_", "mpi_send", false},
        {"", "mpi_send", false},
        {"send", "mpi_send", false},
        {"my_mpi_send_", "mpi_send", false},
        {"main", "mpi_send", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (caller_is_name(cases[i].symbol, cases[i].key) != cases[i].is_name)
            fail_msg("%s is%s a name of %s", cases[i].symbol, cases[i].is_name ? "" : " not", cases[i].key);
    }
}

/* A place is told by the function that it is in: this one's symbol is not visible, puts() has one. */
static void a_place_is_told_by_its_function_and_remembered(void **state)
{
    (void)state;
    const char *inside = (const char *)(void *)puts + 1;
    for (int twice = 0; twice < 2; twice++) {
        assert_false(caller_is_binding(inside, "mpi_send"));
        assert_false(caller_is_binding((const char *)(void *)names_of_all_bindings_are_known + 1, "mpi_send"));
    }
}

static void calls_from_within_the_library_are_known_by_where_it_lies(void **state)
{
    (void)state;
    caller_library = (struct symbols_range){.start = 1000, .bytes = 100};
    assert_false(caller_is_library((const void *)999));
    assert_true(caller_is_library((const void *)1000));
    assert_true(caller_is_library((const void *)1099));
    assert_false(caller_is_library((const void *)1100));
    caller_library = (struct symbols_range){0};
    assert_false(caller_is_library((const void *)0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_all_bindings_are_known),
        cmocka_unit_test(a_place_is_told_by_its_function_and_remembered),
        cmocka_unit_test(calls_from_within_the_library_are_known_by_where_it_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
