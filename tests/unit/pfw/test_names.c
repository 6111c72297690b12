/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/names.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void equal_texts_have_one_number_and_others_the_next(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    struct pfw_names names;
    pfw_names_init(&names, COUNT, 1 << 20);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            char text[32];
            int length = snprintf(text, sizeof text, "name of series %u", i);
            uint32_t number;
            assert_int_equal(pfw_names_add(&names, text, (size_t)length, &number, NULL), 0);
            assert_int_equal(number, i);
            struct cursor kept = pfw_names_text(&names, i);
            assert_true(cursor_equals(&kept, text));
            assert_int_equal(*kept.end, '\0');
        }
    }
    assert_int_equal(names.count, COUNT);
    uint32_t number = 7;
    struct error err = {0};
    assert_int_equal(pfw_names_add(&names, "one more", 8, &number, &err), -ENOSPC);
    assert_int_equal(number, 7);
    assert_non_null(strstr(err.text, "20000"));
    pfw_names_fini(&names);
}

static void texts_are_any_bytes(void **state)
{
    (void)state;
    struct pfw_names names;
    pfw_names_init(&names, 100, 1000);
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {{"", 0}, {"\0", 1}, {"\0\0", 2}, {"12345678", 8}, {"12345678\0", 9}, {"\xff", 1}};
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            uint32_t number;
            assert_int_equal(pfw_names_add(&names, cases[i].text, cases[i].length, &number, NULL), 0);
            assert_int_equal(number, i);
        }
    }
    pfw_names_fini(&names);
}

static void bytes_have_a_limit(void **state)
{
    (void)state;
    struct pfw_names names;
    pfw_names_init(&names, 100, 200000);
    static char text[199999];
    memset(text, 'x', sizeof text);
    uint32_t number;
    assert_int_equal(pfw_names_add(&names, "a", 1, &number, NULL), 0);
    assert_int_equal(pfw_names_add(&names, text, sizeof text, &number, NULL), -ENOSPC);
    assert_int_equal(pfw_names_add(&names, text, sizeof text - 2, &number, NULL), 0);
    assert_int_equal(pfw_names_add(&names, "b", 1, &number, NULL), -ENOSPC);
    assert_int_equal(pfw_names_add(&names, "a", 1, &number, NULL), 0);
    assert_int_equal(number, 0);
    pfw_names_fini(&names);
}

static void json_strings_count_unescaped(void **state)
{
    (void)state;
    struct pfw_names names;
    pfw_names_init(&names, 100, 1000);
    static const struct {
        const char *event;
        uint32_t number;
    } cases[] = {
        {"{\"name\":\"net-\\u00e4\"}", 0},
        {"{\"name\":\"net-\xc3\xa4\"}", 0},
        {"{\"name\":\"net-\\\\u00e4\"}", 1},
        {"{\"name\":\"n\\u0065t-\xc3\xa4\"}", 0},
        {"{\"name\":\"\"}", 2},
        {"{\"name\":7}", 2},
        {"{}", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pfw_line line;
        assert_int_equal(pfw_line_parse(cases[i].event, strlen(cases[i].event), &line, NULL), 0);
        uint32_t number;
        assert_int_equal(pfw_names_add_json(&names, &line.name, &number, NULL), 0);
        assert_int_equal(number, cases[i].number);
    }
    pfw_names_fini(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_texts_have_one_number_and_others_the_next),
        cmocka_unit_test(texts_are_any_bytes),
        cmocka_unit_test(bytes_have_a_limit),
        cmocka_unit_test(json_strings_count_unescaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
