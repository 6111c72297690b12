/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/table.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/random.h"

static const struct sample_column columns[] = {
    {"reads", "", "a counter", SAMPLE_COUNTER},
    {"depth", "", "a gauge", SAMPLE_INTEGER},
    {"heat", "celsius", "another", SAMPLE_REAL},
};
enum { READS, DEPTH, HEAT };

static void table_cleanup(struct sample_table *table)
{
    sample_table_fini(table);
}

static struct sample_table table_new(size_t rows_max)
{
    struct sample_table table;
    assert_int_equal(sample_table_init(&table, columns, ARRAY_LENGTH(columns), rows_max, NULL), 0);
    return table;
}

static struct sample_row *see(struct sample_table *table, const char *name)
{
    return sample_table_row(table, name, strlen(name));
}

/* One tick in which the kernel lists these names, given as one text of letters. */
static void tick(struct sample_table *table, const char *letters)
{
    sample_table_begin(table);
    for (size_t i = 0; letters[i] != '\0'; i++)
        assert_non_null(sample_table_row(table, &letters[i], 1));
    sample_table_end(table);
}

static void assert_rows(const struct sample_table *table, const char *letters)
{
    assert_int_equal(table->rows_count, strlen(letters));
    for (size_t i = 0; i < table->rows_count; i++) {
        assert_int_equal(table->rows[i]->name[0], letters[i]);
        assert_int_equal(table->rows[i]->name[1], '\0');
    }
}

static void rows_stand_in_the_kernels_order_whatever_comes_goes_or_moves(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new(0);
    static const char *const ticks[] = {"abcd",
                                        "abcd",
                                        "bcd",
                                        "bxcd",
                                        "dcxb",
                                        "",
                                        "a",
                                        "zyxwvutsrqponmlkjihgfedcba",
                                        "abcdefghijklmnopqrstuvwxyz",
                                        "acegikmoqsuwy",
                                        "bdfhjlnprtvxz"};
    for (size_t i = 0; i < ARRAY_LENGTH(ticks); i++) {
        tick(&table, ticks[i]);
        assert_rows(&table, ticks[i]);
    }
}

static void a_row_is_the_same_object_as_long_as_it_is_seen(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new(0);
    tick(&table, "abc");
    const struct sample_row *c = table.rows[2];
    assert_true(c->is_first);
    tick(&table, "cxb");
    assert_ptr_equal(table.rows[0], c);
    assert_false(c->is_first);
    assert_true(table.rows[1]->is_first);
}

static void a_row_that_was_away_for_a_tick_is_a_new_one(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new(0);
    uint64_t raws[] = {100, 150};
    for (size_t i = 0; i < ARRAY_LENGTH(raws); i++) {
        sample_table_begin(&table);
        sample_row_count(see(&table, "a"), READS, raws[i]);
        sample_table_end(&table);
    }
    assert_int_equal(table.rows[0]->values[READS].total, 50);
    tick(&table, "");
    tick(&table, "a");
    assert_true(table.rows[0]->is_first);
    assert_int_equal(table.rows[0]->values[READS].total, 0);
}

static void a_name_that_is_listed_twice_has_one_row(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new(0);
    for (int i = 0; i < 2; i++) {
        sample_table_begin(&table);
        assert_non_null(see(&table, "a"));
        assert_null(see(&table, "a"));
        assert_non_null(see(&table, "b"));
        assert_null(see(&table, "a"));
        sample_table_end(&table);
        assert_rows(&table, "ab");
    }
    assert_int_equal(table.rows_refused, 0);
}

static void a_full_table_refuses_new_rows_and_counts_them(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new(2);
    sample_table_begin(&table);
    assert_non_null(see(&table, "a"));
    assert_non_null(see(&table, "b"));
    assert_null(see(&table, "c"));
    sample_table_end(&table);
    assert_rows(&table, "ab");
    assert_int_equal(table.rows_refused, 1);
}

static void names_are_any_bytes_but_nul(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new(0);
    char *longest = malloc(SAMPLE_NAME_MAX_BYTES + 1);
    assert_non_null(longest);
    memset(longest, 'x', SAMPLE_NAME_MAX_BYTES + 1);
    sample_table_begin(&table);
    assert_non_null(sample_table_row(&table, "\xff\x01 \"\n", 5));
    assert_non_null(sample_table_row(&table, longest, SAMPLE_NAME_MAX_BYTES));
    assert_null(sample_table_row(&table, longest, SAMPLE_NAME_MAX_BYTES + 1));
    assert_null(sample_table_row(&table, "a\0b", 3));
    assert_null(sample_table_row(&table, "", 0));
    sample_table_end(&table);
    free(longest);
    assert_int_equal(table.rows_count, 2);
    assert_int_equal(table.rows_refused, 3);
    assert_string_equal(table.rows[0]->name, "\xff\x01 \"\n");
}

