/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/line.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int parse(const char *text, struct pfw_line *out_line, struct error *err)
{
    return pfw_line_parse(text, strlen(text), out_line, err);
}

static void parse_ok(const char *text, struct pfw_line *out_line)
{
    struct error err = {0};
    if (parse(text, out_line, &err) < 0)
        fail_msg("%s: %s", text, err.text);
}

static void finds_every_part_of_an_event(void **state)
{
    (void)state;
    struct pfw_line line;
    parse_ok("{\"name\":\"cpu-0\",\"cat\":\"sys\",\"type\":7,\"ts\":1796098782398492,\"ph\":2,\"pid\":17,\"tid\":3,"
             "\"args\":{\"hhash\":\"6882804a826580cd\",\"user_pct\":4.5}}",
             &line);
    assert_true(pfw_json_equals(&line.name, "cpu-0"));
    assert_true(pfw_json_equals(&line.category, "sys"));
    assert_true(pfw_json_equals(&line.host_hash, "6882804a826580cd"));
    assert_int_equal(line.type.value, PFW_TYPE_PSUTIL);
    assert_true(line.ts.is_present);
    assert_int_equal(line.ts.value, 1796098782398492);
    assert_int_equal(line.phase, PFW_COUNTER);
    assert_int_equal(line.pid.value, 17);
    assert_int_equal(line.tid.value, 3);
    assert_false(line.dur.is_present);
    assert_int_equal(line.args.kind, PFW_JSON_OBJECT);

    struct pfw_json value = pfw_member(&line.args, "user_pct");
    assert_int_equal(value.kind, PFW_JSON_NUMBER);
    assert_true(cursor_equals(&value.text, "4.5"));
    assert_int_equal(pfw_member(&line.args, "nice_pct").kind, PFW_JSON_NONE);
}

static void keys_come_in_any_order_and_unknown_ones_are_passed_over(void **state)
{
    (void)state;
    struct pfw_line line;
    parse_ok(" {\t\"args\" : { } , \"x\":[1,{\"name\":\"inner\"},[]],\"ph\":\"X\",\"dur\":5, \"name\":\"read\" } \r\n",
             &line);
    assert_true(pfw_json_equals(&line.name, "read"));
    assert_int_equal(line.phase, PFW_COMPLETE);
    assert_int_equal(line.dur.value, 5);
    assert_int_equal(line.category.kind, PFW_JSON_NONE);
    assert_int_equal(line.host_hash.kind, PFW_JSON_NONE);
}

static void phases_are_numbers_or_letters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int phase;
    } cases[] = {
        {"{\"ph\":1}", PFW_COMPLETE},
        {"{\"ph\":2}", PFW_COUNTER},
        {"{\"ph\":3}", PFW_AGGREGATED},
        {"{\"ph\":4}", PFW_METADATA},
        {"{\"ph\":\"X\"}", PFW_COMPLETE},
        {"{\"ph\":\"C\"}", PFW_COUNTER},
        {"{\"ph\":\"A\"}", PFW_AGGREGATED},
        {"{\"ph\":\"M\"}", PFW_METADATA},
        {"{\"ph\":5}", 0},
        {"{\"ph\":0}", 0},
        {"{\"ph\":\"B\"}", 0},
        {"{\"ph\":\"XX\"}", 0},
        {"{\"ph\":null}", 0},
        {"{}", 0},
        {"{\"ph\":\"\\u0058\"}", PFW_COMPLETE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pfw_line line;
        parse_ok(cases[i].text, &line);
        if ((int)line.phase != cases[i].phase)
            fail_msg("%s: phase %d", cases[i].text, (int)line.phase);
    }
}

