/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/instance.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/scratch.h"

/* A log directory of a test's own. */
struct place {
    struct scratch scratch;
    struct paths paths;
};

static int place_setup(void **state)
{
    static struct place place;
    place.scratch = scratch_new();
    assert_int_equal(paths_init(&place.paths, place.scratch.path, true, NULL), 0);
    *state = &place;
    return 0;
}

static int place_teardown(void **state)
{
    struct place *place = *state;
    paths_fini(&place->paths);
    scratch_cleanup(&place->scratch);
    return 0;
}

static struct instance become(const struct place *place)
{
    struct instance instance;
    struct error err = {0};
    if (instance_become(&instance, &place->paths, &err) != 0)
        fail_msg("%s", err.text);
    return instance;
}

/* A look whose descriptor is closed: only what it says is wanted. */
static struct instance_view look(const struct place *place)
{
    struct instance_view view;
    assert_int_equal(instance_look(&place->paths, &view, NULL), 0);
    instance_view_fini(&view);
    return view;
}

static void pid_file_of(const struct place *place, const char *format, ...) PRINTF_LIKE(2, 3);

static void pid_file_of(const struct place *place, const char *format, ...)
{
    FILE *file = fopen(place->paths.pid_file, "we");
    assert_non_null(file);
    va_list args;
    va_start(args, format);
    assert_true(vfprintf(file, format, args) >= 0);
    va_end(args);
    assert_int_equal(fclose(file), 0);
}

static void nobody_is_seen_where_nobody_was(void **state)
{
    const struct place *place = *state;
    struct instance_view view = look(place);
    assert_int_equal(view.life, INSTANCE_NONE);
    assert_false(view.has_pid_file);
    assert_string_equal(view.why.text, "");
}

static void service_is_seen_from_its_first_moment_to_its_last(void **state)
{
    const struct place *place = *state;
    struct instance instance = become(place);
    struct instance_view view = look(place);
    assert_int_equal(view.life, INSTANCE_RUNNING);
    assert_int_equal(view.state.owner.pid, getpid());
    assert_int_equal(view.state.phase, STATE_STARTING);

    assert_int_equal(instance_announce(&instance, NULL), 0);
    instance.state.phase = STATE_RUNNING;
    instance.state.progress.events = 42;
    assert_int_equal(instance_publish(&instance, NULL), 0);
    view = look(place);
    assert_true(view.has_pid_file);
    assert_int_equal(view.state.progress.events, 42);

    /* Who waits for its end holds the file open, and finds the last word in it. */
    struct instance_view waiting;
    assert_int_equal(instance_look(&place->paths, &waiting, NULL), 0);
    instance.state.phase = STATE_CLOSED;
    instance_leave(&instance);
    assert_false(claim_is_held(waiting.claim_fd));
    assert_int_equal(state_read(waiting.claim_fd, &waiting.state, NULL), 0);
    assert_int_equal(waiting.state.phase, STATE_CLOSED);
    instance_view_fini(&waiting);
    assert_int_equal(look(place).life, INSTANCE_NONE);
    assert_int_equal(access(place->paths.pid_file, F_OK), -1);
}

static void second_service_is_refused_and_hears_of_the_first(void **state)
{
    const struct place *place = *state;
    struct instance first = become(place);
    struct instance second;
    struct error err = {0};
    assert_int_equal(instance_become(&second, &place->paths, &err), -EEXIST);
    char expected[32];
    (void)snprintf(expected, sizeof expected, "pid %d", (int)getpid());
    assert_non_null(strstr(err.text, expected));
    instance_leave(&second); /* leaves the first one's files alone */
    assert_int_equal(look(place).life, INSTANCE_RUNNING);
    instance_leave(&first);
}

static void pid_files_that_name_nobody_are_stale_and_no_obstacle(void **state)
{
    const struct place *place = *state;
    static const char *const texts[] = {"", "rubbish", "2147483646\n", "1\nstart_ticks=99999999\nboot_id=x\n"};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        pid_file_of(place, "%s", texts[i]);
        struct instance_view view = look(place);
        assert_int_equal(view.life, INSTANCE_STALE);
        assert_non_null(strstr(view.why.text, place->paths.pid_file));
        struct instance instance = become(place);
        assert_int_equal(instance_announce(&instance, NULL), 0);
        instance_leave(&instance);
    }
}

static void living_process_in_the_pid_file_counts_without_a_lock(void **state)
{
    const struct place *place = *state;
    struct identity self;
    assert_int_equal(identity_of_self(&self, NULL), 0);
    pid_file_of(place, "%d\nstart_ticks=%llu\nboot_id=%s\n", (int)self.pid, (unsigned long long)self.start_ticks,
                self.boot_id);
    struct instance_view view = look(place);
    assert_int_equal(view.life, INSTANCE_RUNNING);
    assert_false(view.has_state);
    struct instance instance;
    assert_int_equal(instance_become(&instance, &place->paths, NULL), -EEXIST);
    assert_null(instance.claim.path);
}

