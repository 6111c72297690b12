/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/chunk.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/random.h"
#include "util/cleanup.h"

enum { TICKS = 300, TEXT_MAX_BYTES = 1 << 20 };

/* A chunk with room for itself. */
struct room {
    int32_t missing[TICKS];
    double columns[CHUNK_COLUMNS_MAX][TICKS];
};

static struct chunk chunk_in(struct room *room, enum metric_kind kind, size_t ticks)
{
    struct chunk chunk = {.kind = kind, .ticks = ticks, .missing = room->missing};
    for (size_t i = 0; i < CHUNK_COLUMNS_MAX; i++)
        chunk.columns[i] = room->columns[i];
    return chunk;
}

static void fill(struct random *random, struct room *room, size_t ticks, size_t absent_percent)
{
    for (size_t i = 0; i < ticks; i++) {
        room->missing[i] = random_below(random, 10) == 0 ? (int32_t)random_below(random, 5000) : 0;
        if (random_below(random, 100) < absent_percent)
            room->missing[i] = CHUNK_ABSENT;
        for (size_t column = 0; column < CHUNK_COLUMNS_MAX; column++) {
            uint64_t bits = random_u64(random);
            memcpy(&room->columns[column][i], &bits, sizeof bits);
            if (random_below(random, 3) > 0)
                room->columns[column][i] = (double)(bits % 100);
        }
    }
}

static void assert_same(const struct chunk *before, const struct chunk *after)
{
    for (size_t i = 0; i < before->ticks; i++) {
        assert_int_equal(after->missing[i], before->missing[i]);
        for (size_t column = 0; column < chunk_columns(before->kind); column++) {
            double expected = before->missing[i] == CHUNK_ABSENT ? 0 : before->columns[column][i];
            assert_memory_equal(&after->columns[column][i], &expected, sizeof expected);
        }
    }
}

static void random_chunks_come_back_with_what_was_absent(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (size_t turn = 0; turn < 300; turn++) {
        struct room room;
        struct room back_room;
        size_t ticks = 1 + random_below(&random, TICKS);
        enum metric_kind kind = turn % 2 == 0 ? METRIC_COUNTER : METRIC_GAUGE;
        fill(&random, &room, ticks, turn % 5 == 0 ? 100 : random_below(&random, 60));
        struct chunk chunk = chunk_in(&room, kind, ticks);
        struct chunk back = chunk_in(&back_room, kind, ticks);
        CLEANUP(buf_cleanup) struct buf coded;
        buf_init(&coded, TEXT_MAX_BYTES);
        struct error err = {0};
        if (chunk_encode(&chunk, &coded, &err) < 0 || chunk_decode(coded.data, coded.length, &back, &err) < 0)
            fail_msg("%s", err.text);
        assert_same(&chunk, &back);
    }
}

static void damaged_bytes_are_refused_or_harmless(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    struct room room;
    struct room back_room;
    fill(&random, &room, TICKS, 20);
    struct chunk chunk = chunk_in(&room, METRIC_GAUGE, TICKS);
    struct chunk back = chunk_in(&back_room, METRIC_GAUGE, TICKS);
    CLEANUP(buf_cleanup) struct buf coded;
    buf_init(&coded, TEXT_MAX_BYTES);
    assert_int_equal(chunk_encode(&chunk, &coded, NULL), 0);
    for (size_t length = 0; length < coded.length; length++)
        assert_int_equal(chunk_decode(coded.data, length, &back, NULL), -EBADMSG);
    for (size_t turn = 0; turn < 2000; turn++) {
        char *changed = &coded.data[random_below(&random, coded.length)];
        char kept = *changed;
        *changed = (char)random_u64(&random);
        int rc = chunk_decode(coded.data, coded.length, &back, NULL);
        assert_true(rc == 0 || rc == -EBADMSG);
        *changed = kept;
    }
    buf_char(&coded, 0);
    assert_int_equal(chunk_decode(coded.data, coded.length, &back, NULL), -EBADMSG);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct room room = {.missing = {0, -2}};
    CLEANUP(buf_cleanup) struct buf coded;
    buf_init(&coded, TEXT_MAX_BYTES);
    struct chunk chunk = chunk_in(&room, METRIC_COUNTER, 2);
    assert_int_equal(chunk_encode(&chunk, &coded, NULL), -EINVAL);
    chunk.ticks = 0;
    assert_int_equal(chunk_encode(&chunk, &coded, NULL), -EINVAL);
    assert_int_equal(chunk_decode("x", 1, &chunk, NULL), -EBADMSG);
}

static void without_memory_it_says_so(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    struct room room;
    fill(&random, &room, TICKS, 20);
    struct chunk chunk = chunk_in(&room, METRIC_GAUGE, TICKS);
    for (size_t n = 0;; n++) {
        CLEANUP(buf_cleanup) struct buf coded;
        buf_init(&coded, TEXT_MAX_BYTES);
        allocation_fail_at(n);
        int rc = chunk_encode(&chunk, &coded, NULL);
        if (rc == 0)
            rc = chunk_decode(coded.data, coded.length, &chunk, NULL);
        if (!allocation_stop()) {
            assert_int_equal(rc, 0);
            break;
        }
        assert_true(rc == 0 || rc == -ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_chunks_come_back_with_what_was_absent),
        cmocka_unit_test(damaged_bytes_are_refused_or_harmless),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(without_memory_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