static void the_last_of_two_equal_keys_wins(void **state)
{
    (void)state;
    struct pfw_line line;
    parse_ok("{\"name\":\"a\",\"ts\":1,\"n\\u0061me\":\"b\",\"ts\":\"none\","
             "\"args\":{\"hhash\":\"1\",\"k\":1,\"hhash\":\"2\",\"k\":2}}",
             &line);
    assert_true(pfw_json_equals(&line.name, "b"));
    assert_false(line.ts.is_present);
    assert_true(pfw_json_equals(&line.host_hash, "2"));
    struct pfw_json value = pfw_member(&line.args, "k");
    assert_true(cursor_equals(&value.text, "2"));

    parse_ok("{\"args\":{\"hhash\":\"1\"},\"args\":{}}", &line);
    assert_int_equal(line.host_hash.kind, PFW_JSON_NONE);
    parse_ok("{\"args\":{\"hhash\":\"1\"},\"args\":7}", &line);
    assert_int_equal(line.host_hash.kind, PFW_JSON_NONE);
    assert_int_equal(line.args.kind, PFW_JSON_NONE);
    parse_ok("{\"args\":{\"hhash\":17}}", &line);
    assert_int_equal(line.host_hash.kind, PFW_JSON_NONE);
}

/* Where each goes wrong. */
static const struct {
    const char *text;
    size_t byte;
} wrong_lines[] = {
    {"", 1},
    {"[]", 1},
    {"7", 1},
    {"{", 2},
    {"{\"a\"", 5},
    {"{\"a\":", 6},
    {"{\"a\":1", 7},
    {"{\"a\":1,", 8},
    {"{\"a\":1,}", 8},
    {"{,}", 2},
    {"{a:1}", 2},
    {"{'a':1}", 2},
    {"{\"a\" 1}", 6},
    {"{\"a\":1 \"b\":2}", 8},
    {"{\"a\":1}}", 8},
    {"{\"a\":1} {", 9},
    {"{\"a\":01}", 6},
    {"{\"a\":-01}", 7},
    {"{\"a\":-}", 7},
    {"{\"a\":+1}", 6},
    {"{\"a\":.5}", 6},
    {"{\"a\":5.}", 8},
    {"{\"a\":5e}", 8},
    {"{\"a\":5e+}", 9},
    {"{\"a\":0x10}", 7},
    {"{\"a\":NaN}", 6},
    {"{\"a\":Infinity}", 6},
    {"{\"a\":nul}", 6},
    {"{\"a\":True}", 6},
    {"{\"a\":[1,]}", 9},
    {"{\"a\":[1 2]}", 9},
    {"{\"a\":[1}", 8},
    {"{\"a\":{\"b\":1]}", 12},
    {"{\"a\":\"tab\there\"}", 10},
    {"{\"a\":\"\\x41\"}", 7},
    {"{\"a\":\"\\u12g4\"}", 7},
    {"{\"a\":\"\\u12", 7},
    {"{\"a\":\"\\", 7},
    {"{\"a\":\"open", 11},
    {"{\"a\":\"\xff\"}", 7},
    {"{\"a\":\"\xc0\xaf\"}", 7},         /* overlong */
    {"{\"a\":\"\xed\xa0\x80\"}", 7},     /* a surrogate */
    {"{\"a\":\"\xf4\x90\x80\x80\"}", 7}, /* beyond U+10FFFF */
    {"{\"a\":\"long enough\xe2\x82\"}", 18},
    {"{\xef\xbb\xbf}", 2},
    {"{\"ts\":9223372036854775808}", 7},
    {"{\"pid\":1e300}", 8},
};

static void what_is_not_json_is_refused_where_it_goes_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong_lines / sizeof wrong_lines[0]; i++) {
        struct pfw_line line;
        struct error err = {0};
        char want[32];
        (void)snprintf(want, sizeof want, "byte %zu: ", wrong_lines[i].byte);
        int rc = parse(wrong_lines[i].text, &line, &err);
        if (rc != -EBADMSG || strncmp(err.text, want, strlen(want)) != 0)
            fail_msg("%s: rc %d, '%s', not %s", wrong_lines[i].text, rc, err.text, want);
    }
}

static void a_zero_byte_is_refused_everywhere(void **state)
{
    (void)state;
    const char whole[] = "{\"name\":\"a\",\"ts\":12,\"args\":{\"k\":[true,null]}}";
    for (size_t i = 0; i < sizeof whole - 1; i++) {
        char broken[sizeof whole];
        memcpy(broken, whole, sizeof whole);
        broken[i] = '\0';
        struct pfw_line line;
        if (pfw_line_parse(broken, sizeof whole - 1, &line, NULL) == 0)
            fail_msg("a zero at %zu went through", i);
    }
}