/* A counter's raw values, and what it must have increased by at each. */
static void assert_counts(const char *name, const uint64_t *raws, const uint64_t *increases, size_t count)
{
    CLEANUP(table_cleanup) struct sample_table table = table_new(0);
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        sample_table_begin(&table);
        struct sample_row *row = see(&table, "a");
        sample_row_count(row, READS, raws[i]);
        sample_table_end(&table);
        total += increases[i];
        if (row->values[READS].increase != increases[i] || row->values[READS].total != total)
            fail_msg("%s: value %zu, %llu, increases by %llu instead of %llu", name, i, (unsigned long long)raws[i],
                     (unsigned long long)row->values[READS].increase, (unsigned long long)increases[i]);
    }
}

enum { COUNTS_MAX = 6 };
static const struct counts {
    const char *name;
    size_t count;
    uint64_t raws[COUNTS_MAX];
    uint64_t increases[COUNTS_MAX];
} counts[] = {
    {"grows", 4, {1000, 1000, 1007, 2000}, {0, 0, 7, 993}},
    {"reads 0 once", 3, {1000000000000000, 0, 1000000000000100}, {0, 0, 100}},
    {"reads 0 twice", 4, {1000000000000000, 0, 0, 1000000000000100}, {0, 0, 0, 100}},
    {"reads next to nothing for a while", 4, {1000000000000000, 0, 5, 1000000000000100}, {0, 0, 5, 100}},
    {"comes back to just below", 4, {1000, 0, 999, 1010}, {0, 0, 0, 10}},
    {"wraps at 32 bits, then reads 0", 4, {4294967000, 200, 0, 500}, {0, 0, 0, 500}},
    {"wraps at 64 bits", 3, {UINT64_MAX - 5, 10, 30}, {0, 0, 20}},
    {"is reset", 5, {1000, 10, 30, 400, 410}, {0, 0, 20, 370, 10}},
    {"is reset and passes its old value", 6, {1000, 200, 450, 700, 1100, 1200}, {0, 0, 250, 250, 400, 100}},
    {"is reset twice", 6, {1000, 10, 600, 5, 8, 700}, {0, 0, 590, 0, 3, 100}},
    {"reads 0 after a reset", 5, {1000000, 10, 4000, 0, 4100}, {0, 0, 3990, 0, 100}},
    {"steps back by one, again and again", 6, {5482, 5481, 5482, 5481, 5482, 5483}, {0, 0, 0, 0, 0, 1}},
    {"steps back in two steps", 5, {5482, 5481, 5480, 5481, 5490}, {0, 0, 0, 0, 8}},
    {"steps back by one when it is small", 4, {2, 1, 2, 3}, {0, 0, 0, 1}},
    {"has values without sense", 5, {0, UINT64_MAX, 0, UINT64_MAX, UINT64_MAX}, {0, UINT64_MAX, 0, 0, 0}},
};

static void a_counter_turns_into_increases_that_can_be_added_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(counts); i++)
        assert_counts(counts[i].name, counts[i].raws, counts[i].increases, counts[i].count);
}

static void a_total_stops_at_the_largest_number_instead_of_falling(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new(0);
    static const uint64_t raws[] = {0, UINT64_MAX, 0, UINT64_MAX / 4 * 3, 0, UINT64_MAX / 3 * 2};
    uint64_t total = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(raws); i++) {
        sample_table_begin(&table);
        struct sample_row *row = see(&table, "a");
        sample_row_count(row, READS, raws[i]);
        sample_table_end(&table);
        assert_true(row->values[READS].total >= total);
        total = row->values[READS].total;
    }
    assert_true(total == UINT64_MAX);
}

static void what_a_tick_does_not_tell_is_unknown_and_what_it_missed_is_counted_later(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new(0);
    sample_table_begin(&table);
    struct sample_row *row = see(&table, "a");
    sample_row_count(row, READS, 100);
    sample_row_integer(row, DEPTH, -3);
    sample_row_real(row, HEAT, 36.5);
    sample_table_end(&table);
    assert_true(row->values[READS].is_known && row->values[DEPTH].is_known && row->values[HEAT].is_known);
    assert_int_equal(row->values[DEPTH].integer, -3);
    assert_true(row->values[HEAT].real > 36.4);

    tick(&table, "a");
    assert_false(row->values[READS].is_known || row->values[DEPTH].is_known || row->values[HEAT].is_known);
    assert_int_equal(row->values[READS].increase, 0);

    sample_table_begin(&table);
    sample_row_count(see(&table, "a"), READS, 130);
    sample_row_real(row, HEAT, NAN);
    sample_table_end(&table);
    assert_int_equal(row->values[READS].increase, 30);
    assert_false(row->values[HEAT].is_known);
}

