/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/auth_nonces.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/random.h"

enum { WINDOW = 1000, START = 1000000, MAX = 100, ROUNDS = 20000 };

struct nonce {
    uint8_t bytes[AUTH_MAC_NONCE_BYTES];
};

static struct nonce nonce_of(uint64_t number)
{
    struct nonce nonce = {0};
    memcpy(nonce.bytes, &number, sizeof number);
    return nonce;
}

static int use(struct auth_nonces *nonces, uint64_t number, int64_t time_ms, int64_t now_ms)
{
    struct nonce nonce = nonce_of(number);
    return auth_nonces_use(nonces, nonce.bytes, time_ms, now_ms, NULL);
}

static void nonce_is_good_once(void **state)
{
    (void)state;
    CLEANUP(auth_nonces_cleanup) struct auth_nonces *nonces = auth_nonces_new(WINDOW, MAX);
    assert_int_equal(use(nonces, 1, START, START), 0);
    assert_int_equal(use(nonces, 1, START, START), -EACCES);
    assert_int_equal(use(nonces, 1, START + 1, START + 1), -EACCES);
    assert_int_equal(use(nonces, 2, START, START), 0);
}

static void times_outside_the_window_are_refused(void **state)
{
    (void)state;
    CLEANUP(auth_nonces_cleanup) struct auth_nonces *nonces = auth_nonces_new(WINDOW, MAX);
    assert_int_equal(use(nonces, 1, START - WINDOW, START), 0);
    assert_int_equal(use(nonces, 2, START + WINDOW, START), 0);
    assert_int_equal(use(nonces, 3, START - WINDOW - 1, START), -EACCES);
    assert_int_equal(use(nonces, 4, START + WINDOW + 1, START), -EACCES);
    assert_int_equal(use(nonces, 5, 0, START), -EACCES);
    assert_int_equal(use(nonces, 6, INT64_MAX, START), -EACCES);
    assert_int_equal(use(nonces, 7, INT64_MIN, START), -EACCES);
}

static void full_set_refuses_and_has_room_again_later(void **state)
{
    (void)state;
    CLEANUP(auth_nonces_cleanup) struct auth_nonces *nonces = auth_nonces_new(WINDOW, MAX);
    for (uint64_t i = 0; i < MAX; i++)
        assert_int_equal(use(nonces, i, START, START), 0);
    assert_int_equal(use(nonces, MAX, START, START), -ENOSPC);
    assert_int_equal(use(nonces, 0, START, START), -EACCES); /* none was forgotten for it */
    int64_t later = START + 2 * WINDOW + 1;
    assert_int_equal(use(nonces, MAX, later, later), 0);
    assert_int_equal(auth_nonces_count(nonces), 1);
}

static void clock_that_jumps_accepts_nothing_twice_and_locks_nobody_out(void **state)
{
    (void)state;
    CLEANUP(auth_nonces_cleanup) struct auth_nonces *nonces = auth_nonces_new(WINDOW, MAX);
    int64_t far = START + 1000 * WINDOW;
    assert_int_equal(use(nonces, 1, START, START), 0);
    assert_int_equal(use(nonces, 2, far, far), 0);             /* ahead: forgets the first */
    assert_int_equal(use(nonces, 1, START, START), -EACCES);   /* back: and still knows it */
    assert_int_equal(use(nonces, 3, START + 1, START + 1), 0); /* what is newer is fine */
    assert_int_equal(use(nonces, 2, far, far), -EACCES);
}

/* Whatever the clock does, no request is accepted twice. */
static void nothing_is_ever_accepted_twice(void **state)
{
    (void)state;
    struct random random = random_new("nothing_is_ever_accepted_twice");
    CLEANUP(auth_nonces_cleanup) struct auth_nonces *nonces = auth_nonces_new(WINDOW, MAX);
    enum { REQUESTS = 64 };
    int64_t times[REQUESTS];
    bool was_accepted[REQUESTS] = {false};
    int64_t now = START;
    for (size_t i = 0; i < REQUESTS; i++)
        times[i] = START + (int64_t)random_below(&random, 10 * WINDOW);
    size_t accepted = 0;
    for (int round = 0; round < ROUNDS; round++) {
        now = random_below(&random, 20) == 0 ? START + (int64_t)random_below(&random, 10 * WINDOW) : now + 1;
        size_t one = random_below(&random, REQUESTS);
        if (use(nonces, one, times[one], now) != 0)
            continue;
        assert_false(was_accepted[one]);
        was_accepted[one] = true;
        accepted++;
    }
    assert_true(accepted > 0);
}

static void without_memory_a_request_is_refused_and_may_come_again(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        CLEANUP(auth_nonces_cleanup) struct auth_nonces *nonces = auth_nonces_new(WINDOW, MAX);
        allocation_fail_at(n);
        int rc = use(nonces, 1, START, START);
        bool has_failed = allocation_stop();
        assert_int_equal(rc, has_failed ? -ENOMEM : 0);
        assert_int_equal(use(nonces, 1, START, START), has_failed ? 0 : -EACCES);
        if (!has_failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nonce_is_good_once),
        cmocka_unit_test(times_outside_the_window_are_refused),
        cmocka_unit_test(full_set_refuses_and_has_room_again_later),
        cmocka_unit_test(clock_that_jumps_accepts_nothing_twice_and_locks_nobody_out),
        cmocka_unit_test(nothing_is_ever_accepted_twice),
        cmocka_unit_test(without_memory_a_request_is_refused_and_may_come_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
