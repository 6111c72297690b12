/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pfw/line.h"

static void parse_ok(const char *text, struct pfw_line *out_line)
{
    struct error err = {0};
    if (pfw_line_parse(text, strlen(text), out_line, &err) < 0)
        fail_msg("%s: %s", text, err.text);
}

static void integers_are_exact_and_fractions_rounded(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"{\"ts\":9007199254740993}", INT64_C(9007199254740993)}, /* 2^53 + 1: no double holds it */
        {"{\"ts\":1796098782398492123}", INT64_C(1796098782398492123)},
        {"{\"ts\":9223372036854775807}", INT64_MAX},
        {"{\"ts\":-9223372036854775808}", INT64_MIN},
        {"{\"ts\":-0}", 0},
        {"{\"ts\":12.5}", 13},
        {"{\"ts\":12.4}", 12},
        {"{\"ts\":1.5e3}", 1500},
        {"{\"ts\":-12.5}", -13},
        {"{\"ts\":1e-400}", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pfw_line line;
        parse_ok(cases[i].text, &line);
        if (!line.ts.is_present || line.ts.value != cases[i].value)
            fail_msg("%s: %lld", cases[i].text, (long long)line.ts.value);
    }
}

static void strings_are_unescaped_when_asked(void **state)
{
    (void)state;
    static const struct {
        const char *text; /* of the name, with its quotes */
        const char *bytes;
    } cases[] = {
        {"\"plain\"", "plain"},
        {"\"\"", ""},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e9\\u20ac\"", "A\xc3\xa9\xe2\x82\xac"},
        {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
        {"\"\\ud83d\"", "\xef\xbf\xbd"},
        {"\"\\ude00x\"", "\xef\xbf\xbdx"},
        {"\"\\ude00\\ude00\"", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
                               "A"},
        {"\"net-\\t \xc3\xa4\"", "net-\t \xc3\xa4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char event[128];
        (void)snprintf(event, sizeof event, "{\"name\":%s}", cases[i].text);
        struct pfw_line line;
        parse_ok(event, &line);
        struct buf out;
        buf_init(&out, 100);
        pfw_json_unescape(&line.name, &out);
        assert_string_equal(buf_string(&out), cases[i].bytes);
        assert_true(pfw_json_equals(&line.name, cases[i].bytes));
        assert_false(pfw_json_equals(&line.name, "other"));
        buf_fini(&out);
    }
    struct pfw_line line;
    parse_ok("{\"name\":\"a\\u0000b\"}", &line);
    assert_false(pfw_json_equals(&line.name, "a"));
    assert_false(pfw_json_equals(&line.name, "a\0b")); /* whose text ends at the NUL */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_exact_and_fractions_rounded),
        cmocka_unit_test(strings_are_unescaped_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