static void pid_file_that_can_not_be_read_is_not_passed_over(void **state)
{
    const struct place *place = *state;
    pid_file_of(place, "%s", "");
    assert_int_equal(unlink(place->paths.pid_file), 0);
    assert_int_equal(symlink(place->paths.pid_file, place->paths.pid_file), 0); /* a loop: ELOOP */
    struct instance_view view = look(place);
    assert_int_equal(view.life, INSTANCE_FOREIGN);
    struct instance instance;
    struct error err = {0};
    assert_int_equal(instance_become(&instance, &place->paths, &err), -EEXIST);
    assert_non_null(strstr(err.text, place->paths.pid_file));
}

static void pid_file_of_another_is_not_removed(void **state)
{
    const struct place *place = *state;
    struct instance instance = become(place);
    assert_int_equal(instance_announce(&instance, NULL), 0);
    pid_file_of(place, "%d\n", 4711);
    instance_leave(&instance);
    assert_int_equal(access(place->paths.pid_file, F_OK), 0);
}

static void service_that_dies_leaves_a_stale_state_with_its_trace(void **state)
{
    const struct place *place = *state;
    pid_t pid = fork();
    if (pid == 0) {
        struct instance instance;
        if (instance_become(&instance, &place->paths, NULL) != 0 || instance_announce(&instance, NULL) != 0)
            _exit(1);
        (void)snprintf(instance.state.trace_path, sizeof instance.state.trace_path, "/x/trace");
        if (instance_publish(&instance, NULL) != 0)
            _exit(2);
        (void)raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    struct instance_view view = look(place);
    assert_int_equal(view.life, INSTANCE_STALE);
    assert_true(view.has_state);
    assert_string_equal(view.state.trace_path, "/x/trace");
    struct instance instance = become(place);
    instance_leave(&instance);
}

/* A killed process whose lock is still held: here by a child that inherited it, in life by a thread that hangs. */
static void dead_owner_with_a_held_lock_is_foreign(void **state)
{
    const struct place *place = *state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t owner = fork();
    if (owner == 0) {
        struct instance instance;
        if (instance_become(&instance, &place->paths, NULL) != 0)
            _exit(1);
        pid_t heir = fork();
        if (heir == 0) {
            char byte;
            close(ends[1]);
            (void)!read(ends[0], &byte, 1);
            _exit(0);
        }
        _exit(0);
    }
    close(ends[0]);
    assert_int_equal(waitpid(owner, NULL, 0), owner);
    struct instance_view view = look(place);
    assert_int_equal(view.life, INSTANCE_FOREIGN);
    assert_non_null(strstr(view.why.text, "hangs in the kernel"));
    struct instance instance;
    assert_int_equal(instance_become(&instance, &place->paths, NULL), -EEXIST);
    close(ends[1]); /* the heir ends */
}

static void service_that_lost_its_place_hears_of_it(void **state)
{
    const struct place *place = *state;
    struct instance instance = become(place);
    assert_int_equal(unlink(instance.claim.path), 0);
    assert_int_equal(instance_publish(&instance, NULL), 0); /* takes it back */
    assert_int_equal(look(place).life, INSTANCE_RUNNING);

    assert_int_equal(unlink(instance.claim.path), 0);
    assert_int_equal(instance_publish_progress(&instance, NULL), 0); /* all of the state must be in the new file */
    struct instance_view view = look(place);
    assert_true(view.has_state);
    assert_int_equal(view.state.owner.pid, getpid());

    assert_int_equal(unlink(instance.claim.path), 0);
    struct instance other = become(place);
    assert_int_equal(instance_publish(&instance, NULL), -EIDRM);
    instance_leave(&instance);
    assert_int_equal(look(place).life, INSTANCE_RUNNING);
    instance_leave(&other);
}

static void without_memory_nobody_becomes_the_service(void **state)
{
    const struct place *place = *state;
    for (size_t n = 0;; n++) {
        struct instance instance;
        allocation_fail_at(n);
        int rc = instance_become(&instance, &place->paths, NULL);
        bool has_failed = allocation_stop();
        assert_true(rc == 0 || has_failed);
        instance_leave(&instance);
        assert_int_equal(look(place).life, INSTANCE_NONE);
        if (!has_failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nobody_is_seen_where_nobody_was, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(service_is_seen_from_its_first_moment_to_its_last, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(second_service_is_refused_and_hears_of_the_first, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(pid_files_that_name_nobody_are_stale_and_no_obstacle, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(living_process_in_the_pid_file_counts_without_a_lock, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(pid_file_that_can_not_be_read_is_not_passed_over, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(pid_file_of_another_is_not_removed, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(service_that_dies_leaves_a_stale_state_with_its_trace, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(dead_owner_with_a_held_lock_is_foreign, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(service_that_lost_its_place_hears_of_it, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(without_memory_nobody_becomes_the_service, place_setup, place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
