/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/trace.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/scratch.h"

enum { NOTES_MAX_BYTES = 65536 };

/* A prefix in a directory of its own. */
struct place {
    struct scratch scratch;
    char prefix[PATH_MAX];
    struct trace_request request;
    struct buf notes;
};

static int place_setup(void **state)
{
    static struct place place;
    place.scratch = scratch_new();
    (void)scratch_path(&place.scratch, "out", place.prefix);
    place.request = (struct trace_request){.prefix = place.prefix, .host = "n1", .is_compressed = true, .keep = 10};
    buf_init(&place.notes, NOTES_MAX_BYTES);
    *state = &place;
    return 0;
}

static int place_teardown(void **state)
{
    struct place *place = *state;
    buf_fini(&place->notes);
    scratch_cleanup(&place->scratch);
    return 0;
}

static bool exists(const struct place *place, const char *name)
{
    char path[PATH_MAX];
    return access(scratch_path(&place->scratch, name, path), F_OK) == 0;
}

static struct trace open_trace(struct place *place)
{
    struct trace trace = TRACE_NONE;
    struct error err = {0};
    int rc = trace_open(&place->request, &place->notes, &trace, &err);
    if (rc != 0)
        fail_msg("%s", err.text);
    return trace;
}

/* A trace as one service leaves it. */
static void leave_trace(struct place *place)
{
    struct trace trace = open_trace(place);
    assert_int_equal(write(trace.fd, "x", 1), 1);
    trace_close(&trace);
}

static void assert_is(const struct trace *trace, const char *name)
{
    const char *slash = strrchr(trace->path, '/');
    assert_non_null(slash);
    assert_string_equal(slash + 1, name);
}

static void first_trace_has_no_number(void **state)
{
    struct place *place = *state;
    struct trace trace = open_trace(place);
    assert_is(&trace, "out_n1.pfw.gz");
    assert_int_equal(place->notes.length, 0);
    trace_close(&trace);
    place->request.is_compressed = false;
    trace = open_trace(place);
    assert_is(&trace, "out_n1.pfw");
    trace_close(&trace);
}

static void earlier_traces_get_rising_numbers(void **state)
{
    struct place *place = *state;
    for (int i = 0; i < 4; i++)
        leave_trace(place);
    assert_int_equal(scratch_entries(&place->scratch), 4);
    assert_true(exists(place, "out_n1.1.pfw.gz") && exists(place, "out_n1.3.pfw.gz"));
    assert_non_null(strstr(buf_string(&place->notes), "renamed to"));
}

/* A file system without RENAME_NOREPLACE (NFS), and one without hard links. */
static bool has_no_flag, has_no_links;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
int __real_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (has_no_flag && number == SYS_renameat2) {
        errno = EINVAL;
        return -1;
    }
    return __real_syscall(number, a, b, c, d, e, f);
}

int __wrap_link(const char *from, const char *to)
{
    if (has_no_links) {
        errno = EPERM;
        return -1;
    }
    return __real_link(from, to);
}

static void file_systems_of_all_kinds_keep_earlier_traces(void **state)
{
    struct place *place = *state;
    for (int kind = 0; kind < 2; kind++) {
        has_no_flag = true;
        has_no_links = kind == 1;
        leave_trace(place);
        leave_trace(place);
        has_no_flag = has_no_links = false;
    }
    assert_int_equal(scratch_entries(&place->scratch), 4);
    assert_true(exists(place, "out_n1.pfw.gz") && exists(place, "out_n1.1.pfw.gz") && exists(place, "out_n1.3.pfw.gz"));
}

static void number_is_above_all_that_are_there_even_with_holes(void **state)
{
    struct place *place = *state;
    scratch_write(&place->scratch, "out_n1.7.pfw.gz", "x", 1);
    scratch_write(&place->scratch, "out_n1.pfw.gz", "y", 1);
    struct trace trace = open_trace(place);
    assert_true(exists(place, "out_n1.8.pfw.gz"));
    trace_close(&trace);
}