static void a_name_that_means_another_thing_starts_anew(void **state)
{
    (void)state;
    static const uint64_t raws[] = {100, 150, 900000, 900010};
    static const uint64_t totals[] = {0, 50, 50, 60};
    CLEANUP(table_cleanup) struct sample_table table = table_new(0);
    sample_table_restart(&table, "a"); /* there is none yet */
    for (size_t i = 0; i < ARRAY_LENGTH(raws); i++) {
        sample_table_begin(&table);
        struct sample_row *row = see(&table, "a");
        sample_row_count(row, READS, raws[i]);
        sample_table_end(&table);
        if (i == 2)
            sample_table_restart(&table, "a");
        assert_int_equal(row->is_first, i == 0 || i == 2);
        assert_int_equal(row->values[READS].total, totals[i]);
    }
}

static void a_counter_that_is_listed_twice_in_a_tick_counts_once(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new(0);
    for (uint64_t raw = 100; raw <= 110; raw += 10) {
        sample_table_begin(&table);
        struct sample_row *row = see(&table, "a");
        sample_row_count(row, READS, raw);
        sample_row_count(row, READS, raw + 1000);
        sample_table_end(&table);
    }
    assert_int_equal(table.rows[0]->values[READS].increase, 10);
    assert_int_equal(table.rows[0]->values[READS].total, 10);
}

static void columns_appear_with_the_kernels_lines_and_keep_their_place(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new(0);
    tick(&table, "ab");
    size_t column = 0;
    for (size_t i = ARRAY_LENGTH(columns); i < SAMPLE_COLUMNS_MAX; i++) {
        char name[16];
        int length = snprintf(name, sizeof name, "column%zu?", i);
        assert_int_equal(sample_table_column(&table, name, (size_t)length - 1, "kB", SAMPLE_INTEGER, &column), 0);
        assert_int_equal(column, i);
        sample_row_integer(table.rows[1], column, (int64_t)i);
    }
    assert_int_equal(sample_table_column(&table, "one more", 8, "", SAMPLE_COUNTER, &column), -ENOSPC);
    assert_int_equal(sample_table_column(&table, "column17", 8, "kB", SAMPLE_INTEGER, &column), 0);
    assert_int_equal(column, 17);
    assert_int_equal(sample_table_column(&table, "reads", 5, "", SAMPLE_COUNTER, &column), 0);
    assert_int_equal(column, READS);
    assert_string_equal(table.columns[17].name, "column17");
    assert_int_equal(table.rows[1]->values[17].integer, 17);
    assert_false(table.rows[0]->values[17].is_known);
}

static void a_name_that_begins_like_a_column_is_another_one(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new(0);
    size_t column = 0;
    assert_int_equal(sample_table_column(&table, "read", 4, "", SAMPLE_COUNTER, &column), 0);
    assert_int_equal(column, ARRAY_LENGTH(columns));
    assert_int_equal(sample_table_column(&table, "reads\0of another", 16, "", SAMPLE_COUNTER, &column), -ENOSPC);
    assert_int_equal(sample_table_column(&table, "reads2", 6, "", SAMPLE_COUNTER, &column), 0);
    assert_int_equal(column, ARRAY_LENGTH(columns) + 1);
}

static void labels_are_copied_and_replaced(void **state)
{
    (void)state;
    CLEANUP(table_cleanup) struct sample_table table = table_new(0);
    tick(&table, "a");
    struct sample_row *row = table.rows[0];
    assert_null(row->label);
    sample_row_set_label(row, "vg-root!", 7);
    assert_string_equal(row->label, "vg-root");
    const char *same = row->label;
    sample_row_set_label(row, "vg-root", 7);
    assert_ptr_equal(row->label, same);
    sample_row_set_label(row, "vg", 2);
    assert_string_equal(row->label, "vg");
    sample_row_set_label(row, "", 0);
    assert_null(row->label);
}

/* A kernel that counts truly and shows it badly: sometimes 0, sometimes a little less, sometimes from 0 on again. */
struct bad_kernel {
    uint64_t counted; /* since the last reset, as the kernel shows it when it shows it well */
    uint64_t largest_step;
};

static uint64_t bad_kernel_show(struct bad_kernel *kernel, struct random *random)
{
    kernel->counted += random_below(random, kernel->largest_step + 1);
    switch (random_below(random, 16)) {
    case 0:
        return 0;
    case 1:
        return kernel->counted - kernel->counted / 16;
    case 2:
        if (random_below(random, 8) == 0)
            kernel->counted = random_below(random, kernel->largest_step + 1);
        return kernel->counted;
    default:
        return kernel->counted;
    }
}

