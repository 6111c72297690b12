/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/random.h"
#include "util/buf.h"
#include "util/cleanup.h"
#include "util/cursor.h"

enum { STEPS = 20000, BURST_BYTES = 16 * 1024 * 1024, PAGE_BYTES = 4096 };

/* Numbered lines go in; what comes out must account for each number once and in order: as a line or as missing. */
struct account {
    struct pfw_queue queue;
    struct buf lines;
    uint64_t next_in;
    uint64_t next_out;
    uint64_t missing;
};

static void account_init(struct account *account, size_t max_bytes)
{
    *account = (struct account){0};
    pfw_queue_init(&account->queue, max_bytes);
    buf_init(&account->lines, BURST_BYTES);
}

static void account_cleanup(struct account *account)
{
    pfw_queue_fini(&account->queue);
    buf_fini(&account->lines);
}

static void account_append(struct account *account, size_t events, size_t padding)
{
    buf_reset(&account->lines);
    for (size_t i = 0; i < events; i++)
        buf_printf(&account->lines, "%llu %0*d\n", (unsigned long long)account->next_in++, (int)padding, 0);
    pfw_queue_append(&account->queue, account->lines.data, account->lines.length, events);
}

/* Uses `bytes` of a chunk, or what whole lines there are of them, and checks their numbers. */
static void account_use(struct account *account, struct pfw_chunk *chunk, size_t bytes)
{
    account->missing += chunk->dropped_before;
    account->next_out += chunk->dropped_before;
    chunk->dropped_before = 0;
    struct cursor cursor = cursor_of(chunk->bytes + chunk->start, chunk->end - chunk->start);
    const char *first = cursor.at;
    uint64_t events = 0;
    struct cursor line = {0};
    while ((size_t)(cursor.at - first) < bytes && cursor_line(&cursor, &line)) {
        uint64_t number = 0;
        assert_true(cursor_u64(&line, &number));
        assert_int_equal(number, account->next_out);
        account->next_out++;
        events++;
    }
    assert_int_equal(pfw_queue_give_back(&account->queue, chunk, (size_t)(cursor.at - first)), events);
}

static void account_drain(struct account *account)
{
    while (!pfw_queue_is_empty(&account->queue))
        account_use(account, pfw_queue_take(&account->queue), SIZE_MAX);
    assert_int_equal(account->next_out, account->next_in);
    assert_int_equal(account->queue.buffered_bytes, 0);
    assert_int_equal(account->queue.events_dropped, account->missing);
}

static void lines_come_out_as_they_went_in(void **state)
{
    (void)state;
    CLEANUP(account_cleanup) struct account account;
    account_init(&account, 1024 * 1024);
    for (size_t i = 0; i < 100; i++)
        account_append(&account, 1 + i, i);
    account_drain(&account);
    assert_int_equal(account.missing, 0);
}

static void past_the_limit_the_oldest_are_missing_and_no_more_than_needed(void **state)
{
    (void)state;
    CLEANUP(account_cleanup) struct account account;
    account_init(&account, 64 * 1024);
    for (size_t i = 0; i < 3000; i++) {
        account_append(&account, 1, 90);
        assert_true(account.queue.buffered_bytes <= 64 * 1024);
    }
    assert_true(account.queue.buffered_bytes > 64 * 1024 - 100);
    struct pfw_chunk *oldest = pfw_queue_take(&account.queue);
    assert_true(oldest->dropped_before > 2000);
    account_use(&account, oldest, SIZE_MAX);
    account_drain(&account);
}

/* What is being written can't be dropped; the gap is behind it then. */
static void gap_behind_a_chunk_that_is_out_is_told_behind_it(void **state)
{
    (void)state;
    CLEANUP(account_cleanup) struct account account;
    account_init(&account, 64 * 1024);
    account_append(&account, 100, 90);
    struct pfw_chunk *out = pfw_queue_take(&account.queue);
    account_append(&account, 3000, 90);
    assert_int_equal(out->dropped_before, 0);
    account_use(&account, out, SIZE_MAX);
    account_drain(&account);
    assert_true(account.missing > 2000);
}

static void all_lines_dropped_leave_a_gap_to_tell(void **state)
{
    (void)state;
    CLEANUP(account_cleanup) struct account account;
    account_init(&account, 10);
    account_append(&account, 7, 90);
    assert_int_equal(account.queue.buffered_bytes, 0);
    struct pfw_chunk *gap = pfw_queue_take(&account.queue);
    assert_int_equal(gap->dropped_before, 7);
    assert_int_equal(pfw_queue_give_back(&account.queue, gap, 0), 0); /* it could not be told */
    assert_false(pfw_queue_is_empty(&account.queue));
    account_drain(&account);
    assert_int_equal(account.missing, 7);
}

