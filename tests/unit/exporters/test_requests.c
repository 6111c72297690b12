/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporters/mpi/requests.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "support/child.h"
#include "support/random.h"

static struct requests_entry entry_of(uint64_t bytes)
{
    return (struct requests_entry){.kind = REQUESTS_RECEIVE, .start_in_bytes = bytes};
}

static void add(uint64_t request, uint64_t bytes)
{
    struct requests_entry entry = entry_of(bytes);
    assert_true(requests_add(request, &entry));
}

static void end(uint64_t request)
{
    struct requests_slot *slot = requests_take(request);
    assert_non_null(slot);
    requests_drop(slot);
}

static int refuse_without_memory(void *context)
{
    struct rlimit enough;
    CHILD_CHECK(getrlimit(RLIMIT_AS, &enough) == 0);
    const struct rlimit none = {.rlim_cur = 1, .rlim_max = enough.rlim_max};
    struct requests_entry entry = entry_of(1);
    (void)context;
    CHILD_CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    bool is_refused = !requests_add(0x1000, &entry) && requests_find(0x1000) == NULL;
    CHILD_CHECK(setrlimit(RLIMIT_AS, &enough) == 0);
    CHILD_CHECK(is_refused);
    CHILD_CHECK(requests_add(0x1000, &entry));
    CHILD_CHECK(requests_find(0x1000) != NULL);
    return 0;
}

static void without_memory_a_request_is_refused(void **state)
{
    (void)state;
    child_run(refuse_without_memory, NULL);
}

static void a_request_is_found_until_it_is_taken_and_again_when_put_back(void **state)
{
    (void)state;
    assert_null(requests_find(0x5000));
    assert_null(requests_take(0x5000));
    add(0x5000, 17);
    assert_int_equal(requests_find(0x5000)->entry.start_in_bytes, 17);
    struct requests_slot *slot = requests_take(0x5000);
    assert_int_equal(slot->entry.start_in_bytes, 17);
    assert_null(requests_find(0x5000));
    requests_put_back(slot, 0x5000);
    assert_int_equal(requests_find(0x5000)->entry.start_in_bytes, 17);
    end(0x5000);
    assert_null(requests_find(0x5000));
}

static void a_handle_that_comes_again_is_the_new_request(void **state)
{
    (void)state;
    add(0x5000, 1);
    add(0x5000, 2);
    assert_int_equal(requests_find(0x5000)->entry.start_in_bytes, 2);
    end(0x5000);
    assert_null(requests_find(0x5000));
}

/* While one thread completes the request, its handle may be another's. */
static void a_handle_may_come_again_while_the_old_request_is_taken(void **state)
{
    (void)state;
    add(0x5000, 1);
    struct requests_slot *old = requests_take(0x5000);
    add(0x5000, 2);
    assert_int_equal(old->entry.start_in_bytes, 1);
    requests_drop(old);
    assert_int_equal(requests_find(0x5000)->entry.start_in_bytes, 2);
    end(0x5000);
}

static void no_request_is_followed_under_the_handles_that_mean_nothing(void **state)
{
    (void)state;
    struct requests_entry entry = entry_of(1);
    assert_false(requests_add(0, &entry));
    assert_false(requests_add(UINT64_MAX, &entry));
    assert_null(requests_find(0));
    assert_null(requests_take(UINT64_MAX));
}

/* More than the first tables hold, with handles as MPIs have them: addresses in a row, and small numbers. */
static void many_requests_are_all_found(void **state)
{
    (void)state;
    enum { MANY = 50000 };
    for (uint64_t i = 0; i < MANY; i++) {
        add(0x7f0000000000 + i * 448, i);
        add(0x98000000 + i, i + MANY);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        assert_int_equal(requests_find(0x7f0000000000 + i * 448)->entry.start_in_bytes, i);
        assert_int_equal(requests_find(0x98000000 + i)->entry.start_in_bytes, i + MANY);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        end(0x7f0000000000 + i * 448);
        end(0x98000000 + i);
    }
    for (uint64_t i = 0; i < MANY; i++)
        assert_null(requests_find(0x98000000 + i));
}

enum { THREADS = 4, HANDLES = 600, STEPS = 100000 };

struct worker {
    uint64_t first; /* of this thread's handles: neighbours in the tables of other threads' */
    struct random random;
    uint64_t bytes[HANDLES]; /* 0: not followed */
    bool has_failed;
};

static void work_step(struct worker *worker)
{
    size_t index = random_below(&worker->random, HANDLES);
    uint64_t request = worker->first + index * THREADS * 64;
    uint64_t *bytes = &worker->bytes[index];
    struct requests_slot *slot = requests_take(request);
    if ((slot != NULL) != (*bytes != 0) || (slot != NULL && slot->entry.start_in_bytes != *bytes)) {
        worker->has_failed = true;
    } else if (slot == NULL) {
        *bytes = 1 + random_below(&worker->random, 1000000);
        struct requests_entry entry = entry_of(*bytes);
        worker->has_failed = !requests_add(request, &entry);
    } else if (random_below(&worker->random, 2) == 0) {
        requests_put_back(slot, request);
    } else {
        requests_drop(slot);
        *bytes = 0;
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (int i = 0; i < STEPS && !worker->has_failed; i++)
        work_step(worker);
    for (size_t i = 0; i < HANDLES; i++) {
        struct requests_slot *slot = requests_take(worker->first + i * THREADS * 64);
        if (slot != NULL)
            requests_drop(slot);
    }
    return NULL;
}

static void threads_find_their_own_requests_whatever_others_do(void **state)
{
    (void)state;
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    struct random random = random_new(__func__);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].first = 0x10000 + i * 64;
        workers[i].random.state = random_u64(&random);
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_false(workers[i].has_failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_a_request_is_refused),
        cmocka_unit_test(a_request_is_found_until_it_is_taken_and_again_when_put_back),
        cmocka_unit_test(a_handle_that_comes_again_is_the_new_request),
        cmocka_unit_test(a_handle_may_come_again_while_the_old_request_is_taken),
        cmocka_unit_test(no_request_is_followed_under_the_handles_that_mean_nothing),
        cmocka_unit_test(many_requests_are_all_found),
        cmocka_unit_test(threads_find_their_own_requests_whatever_others_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
