/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/affinity.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void cpus_are_those_that_the_process_may_use(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, 4096);
    int rc = affinity_json(&text, NULL);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    char expected[32];
    (void)snprintf(expected, sizeof expected, "[%zu]", cpu);
    assert_int_equal(rc, 0);
    assert_string_equal(buf_string(&text), expected);
}

static void list_that_does_not_fit_is_an_error(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, 1);
    assert_int_equal(affinity_json(&text, NULL), -E2BIG);
}

/* A kernel of a machine with 4,096 CPUs, which refuses every smaller set. */
enum { MACHINE_CPUS = 4096 };
static size_t sets_refused;

int __real_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set);

int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    if (sets_refused == SIZE_MAX)
        return __real_sched_getaffinity(pid, bytes, set);
    if (bytes * 8 < MACHINE_CPUS) {
        sets_refused++;
        errno = EINVAL;
        return -1;
    }
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(MACHINE_CPUS - 1, bytes, set);
    return 0;
}

static void machine_of_4096_cpus_is_no_machine_without_cpus(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, 4096);
    sets_refused = 0;
    int rc = affinity_json(&text, NULL);
    bool was_refused = sets_refused > 0;
    sets_refused = SIZE_MAX;
    assert_int_equal(rc, 0);
    assert_true(was_refused);
    assert_string_equal(buf_string(&text), "[4095]");
}

int main(void)
{
    sets_refused = SIZE_MAX;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpus_are_those_that_the_process_may_use),
        cmocka_unit_test(list_that_does_not_fit_is_an_error),
        cmocka_unit_test(machine_of_4096_cpus_is_no_machine_without_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
