/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporters/mpi/symbols.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static void what_does_not_exist_is_not_found_and_errno_stays(void **state)
{
    (void)state;
    errno = EXDEV;
    assert_null(symbols_next("MPI_No_such_function"));
    assert_null(symbols_variable("ompi_no_such_variable"));
    assert_int_equal(errno, EXDEV);
}

static void a_variable_is_the_one_that_the_program_sees(void **state)
{
    (void)state;
    assert_ptr_equal(symbols_variable("environ"), &environ);
}

static void an_object_is_found_by_any_of_its_addresses(void **state)
{
    (void)state;
    static int in_our_data;
    struct symbols_range ours = symbols_object(&in_our_data);
    assert_true((uintptr_t)&in_our_data - ours.start < ours.bytes);
    assert_true((uintptr_t)symbols_object - ours.start < ours.bytes);
    void *other = symbols_next("puts");
    assert_non_null(other);
    assert_true((uintptr_t)other - ours.start >= ours.bytes);
    assert_int_equal(symbols_object(NULL).bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_exist_is_not_found_and_errno_stays),
        cmocka_unit_test(a_variable_is_the_one_that_the_program_sees),
        cmocka_unit_test(an_object_is_found_by_any_of_its_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
