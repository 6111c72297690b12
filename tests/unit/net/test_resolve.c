/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/resolve.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "net/socket_address.h"

struct answer {
    unsigned calls;
    int code;
    struct resolve_addresses addresses;
};

static void on_done(void *context, const struct resolve_addresses *addresses, const struct error *err)
{
    struct answer *answer = context;
    answer->calls++;
    answer->code = err != NULL ? err->code : 0;
    if (addresses != NULL)
        answer->addresses = *addresses;
}

/* Runs the loop until the answer is there; every query has a deadline. */
static void wait_for(uv_loop_t *loop, const struct answer *answer)
{
    while (answer->calls == 0)
        (void)uv_run(loop, UV_RUN_ONCE);
}

static void finish(uv_loop_t *loop, struct resolve *resolve)
{
    (void)resolve_close(resolve);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0); /* nothing is left behind */
}

static void literal_addresses_are_known_at_once(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct resolve_addresses addresses;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct resolve *resolve = resolve_new(&loop);
    static const char *const literals[] = {"127.0.0.1", "::1", "[::1]", "255.255.255.255"};
    for (size_t i = 0; i < ARRAY_LENGTH(literals); i++) {
        assert_int_equal(resolve_known(resolve, literals[i], &addresses), 1);
        assert_int_equal(addresses.count, 1);
    }
    assert_int_equal(resolve_known(resolve, "localhost", &addresses), 0);
    finish(&loop, resolve);
}

static void name_is_looked_up_once_and_then_known(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct answer first = {0}, second = {0}, third = {0};
    struct resolve_query *query;
    struct resolve_addresses addresses;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct resolve *resolve = resolve_new(&loop);
    assert_int_equal(resolve_start(resolve, "localhost", 20000, on_done, &first, &query, NULL), 0);
    assert_int_equal(resolve_start(resolve, "localhost", 20000, on_done, &second, &query, NULL), 0);
    assert_int_equal(first.calls, 0); /* never from within */
    wait_for(&loop, &first);
    wait_for(&loop, &second);
    assert_int_equal(first.code, 0);
    assert_true(first.addresses.count > 0 && socket_address_is_loopback(&first.addresses.at[0]));
    assert_int_equal(resolve_known(resolve, "localhost", &addresses), 1);
    assert_int_equal(resolve_start(resolve, "localhost", 20000, on_done, &third, &query, NULL), 0);
    assert_int_equal(third.calls, 0);
    wait_for(&loop, &third);
    assert_int_equal(third.addresses.count, first.addresses.count);
    finish(&loop, resolve);
    assert_int_equal(first.calls + second.calls + third.calls, 3);
}

static void deadline_ends_a_query_that_waits_for_its_turn(void **state)
{
    (void)state;
    uv_loop_t loop;
    enum { NAMES = 20 };
    struct answer answers[NAMES] = {0};
    struct resolve_query *query;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct resolve *resolve = resolve_new(&loop);
    for (size_t i = 0; i < NAMES; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "n%zu.invalid", i);
        assert_int_equal(resolve_start(resolve, name, 1, on_done, &answers[i], &query, NULL), 0);
    }
    for (size_t i = 0; i < NAMES; i++) {
        wait_for(&loop, &answers[i]);
        assert_int_equal(answers[i].calls, 1);
        assert_true(answers[i].code == -ETIMEDOUT || answers[i].code == -ENOENT); /* as fast as the name server */
    }
    finish(&loop, resolve);
}

static void cancelled_query_is_not_answered(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct answer cancelled = {0}, kept = {0}, closed = {0};
    struct resolve_query *query, *other;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct resolve *resolve = resolve_new(&loop);
    assert_int_equal(resolve_start(resolve, "localhost", 20000, on_done, &cancelled, &query, NULL), 0);
    assert_int_equal(resolve_start(resolve, "localhost", 20000, on_done, &kept, &other, NULL), 0);
    resolve_cancel(query);
    wait_for(&loop, &kept);
    assert_int_equal(resolve_start(resolve, "also.invalid", 20000, on_done, &closed, &other, NULL), 0);
    finish(&loop, resolve);
    assert_int_equal(cancelled.calls, 0);
    assert_int_equal(closed.calls, 0);
}

static void what_is_no_name_is_refused(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct answer answer = {0};
    struct resolve_query *query;
    char longest[255];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    const char *const bad[] = {"", "-x", ".x", "a b", "a/b", "a:1", "a%b", "caf\xc3\xa9", longest};
    assert_int_equal(uv_loop_init(&loop), 0);
    struct resolve *resolve = resolve_new(&loop);
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        assert_int_equal(resolve_start(resolve, bad[i], 1, on_done, &answer, &query, NULL), -EINVAL);
    finish(&loop, resolve);
    assert_int_equal(answer.calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(literal_addresses_are_known_at_once),
        cmocka_unit_test(name_is_looked_up_once_and_then_known),
        cmocka_unit_test(deadline_ends_a_query_that_waits_for_its_turn),
        cmocka_unit_test(cancelled_query_is_not_answered),
        cmocka_unit_test(what_is_no_name_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