static void whatever_the_kernel_shows_no_total_falls_and_no_increase_is_a_jump(void **state)
{
    (void)state;
    struct random random = random_new("table");
    for (size_t round = 0; round < 2000; round++) {
        CLEANUP(table_cleanup) struct sample_table table = table_new(0);
        struct bad_kernel kernel = {.counted = random_u64(&random) >> (1 + random_below(&random, 50)),
                                    .largest_step = 1 + random_below(&random, 1000)};
        uint64_t total = 0;
        size_t ticks = 1 + random_below(&random, 60);
        for (size_t i = 0; i < ticks; i++) {
            /* The first value is what all is counted from: a false one couldn't be told from a true one. */
            uint64_t raw = i == 0 ? kernel.counted : bad_kernel_show(&kernel, &random);
            sample_table_begin(&table);
            struct sample_row *row = see(&table, "a");
            sample_row_count(row, READS, raw);
            sample_table_end(&table);
            const struct sample_value *value = &row->values[READS];
            assert_true(value->total == total + value->increase);
            total = value->total;
            /* What a tick missed may come with a later one, but never more than there was. */
            assert_true(value->increase <= (i + 1) * kernel.largest_step);
        }
        assert_true(total <= ticks * kernel.largest_step);
    }
}

static void random_listings_end_in_the_order_of_the_last_one(void **state)
{
    (void)state;
    struct random random = random_new("table");
    CLEANUP(table_cleanup) struct sample_table table = table_new(0);
    for (size_t round = 0; round < 2000; round++) {
        char letters[27] = "";
        size_t count = 0;
        for (size_t i = 0; i < 26; i++) {
            if (random_below(&random, 4) != 0)
                letters[count++] = (char)('a' + (int)i);
        }
        for (size_t swaps = random_below(&random, 4); swaps > 0 && count > 1; swaps--) {
            size_t a = random_below(&random, count), b = random_below(&random, count);
            char letter = letters[a];
            letters[a] = letters[b];
            letters[b] = letter;
        }
        tick(&table, letters);
        assert_rows(&table, letters);
    }
}

/* All that allocates, with the n-th allocation failing: true when it succeeded. */
static bool use_table(struct sample_table *table)
{
    if (sample_table_init(table, columns, ARRAY_LENGTH(columns), 0, NULL) < 0)
        return false;
    bool is_whole = true;
    sample_table_begin(table);
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    for (size_t i = 0; letters[i] != '\0'; i++) {
        struct sample_row *row = sample_table_row(table, &letters[i], 1);
        is_whole = is_whole && row != NULL;
        if (row == NULL)
            continue;
        sample_row_count(row, READS, 1);
        sample_row_set_label(row, "label", 5);
        is_whole = is_whole && row->label != NULL;
    }
    sample_table_end(table);
    size_t column;
    int rc = sample_table_column(table, "more", 4, "", SAMPLE_INTEGER, &column);
    if (rc == 0)
        sample_row_integer(table->rows[0], column, 1);
    assert_true(rc == 0 || rc == -ENOMEM);
    return is_whole && rc == 0;
}

static void without_memory_what_there_is_stays_whole(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct sample_table table;
        allocation_fail_at(n);
        bool is_whole = use_table(&table);
        bool has_failed = allocation_stop();
        assert_true(is_whole != has_failed);
        if (table.columns != NULL)
            tick(&table, "zabc"); /* goes on where memory failed it */
        sample_table_fini(&table);
        if (!has_failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_stand_in_the_kernels_order_whatever_comes_goes_or_moves),
        cmocka_unit_test(a_row_is_the_same_object_as_long_as_it_is_seen),
        cmocka_unit_test(a_row_that_was_away_for_a_tick_is_a_new_one),
        cmocka_unit_test(a_name_that_is_listed_twice_has_one_row),
        cmocka_unit_test(a_full_table_refuses_new_rows_and_counts_them),
        cmocka_unit_test(names_are_any_bytes_but_nul),
        cmocka_unit_test(a_counter_turns_into_increases_that_can_be_added_up),
        cmocka_unit_test(a_total_stops_at_the_largest_number_instead_of_falling),
        cmocka_unit_test(what_a_tick_does_not_tell_is_unknown_and_what_it_missed_is_counted_later),
        cmocka_unit_test(a_name_that_means_another_thing_starts_anew),
        cmocka_unit_test(a_counter_that_is_listed_twice_in_a_tick_counts_once),
        cmocka_unit_test(columns_appear_with_the_kernels_lines_and_keep_their_place),
        cmocka_unit_test(a_name_that_begins_like_a_column_is_another_one),
        cmocka_unit_test(labels_are_copied_and_replaced),
        cmocka_unit_test(whatever_the_kernel_shows_no_total_falls_and_no_increase_is_a_jump),
        cmocka_unit_test(random_listings_end_in_the_order_of_the_last_one),
        cmocka_unit_test(without_memory_what_there_is_stays_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
