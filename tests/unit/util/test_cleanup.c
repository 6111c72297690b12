/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/cleanup.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct thing {
    int freed;
};

static void thing_free(struct thing *thing)
{
    if (thing != NULL)
        thing->freed++;
}

DEFINE_CLEANUP(thing, thing_free);

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void scope_frees_what_it_holds(void **state)
{
    (void)state;
    struct thing thing = {0};
    {
        CLEANUP(thing_cleanup) struct thing *held = &thing;
        assert_int_equal(held->freed, 0);
    }
    assert_int_equal(thing.freed, 1);
    {
        CLEANUP(thing_cleanup) struct thing *nothing = NULL;
        (void)nothing;
    }
}

static struct thing *take_from_scope(struct thing *thing)
{
    CLEANUP(thing_cleanup) struct thing *held = thing;
    return TAKE(held);
}

static void taken_is_not_freed(void **state)
{
    (void)state;
    struct thing thing = {0};
    assert_ptr_equal(take_from_scope(&thing), &thing);
    assert_int_equal(thing.freed, 0);
}

static int take_descriptor_from_scope(int fd)
{
    CLEANUP(fd_cleanup) int held = fd;
    return TAKE_FD(held);
}

static void descriptors_close_with_their_scope_unless_taken(void **state)
{
    (void)state;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(take_descriptor_from_scope(fd), fd);
    assert_true(is_open(fd));
    {
        CLEANUP(fd_cleanup) int held = fd;
        assert_true(is_open(held));
    }
    assert_false(is_open(fd));
    {
        CLEANUP(fd_cleanup) int nothing = -1; /* closes neither 0 nor anything else */
        (void)nothing;
    }
    assert_true(is_open(STDOUT_FILENO));
}

static void files_directories_and_memory_end_with_their_scope(void **state)
{
    (void)state;
    int file_fd;
    int dir_fd;
    {
        CLEANUP(stdio_cleanup) FILE *file = fopen("/dev/null", "re");
        CLEANUP(dir_cleanup) DIR *dir = opendir("/");
        CLEANUP(memory_cleanup) char *memory = malloc(100); /* a leak is the sanitizer's to see */
        assert_true(file != NULL && dir != NULL && memory != NULL);
        file_fd = fileno(file);
        dir_fd = dirfd(dir);
    }
    assert_false(is_open(file_fd));
    assert_false(is_open(dir_fd));
    {
        CLEANUP(stdio_cleanup) FILE *file = NULL;
        CLEANUP(dir_cleanup) DIR *dir = NULL;
        CLEANUP(memory_cleanup) char *memory = NULL;
        assert_true(file == NULL && dir == NULL && memory == NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scope_frees_what_it_holds),
        cmocka_unit_test(taken_is_not_freed),
        cmocka_unit_test(descriptors_close_with_their_scope_unless_taken),
        cmocka_unit_test(files_directories_and_memory_end_with_their_scope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
