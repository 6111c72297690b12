/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void parse_ok(const char *text, struct pfw_line *out_line)
{
    struct error err = {0};
    if (pfw_line_parse(text, strlen(text), out_line, &err) < 0)
        fail_msg("%s: %s", text, err.text);
}

static bool is_key(const struct pfw_args *args, size_t index, const char *text)
{
    struct cursor key = pfw_names_text(&args->keys, args->list[index].key);
    return cursor_equals(&key, text);
}

static void arguments_are_collected_each_key_once(void **state)
{
    (void)state;
    CLEANUP(pfw_args_cleanup) struct pfw_args args;
    pfw_args_init(&args);
    struct pfw_line line;
    parse_ok("{\"args\":{\"a\":1,\"b\":2,\"\\u0061\":3,\"\\u00e4\":4,\"\xc3\xa4\":5}}", &line);
    assert_int_equal(pfw_args_read(&args, &line.args, NULL), 0);
    assert_int_equal(args.count, 3);
    assert_int_equal(args.duplicates, 2);
    assert_true(is_key(&args, 0, "a"));
    assert_true(cursor_equals(&args.list[0].value.text, "3"));
    assert_true(is_key(&args, 1, "b"));
    assert_true(is_key(&args, 2, "\xc3\xa4"));
    assert_true(cursor_equals(&args.list[2].value.text, "5"));

    uint32_t key_of_b = args.list[1].key;
    parse_ok("{\"args\":{\"b\":6}}", &line);
    assert_int_equal(pfw_args_read(&args, &line.args, NULL), 0);
    assert_int_equal(args.count, 1);
    assert_int_equal(args.duplicates, 0);
    assert_int_equal(args.list[0].key, key_of_b);
    assert_true(cursor_equals(&args.list[0].value.text, "6"));
    parse_ok("{}", &line);
    assert_int_equal(pfw_args_read(&args, &line.args, NULL), 0);
    assert_int_equal(args.count, 0);
}

static void many_arguments_keep_their_order_and_values(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, 1 << 20);
    buf_text(&text, "{\"args\":{");
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < COUNT; i++)
            buf_printf(&text, "%s\"\\u006bey-%u\":%u", i + (unsigned)round > 0 ? "," : "", i, i + (unsigned)round);
    }
    buf_text(&text, "}}");
    struct pfw_line line;
    parse_ok(buf_string(&text), &line);
    CLEANUP(pfw_args_cleanup) struct pfw_args args;
    pfw_args_init(&args);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(pfw_args_read(&args, &line.args, NULL), 0);
        assert_int_equal(args.count, COUNT);
        assert_int_equal(args.duplicates, COUNT);
        for (unsigned i = 0; i < COUNT; i++) {
            char want[32];
            (void)snprintf(want, sizeof want, "key-%u", i);
            assert_true(is_key(&args, i, want));
            (void)snprintf(want, sizeof want, "%u", i + 1);
            assert_true(cursor_equals(&args.list[i].value.text, want));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_collected_each_key_once),
        cmocka_unit_test(many_arguments_keep_their_order_and_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