/* The text lies at the very end of its memory, so that a sanitizer sees each byte read too far. */
static void no_prefix_of_an_event_is_an_event(void **state)
{
    (void)state;
    const char whole[] =
        "{\"name\":\"\\u00e4\xc3\xa4\\\\\",\"ts\":-1.5e+3,\"args\":{\"k\":[true,null,{}],\"l\":false}}";
    for (size_t length = 0; length < sizeof whole - 1; length++) {
        char *copy = malloc(length + 1);
        assert_non_null(copy);
        memcpy(copy + 1, whole, length);
        struct pfw_line line;
        int rc = pfw_line_parse(copy + 1, length, &line, NULL);
        free(copy);
        if (rc == 0)
            fail_msg("the first %zu bytes went through", length);
    }
    struct pfw_line line;
    parse_ok(whole, &line);
}

static void depth_has_a_limit(void **state)
{
    (void)state;
    char text[4 * PFW_LINE_DEPTH_MAX];
    for (int depth = PFW_LINE_DEPTH_MAX; depth <= PFW_LINE_DEPTH_MAX + 1; depth++) {
        struct buf out;
        buf_init(&out, sizeof text);
        buf_text(&out, "{\"a\":");
        for (int i = 1; i < depth; i++)
            buf_char(&out, '[');
        for (int i = 1; i < depth; i++)
            buf_char(&out, ']');
        buf_char(&out, '}');
        struct pfw_line line;
        struct error err = {0};
        int rc = pfw_line_parse(out.data, out.length, &line, &err);
        assert_int_equal(rc, depth == PFW_LINE_DEPTH_MAX ? 0 : -EBADMSG);
        buf_fini(&out);
    }
}

static void things_beside_each_other_are_not_deep(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, 1 << 16);
    buf_text(&text, "{\"a\":[");
    for (int i = 0; i < 2 * PFW_LINE_DEPTH_MAX; i++)
        buf_text(&text, "{},[],");
    buf_text(&text, "{\"b\":{}},[[]]]}");
    struct pfw_line line;
    parse_ok(buf_string(&text), &line);
}

static void members_are_walked_in_order(void **state)
{
    (void)state;
    struct pfw_line line;
    parse_ok("{\"args\":{ \"a\" : 1 , \"b\":{\"c\":[2,3]},\"d\":\"x,y\" , \"e\":null}}", &line);
    static const char *const keys[] = {"a", "b", "d", "e"};
    static const char *const values[] = {"1", "{\"c\":[2,3]}", "x,y", "null"};
    struct cursor members = pfw_members(&line.args);
    struct pfw_json key;
    struct pfw_json value;
    for (size_t i = 0; i < 4; i++) {
        assert_true(pfw_members_next(&members, &key, &value));
        assert_true(pfw_json_equals(&key, keys[i]));
        assert_true(cursor_equals(&value.text, values[i]));
    }
    assert_false(pfw_members_next(&members, &key, &value));

    parse_ok("{\"name\":\"x\",\"args\":{ }}", &line);
    members = pfw_members(&line.args);
    assert_false(pfw_members_next(&members, &key, &value));
    members = pfw_members(&line.name);
    assert_false(pfw_members_next(&members, &key, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_every_part_of_an_event),
        cmocka_unit_test(keys_come_in_any_order_and_unknown_ones_are_passed_over),
        cmocka_unit_test(phases_are_numbers_or_letters),
        cmocka_unit_test(the_last_of_two_equal_keys_wins),
        cmocka_unit_test(what_is_not_json_is_refused_where_it_goes_wrong),
        cmocka_unit_test(a_zero_byte_is_refused_everywhere),
        cmocka_unit_test(no_prefix_of_an_event_is_an_event),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(things_beside_each_other_are_not_deep),
        cmocka_unit_test(members_are_walked_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
