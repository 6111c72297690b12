/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/http_target.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"

static void path_and_query_are_decoded_once(void **state)
{
    (void)state;
    CLEANUP(http_target_cleanup) struct http_target target;
    assert_int_equal(http_target_parse("/a%20b%2Fc%2500/+?x=1+2&y=%26&z&=w&&n%61me=%C3%A9&bad=%zz%", &target, NULL), 0);
    assert_string_equal(target.path, "/a b/c%00/+");
    assert_int_equal(target.param_count, 6);
    assert_string_equal(http_target_param(&target, "x"), "1 2");
    assert_string_equal(http_target_param(&target, "y"), "&");
    assert_string_equal(http_target_param(&target, "z"), "");
    assert_string_equal(http_target_param(&target, ""), "w");
    assert_string_equal(http_target_param(&target, "name"), "\xc3\xa9");
    assert_string_equal(http_target_param(&target, "bad"), "%zz%");
    assert_null(http_target_param(&target, "X"));
}

static void first_of_two_parameters_counts(void **state)
{
    (void)state;
    CLEANUP(http_target_cleanup) struct http_target target;
    assert_int_equal(http_target_parse("/?a=1&a=2", &target, NULL), 0);
    assert_string_equal(http_target_param(&target, "a"), "1");
}

static void bad_targets_are_refused_in_words(void **state)
{
    (void)state;
    static const struct {
        const char *raw;
        const char *reason;
    } cases[] = {
        {"", "no path"},
        {"*", "no path"},
        {"http://x/", "no path"},
        {"a/b", "no path"},
        {"/%00", "NUL"},
        {"/a?b=%00", "NUL"},
        {"/a?%00", "NUL"},
        {"/%", "begins no escape"},
        {"/%4", "begins no escape"},
        {"/%4g", "begins no escape"},
        {"/a b", "blank"},
        {"/a\x01", "control"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(http_target_cleanup) struct http_target target;
        struct error err = {0};
        if (http_target_parse(cases[i].raw, &target, &err) != -EINVAL || strstr(err.text, cases[i].reason) == NULL)
            fail_msg("'%s': %s", cases[i].raw, err.text);
    }
}

static void parameters_are_bounded(void **state)
{
    (void)state;
    char raw[4 * HTTP_TARGET_PARAMS_MAX + 8] = "/?";
    for (int i = 0; i < HTTP_TARGET_PARAMS_MAX; i++)
        memcpy(raw + 2 + 4 * i, "a=1&", 4);
    CLEANUP(http_target_cleanup) struct http_target most;
    assert_int_equal(http_target_parse(raw, &most, NULL), 0);
    assert_int_equal(most.param_count, HTTP_TARGET_PARAMS_MAX);
    raw[2 + 4 * HTTP_TARGET_PARAMS_MAX] = 'b';
    CLEANUP(http_target_cleanup) struct http_target more;
    assert_int_equal(http_target_parse(raw, &more, NULL), -E2BIG);
}

static void lack_of_memory_is_told(void **state)
{
    (void)state;
    CLEANUP(http_target_cleanup) struct http_target target;
    allocation_fail_at(0);
    assert_int_equal(http_target_parse("/a", &target, NULL), -ENOMEM);
    assert_true(allocation_stop());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_and_query_are_decoded_once),  cmocka_unit_test(first_of_two_parameters_counts),
        cmocka_unit_test(bad_targets_are_refused_in_words), cmocka_unit_test(parameters_are_bounded),
        cmocka_unit_test(lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