static void names_that_only_look_alike_are_not_numbers(void **state)
{
    struct place *place = *state;
    static const char *const names[] = {
        "out_n1.01.pfw.gz", "out_n1.-3.pfw.gz", "out_n1.x.pfw.gz",  "out_n1.99999999999999999999999.pfw.gz",
        "out_n1.5.pfw",     "out_n11.6.pfw.gz", "out_n1..pfw.gz",   "out_n1.5.pfw.gz.old",
        "xout_n1.9.pfw.gz", "out_n1. 9.pfw.gz", "out_n1.+9.pfw.gz", "out_n1.18446744073709551615.pfw.gz"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        scratch_write(&place->scratch, names[i], "x", 1);
    scratch_write(&place->scratch, "out_n1.pfw.gz", "y", 1);
    place->request.keep = 0;
    struct trace trace = open_trace(place);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        assert_true(exists(place, names[i]));
    assert_false(exists(place, "out_n1.1.pfw.gz")); /* was renamed to 1, and 0 may stay */
    trace_close(&trace);
}

static void trace_that_is_being_written_is_never_touched(void **state)
{
    struct place *place = *state;
    struct trace first = open_trace(place);
    struct trace second = open_trace(place);
    struct trace third = open_trace(place);
    assert_is(&first, "out_n1.pfw.gz");
    assert_is(&second, "out_n1.1.pfw.gz");
    assert_is(&third, "out_n1.2.pfw.gz");
    assert_non_null(strstr(buf_string(&place->notes), "is being written by another service"));
    struct stat status;
    assert_int_equal(fstat(first.fd, &status), 0);
    assert_int_equal(status.st_nlink, 1);
    trace_close(&first);
    struct trace fourth = open_trace(place);
    assert_is(&fourth, "out_n1.pfw.gz"); /* nobody wrote it any more */
    assert_true(exists(place, "out_n1.3.pfw.gz"));
    trace_close(&second);
    trace_close(&third);
    trace_close(&fourth);
}

static void only_the_newest_without_an_owner_stay(void **state)
{
    struct place *place = *state;
    struct trace live = open_trace(place);
    struct trace oldest = open_trace(place); /* number 1 has an owner, and so doesn't count */
    trace_close(&live);
    place->request.keep = 2;
    for (int i = 0; i < 5; i++)
        leave_trace(place);
    assert_true(exists(place, "out_n1.1.pfw.gz"));
    assert_int_equal(scratch_entries(&place->scratch), 1 + 1 + 2);
    assert_non_null(strstr(buf_string(&place->notes), "was removed: DFTRACER_KEEP is 2"));
    trace_close(&oldest);
}

static void links_and_directories_make_room_too(void **state)
{
    struct place *place = *state;
    char path[PATH_MAX], target[PATH_MAX];
    scratch_write(&place->scratch, "target", "precious", 8);
    assert_int_equal(
        symlink(scratch_path(&place->scratch, "target", target), scratch_path(&place->scratch, "out_n1.pfw.gz", path)),
        0);
    leave_trace(place);
    struct stat status;
    assert_int_equal(stat(target, &status), 0);
    assert_int_equal(status.st_size, 8);

    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    leave_trace(place);
}

static void missing_directory_is_named(void **state)
{
    struct place *place = *state;
    place->request.prefix = "/nope/out";
    struct trace trace = TRACE_NONE;
    struct error err = {0};
    assert_int_equal(trace_open(&place->request, &place->notes, &trace, &err), -ENOENT);
    assert_non_null(strstr(err.text, "'/nope'"));
    assert_null(trace.path);
    trace_close(&trace);
}

static void prefix_in_the_root_is_a_prefix(void **state)
{
    struct place *place = *state;
    place->request.prefix = "/proc/out"; /* where nothing can be made */
    struct trace trace = TRACE_NONE;
    assert_true(trace_open(&place->request, &place->notes, &trace, NULL) < 0);
    assert_null(trace.path);
}

static void without_memory_no_trace_is_lost_and_no_claim_stays(void **state)
{
    struct place *place = *state;
    leave_trace(place);
    for (size_t n = 0;; n++) {
        struct trace trace = TRACE_NONE;
        allocation_fail_at(n);
        int rc = trace_open(&place->request, &place->notes, &trace, NULL);
        bool has_failed = allocation_stop();
        trace_close(&trace);
        assert_true(rc == 0 || has_failed);
        assert_true(exists(place, "out_n1.pfw.gz") || exists(place, "out_n1.1.pfw.gz"));
        if (!has_failed)
            break;
    }
    struct trace after = open_trace(place);
    assert_is(&after, "out_n1.pfw.gz"); /* no claim of a failed attempt is left */
    trace_close(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(first_trace_has_no_number, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(earlier_traces_get_rising_numbers, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(file_systems_of_all_kinds_keep_earlier_traces, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(number_is_above_all_that_are_there_even_with_holes, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(names_that_only_look_alike_are_not_numbers, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(trace_that_is_being_written_is_never_touched, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(only_the_newest_without_an_owner_stay, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(links_and_directories_make_room_too, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(missing_directory_is_named, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(prefix_in_the_root_is_a_prefix, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(without_memory_no_trace_is_lost_and_no_claim_stays, place_setup,
                                        place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
