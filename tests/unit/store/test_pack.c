/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/pack.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/random.h"
#include "util/cleanup.h"

enum { COUNT = 1024, TEXT_MAX_BYTES = 1 << 20 };

/* Packs and unpacks; returns how many bytes it took. */
static size_t assert_round_trip(const int64_t *numbers, size_t count)
{
    CLEANUP(buf_cleanup) struct buf packed;
    buf_init(&packed, TEXT_MAX_BYTES);
    assert_int_equal(pack_numbers(numbers, count, &packed, NULL), 0);
    int64_t *back = calloc(count + 1, sizeof *back);
    assert_non_null(back);
    struct pack_input input = {(const unsigned char *)packed.data, (const unsigned char *)packed.data + packed.length};
    assert_int_equal(pack_take_numbers(&input, back, count, NULL), 0);
    assert_ptr_equal(input.at, input.end);
    if (count > 0)
        assert_memory_equal(back, numbers, count * sizeof *numbers);
    free(back);
    return packed.length;
}

static void numbers_one_by_one_come_back(void **state)
{
    (void)state;
    static const int64_t numbers[] = {0, -1, 1, 63, -64, 64, 127, 128, INT64_MAX, INT64_MIN};
    CLEANUP(buf_cleanup) struct buf packed;
    buf_init(&packed, TEXT_MAX_BYTES);
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
        pack_signed(&packed, numbers[i]);
        pack_unsigned(&packed, (uint64_t)numbers[i]);
    }
    struct pack_input input = {(const unsigned char *)packed.data, (const unsigned char *)packed.data + packed.length};
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
        int64_t number;
        uint64_t unsigned_number;
        assert_int_equal(pack_take_signed(&input, &number, NULL), 0);
        assert_int_equal(pack_take_unsigned(&input, &unsigned_number, NULL), 0);
        assert_true(number == numbers[i] && unsigned_number == (uint64_t)numbers[i]);
    }
    struct error err = {0};
    uint64_t rest;
    assert_int_equal(pack_take_unsigned(&input, &rest, &err), -EBADMSG);
}