static void lines_for_which_a_chunk_that_is_out_leaves_no_room_are_told(void **state)
{
    (void)state;
    CLEANUP(account_cleanup) struct account account;
    account_init(&account, 100);
    account_append(&account, 1, 97); /* "0 ", 97 digits, newline */
    assert_int_equal(account.queue.buffered_bytes, 100);
    struct pfw_chunk *out = pfw_queue_take(&account.queue);
    account_append(&account, 3, 5);
    assert_int_equal(account.queue.events_dropped, 3);
    account_use(&account, out, SIZE_MAX);
    account_drain(&account);
    assert_int_equal(account.missing, 3);
}

static void any_order_of_steps_accounts_for_every_line(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    static const size_t limits[] = {1, 5000, 40000, 150000};
    for (size_t limit = 0; limit < ARRAY_LENGTH(limits); limit++) {
        CLEANUP(account_cleanup) struct account account;
        account_init(&account, limits[limit]);
        struct pfw_chunk *out = NULL;
        for (int step = 0; step < STEPS; step++) {
            size_t kind = random_below(&random, 100);
            if (kind < 95) {
                size_t padding = random_below(&random, random_below(&random, 50) == 0 ? 20000 : 120);
                account_append(&account, 1 + random_below(&random, 10), padding);
            } else if (kind < 97 && out == NULL) {
                out = pfw_queue_take(&account.queue);
            } else if (out != NULL) {
                bool is_all = random_below(&random, 2) != 0;
                account_use(&account, out, is_all ? SIZE_MAX : random_below(&random, out->end - out->start + 1));
                out = NULL;
            }
        }
        if (out != NULL)
            account_use(&account, out, 0);
        account_drain(&account);
        assert_true(account.missing > 0);
    }
}

static void failure_before_the_gap_was_told_keeps_it(void **state)
{
    (void)state;
    CLEANUP(account_cleanup) struct account account;
    account_init(&account, 64 * 1024);
    account_append(&account, 3000, 90);
    struct pfw_chunk *chunk = pfw_queue_take(&account.queue);
    uint64_t missing = chunk->dropped_before;
    assert_true(missing > 0);
    assert_int_equal(pfw_queue_give_back(&account.queue, chunk, 0), 0);
    account_append(&account, 100, 90);
    chunk = pfw_queue_take(&account.queue);
    assert_true(chunk->dropped_before > missing);
    account_use(&account, chunk, SIZE_MAX);
    account_drain(&account);
}

static void without_memory_new_lines_are_missing_and_counted(void **state)
{
    (void)state;
    CLEANUP(account_cleanup) struct account account;
    account_init(&account, 1024 * 1024);
    account_append(&account, 1, 0); /* so that the test's own memory is there */
    struct pfw_chunk *out = pfw_queue_take(&account.queue);
    allocation_fail_at(0);
    account_append(&account, 5, 0);
    assert_true(allocation_stop());
    assert_int_equal(account.queue.events_dropped, 5);
    account_append(&account, 1, 0);
    account_use(&account, out, SIZE_MAX);
    account_drain(&account);
    assert_int_equal(account.missing, 5);
}

#ifndef __SANITIZE_THREAD__ /* its shadow of our memory stays resident */
static size_t resident_bytes(void)
{
    char text[256];
    CLEANUP(stdio_cleanup) FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof text, file);
    struct cursor cursor = cursor_of(text, length);
    uint64_t total = 0;
    uint64_t resident = 0;
    assert_true(cursor_u64(&cursor, &total) && cursor_u64(&cursor, &resident));
    return (size_t)resident * PAGE_BYTES;
}

static void memory_of_a_burst_is_given_back(void **state)
{
    (void)state;
    CLEANUP(account_cleanup) struct account account;
    account_init(&account, BURST_BYTES);
    account_append(&account, 10, 90);
    account_drain(&account);
    size_t before_bytes = resident_bytes();
    for (size_t i = 0; i < 10000; i++)
        account_append(&account, 10, 140);
    assert_true(account.queue.buffered_bytes > BURST_BYTES / 10 * 8);
    assert_true(resident_bytes() - before_bytes > BURST_BYTES / 10 * 8);
    account_drain(&account);
    size_t after_bytes = resident_bytes();
    assert_true(after_bytes < before_bytes + 256 * 1024);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_out_as_they_went_in),
        cmocka_unit_test(past_the_limit_the_oldest_are_missing_and_no_more_than_needed),
        cmocka_unit_test(gap_behind_a_chunk_that_is_out_is_told_behind_it),
        cmocka_unit_test(all_lines_dropped_leave_a_gap_to_tell),
        cmocka_unit_test(lines_for_which_a_chunk_that_is_out_leaves_no_room_are_told),
        cmocka_unit_test(any_order_of_steps_accounts_for_every_line),
        cmocka_unit_test(failure_before_the_gap_was_told_keeps_it),
        cmocka_unit_test(without_memory_new_lines_are_missing_and_counted),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(memory_of_a_burst_is_given_back),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
