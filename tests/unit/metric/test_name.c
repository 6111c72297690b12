/* SPDX-License-Identifier: BSD-3-Clause */
#include "metric/name.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/random.h"

struct name_case {
    const char *text;
    const char *legal;
    bool was_legal;
};

static const struct name_case cases[] = {
    {"key", "key", true},
    {"mpi___hits___mpi_send", "mpi___hits___mpi_send", true},
    {"a:b_9", "a:b_9", true},
    {"9lives", "_9lives", false},
    {"with blank-and.dot", "with_blank_and_dot", false},
    {"\xc3\xa9t\xc3\xa9", "__t__", false},
    {"x{}", "x", true},
    {"x{a=\"1\"}", "x{a=\"1\"}", true},
    {"x{ a = \"1\" , b=\"2\", }", "x{a=\"1\",b=\"2\"}", true},
    {"x{b=\"2\",a=\"1\"}", "x{a=\"1\",b=\"2\"}", true},
    {"x{a=\"1\",a=\"2\"}", "x{a=\"2\"}", false},
    {"x{a:b=\"1\"}", "x{a_b=\"1\"}", false},
    {"x{1=\"1\"}", "x{_1=\"1\"}", false},
    {"x{a=\"q\\\"u\\\\o\\nte\"}", "x{a=\"q\\\"u\\\\o\\nte\"}", true},
    {"x{a=\"\\t\"}", "x{a=\"\\\\t\"}", false},
    {"x{a=\"line\nbreak\"}", "x{a=\"line\\nbreak\"}", false},
    {"x{a=\"\xff\"}", "x{a=\"\xef\xbf\xbd\"}", false},
    {"x{a=\"\xc3\xa9,}={\"}", "x{a=\"\xc3\xa9,}={\"}", true},
    {"x{a=1}", "x_a_1_", false},
    {"x{a=\"1\"", "x_a__1_", false},
    {"x{a=\"1\"}y", "x_a__1__y", false},
    {"x{a=\"1\" b=\"2\"}", "x_a__1__b__2__", false},
    {"x{=\"1\"}", "x___1__", false},
    {"{a=\"1\"}", "_{a=\"1\"}", false},
};

static int parse(const char *text, size_t length, struct buf *out, bool *was_legal, struct error *err)
{
    buf_reset(out);
    return metric_name_parse(text, length, out, was_legal, err);
}

static void names_become_legal_ones(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, 8192);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        bool was_legal = !cases[i].was_legal;
        struct error err = {0};
        if (parse(cases[i].text, strlen(cases[i].text), &out, &was_legal, &err) != 0)
            fail_msg("%s: %s", cases[i].text, err.text);
        if (strcmp(buf_string(&out), cases[i].legal) != 0 || was_legal != cases[i].was_legal)
            fail_msg("%s: got %s, %s", cases[i].text, buf_string(&out), was_legal ? "legal" : "mapped");
    }
}

static void a_legal_name_stays_as_it_is(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    CLEANUP(buf_cleanup) struct buf once;
    CLEANUP(buf_cleanup) struct buf twice;
    buf_init(&once, 8192);
    buf_init(&twice, 8192);
    static const char alphabet[] = "ab_:9{}=\",\\ \n\xff\xc3\xa9";
    for (int round = 0; round < 20000; round++) {
        char text[24];
        size_t length = 1 + random_below(&random, sizeof text - 1);
        for (size_t i = 0; i < length; i++)
            text[i] = alphabet[random_below(&random, sizeof alphabet)]; /* its NUL, too */
        bool was_legal = false;
        if (parse(text, length, &once, &was_legal, NULL) != 0)
            continue;
        assert_int_equal(parse(once.data, once.length, &twice, &was_legal, NULL), 0);
        assert_int_equal(once.length, twice.length);
        assert_memory_equal(once.data, twice.data, once.length);
        assert_true(was_legal);
    }
}

static void what_cannot_be_a_name_is_refused(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf out;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&out, 1 << 20);
    buf_init(&text, 1 << 20);
    bool was_legal = false;
    struct error err = {0};
    assert_int_equal(parse("", 0, &out, &was_legal, &err), -EINVAL);

    for (size_t i = 0; i <= METRIC_NAME_MAX_BYTES; i++)
        buf_char(&text, 'a');
    assert_int_equal(parse(text.data, METRIC_NAME_MAX_BYTES, &out, &was_legal, &err), 0);
    assert_int_equal(parse(text.data, text.length, &out, &was_legal, &err), -EINVAL);
    assert_int_equal(out.length, 0);

    buf_reset(&text);
    buf_text(&text, "x{");
    for (int i = 0; i <= METRIC_LABELS_MAX; i++)
        buf_printf(&text, "l%d=\"\",", i);
    buf_text(&text, "}");
    assert_int_equal(parse(text.data, text.length, &out, &was_legal, &err), -EINVAL);
    assert_non_null(strstr(err.text, "32 labels"));
}

static void a_name_is_taken_apart(void **state)
{
    (void)state;
    size_t bytes = 0;
    assert_int_equal(metric_name_family_bytes("disk{a=\"1\"}"), 4);
    assert_memory_equal(metric_name_labels("disk{a=\"1\"}", &bytes), "a=\"1\"", 5);
    assert_int_equal(bytes, 5);
    assert_int_equal(metric_name_family_bytes("disk"), 4);
    assert_non_null(metric_name_labels("disk", &bytes));
    assert_int_equal(bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_become_legal_ones),
        cmocka_unit_test(a_legal_name_stays_as_it_is),
        cmocka_unit_test(what_cannot_be_a_name_is_refused),
        cmocka_unit_test(a_name_is_taken_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