static void numbers_that_are_too_long_are_damage(void **state)
{
    (void)state;
    static const unsigned char endless[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    static const unsigned char too_big[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    uint64_t number;
    struct pack_input input = {endless, endless + sizeof endless};
    assert_int_equal(pack_take_unsigned(&input, &number, NULL), -EBADMSG);
    input = (struct pack_input){too_big, too_big + sizeof too_big};
    assert_int_equal(pack_take_unsigned(&input, &number, NULL), -EBADMSG);
}

static void sequences_of_any_length_come_back(void **state)
{
    (void)state;
    static int64_t numbers[3 * 128 + 2];
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++)
        numbers[i] = (int64_t)(i * i) - 1000;
    for (size_t count = 0; count <= ARRAY_LENGTH(numbers); count++)
        (void)assert_round_trip(numbers, count);
}

static void the_greatest_and_least_numbers_come_back(void **state)
{
    (void)state;
    static const int64_t numbers[] = {INT64_MIN, INT64_MAX, 0,         INT64_MIN, INT64_MIN, INT64_MAX, -1,
                                      1,         INT64_MAX, INT64_MAX, INT64_MIN, 0,         5,         INT64_MIN};
    for (size_t count = 1; count <= ARRAY_LENGTH(numbers); count++)
        (void)assert_round_trip(numbers, count);
}

/* Each shape is what it must cost: the way that fits is really taken. */
static void shapes_of_counters_are_small(void **state)
{
    (void)state;
    int64_t numbers[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        numbers[i] = 1000000;
    assert_in_range(assert_round_trip(numbers, COUNT), 1, 16);
    for (size_t i = 0; i < COUNT; i++)
        numbers[i] = 5000000000 + 4096 * (int64_t)i;
    assert_in_range(assert_round_trip(numbers, COUNT), 1, 50);
    for (size_t i = 0; i < COUNT; i++) /* by a multiple of 65536 */
        numbers[i] = (i == 0 ? 0 : numbers[i - 1]) + 65536 * (int64_t)(i * 7919 % 16);
    assert_in_range(assert_round_trip(numbers, COUNT), 1, COUNT / 2 + 60);
    for (size_t i = 0; i < COUNT; i++) /* moves at one tick in a hundred */
        numbers[i] = (i == 0 ? 0 : numbers[i - 1]) + (i % 100 == 50 ? 123456789 : 0);
    assert_in_range(assert_round_trip(numbers, COUNT), 1, 40);
    for (size_t i = 0; i < COUNT; i++) /* 5 bits of noise, and a reset */
        numbers[i] = (i == 600 ? 0 : i == 0 ? 1000000000 : numbers[i - 1]) + (int64_t)(i * 7919 % 31);
    assert_in_range(assert_round_trip(numbers, COUNT), 1, COUNT * 5 / 8 + 60);
}

static void random_sequences_come_back(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    int64_t numbers[COUNT];
    for (size_t turn = 0; turn < 400; turn++) {
        size_t count = 1 + random_below(&random, COUNT);
        size_t width = random_below(&random, 65);
        size_t sparse = 1 + random_below(&random, 50);
        bool is_sum = random_below(&random, 2) == 0;
        for (size_t i = 0; i < count; i++) {
            uint64_t bits = width == 0 ? 0 : random_u64(&random) >> (64 - width);
            if (random_below(&random, sparse) != 0)
                bits = 0;
            if (random_below(&random, 500) == 0)
                bits = random_u64(&random);
            numbers[i] = (int64_t)(bits + (is_sum && i > 0 ? (uint64_t)numbers[i - 1] : 0));
        }
        (void)assert_round_trip(numbers, count);
    }
}

static void every_cut_and_every_changed_byte_is_damage_or_other_numbers(void **state)
{
    (void)state;
    int64_t numbers[300];
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++)
        numbers[i] = (int64_t)(i * 7919 % 97) + (i == 70 ? 1000000 : 0);
    CLEANUP(buf_cleanup) struct buf packed;
    buf_init(&packed, TEXT_MAX_BYTES);
    assert_int_equal(pack_numbers(numbers, ARRAY_LENGTH(numbers), &packed, NULL), 0);
    for (size_t length = 0; length < packed.length; length++) {
        unsigned char *copy = malloc(length + 1); /* its end is where a sanitizer looks */
        assert_non_null(copy);
        memcpy(copy, packed.data, length);
        int64_t back[ARRAY_LENGTH(numbers)];
        struct pack_input input = {copy, copy + length};
        assert_int_equal(pack_take_numbers(&input, back, ARRAY_LENGTH(numbers), NULL), -EBADMSG);
        free(copy);
    }
    for (size_t i = 0; i < packed.length; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            packed.data[i] = (char)(packed.data[i] ^ 1 << bit);
            int64_t back[ARRAY_LENGTH(numbers)];
            struct pack_input input = {(const unsigned char *)packed.data,
                                       (const unsigned char *)packed.data + packed.length};
            int rc = pack_take_numbers(&input, back, ARRAY_LENGTH(numbers), NULL);
            assert_true(rc == 0 || rc == -EBADMSG);
            packed.data[i] = (char)(packed.data[i] ^ 1 << bit);
        }
    }
}

static void without_memory_it_says_so(void **state)
{
    (void)state;
    int64_t numbers[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        numbers[i] = (int64_t)(i / 100);
    for (size_t n = 0;; n++) {
        CLEANUP(buf_cleanup) struct buf packed;
        buf_init(&packed, TEXT_MAX_BYTES);
        struct error err = {0};
        allocation_fail_at(n);
        int rc = pack_numbers(numbers, COUNT, &packed, &err);
        bool has_failed = allocation_stop();
        if (!has_failed) {
            assert_int_equal(rc, 0);
            break;
        }
        assert_true(rc == 0 || rc == -ENOMEM); /* it may do without one of the ways */
    }
}

static void more_than_there_may_be_is_refused(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf packed;
    buf_init(&packed, TEXT_MAX_BYTES);
    int64_t one = 0;
    assert_int_equal(pack_numbers(&one, PACK_NUMBERS_MAX + 1, &packed, NULL), -E2BIG);
    assert_int_equal(packed.length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_one_by_one_come_back),
        cmocka_unit_test(numbers_that_are_too_long_are_damage),
        cmocka_unit_test(sequences_of_any_length_come_back),
        cmocka_unit_test(the_greatest_and_least_numbers_come_back),
        cmocka_unit_test(shapes_of_counters_are_small),
        cmocka_unit_test(random_sequences_come_back),
        cmocka_unit_test(every_cut_and_every_changed_byte_is_damage_or_other_numbers),
        cmocka_unit_test(without_memory_it_says_so),
        cmocka_unit_test(more_than_there_may_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
