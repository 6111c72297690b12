/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct pfw_line parsed(const char *text)
{
    struct pfw_line line;
    struct error err = {0};
    if (pfw_line_parse(text, strlen(text), &line, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return line;
}

/* %s is the hash of host "vm". */
static const char *const events[] = {
    "{\"name\":\"start\",\"cat\":\"dftracer\",\"ph\":1,\"ts\":1796098782000000,\"args\":{\"hhash\":\"%s\"}}",
    "{\"name\":\"HH\",\"cat\":\"dftracer\",\"ph\":4,\"args\":{\"hhash\":\"%s\",\"name\":\"vm\"}}",
    "{\"name\":\"cpu-0\",\"cat\":\"sys\",\"ph\":2,\"ts\":1796098787500000,\"args\":{\"hhash\":\"%s\"}}",
    "{\"name\":\"net-a\\/b\",\"cat\":\"net\",\"ph\":2,\"ts\":1796098790000000,\"args\":{\"hhash\":\"00\"}}",
};

/* Which of the four pass: "1010" is the first and the third. */
static const char *passing(const struct pfw_filter_options *options)
{
    static char pattern[5];
    char hash[PFW_HOST_HASH_BYTES + 1];
    pfw_host_hash("vm", hash);
    struct pfw_filter filter;
    pfw_filter_init(&filter, options);
    for (size_t i = 0; i < 4; i++) {
        CLEANUP(buf_cleanup) struct buf event;
        buf_init(&event, 1024);
        const char *place = strstr(events[i], "%s");
        buf_bytes(&event, events[i], place != NULL ? (size_t)(place - events[i]) : strlen(events[i]));
        buf_text(&event, place != NULL ? hash : "");
        buf_text(&event, place != NULL ? place + 2 : "");
        struct pfw_line line = parsed(buf_string(&event));
        bool is_wanted;
        assert_int_equal(pfw_filter_add(&filter, &line, &is_wanted, NULL), 0);
        pattern[i] = is_wanted ? '1' : '0';
    }
    pfw_filter_fini(&filter);
    return pattern;
}

static void events_pass_by_name_category_and_host(void **state)
{
    (void)state;
    char hash[PFW_HOST_HASH_BYTES + 1];
    pfw_host_hash("vm", hash);
    const struct {
        struct pfw_filter_options options;
        const char *passing;
    } cases[] = {
        {{0}, "1111"},
        {{.name = "cpu-?"}, "0010"},
        {{.name = "net-a/b"}, "0001"},
        {{.name = "*[0b]"}, "0011"},
        {{.name = "cpu"}, "0000"},
        {{.category = "s*"}, "0010"},
        {{.category = "dftracer", .name = "HH"}, "0100"},
        {{.host = "vm"}, "1110"}, /* by its hash even before it is named */
        {{.host = "v*"}, "0110"},
        {{.host = hash}, "1110"},
        {{.host = "00"}, "0001"},
        {{.host = "other"}, "0000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(passing(&cases[i].options), cases[i].passing) != 0)
            fail_msg("case %zu: %s", i, passing(&cases[i].options));
    }
}

static void events_pass_by_time(void **state)
{
    (void)state;
    static const struct {
        const char *from;
        const char *to;
        const char *passing;
    } cases[] = {
        {"+5.5s", NULL, "0111"}, /* events without a time hold for all times */
        {NULL, "+5.5s", "1110"},
        {"+5.6s", "+7s", "0100"},
        {"1796098787.5", "1796098787.5", "0110"},
        {"2026-12-01T04:19:50Z", NULL, "0101"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pfw_filter_options options = {.has_from = cases[i].from != NULL, .has_to = cases[i].to != NULL};
        if (options.has_from)
            assert_int_equal(pfw_moment_parse(cases[i].from, &options.from, NULL), 0);
        if (options.has_to)
            assert_int_equal(pfw_moment_parse(cases[i].to, &options.to, NULL), 0);
        if (strcmp(passing(&options), cases[i].passing) != 0)
            fail_msg("case %zu: %s", i, passing(&options));
    }
}

static void each_file_has_its_own_unit_of_time(void **state)
{
    (void)state;
    struct pfw_filter_options options = {.has_to = true};
    assert_int_equal(pfw_moment_parse("1796098782", &options.to, NULL), 0);
    struct pfw_filter filter;
    pfw_filter_init(&filter, &options);
    struct pfw_line line = parsed("{\"ts\":1796098782000}");
    bool is_wanted;
    assert_int_equal(pfw_filter_add(&filter, &line, &is_wanted, NULL), 0);
    assert_true(is_wanted);
    pfw_filter_next_file(&filter);
    line = parsed("{\"ts\":1796098782000000000}");
    assert_int_equal(pfw_filter_add(&filter, &line, &is_wanted, NULL), 0);
    assert_true(is_wanted);
    pfw_filter_fini(&filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_pass_by_name_category_and_host),
        cmocka_unit_test(events_pass_by_time),
        cmocka_unit_test(each_file_has_its_own_unit_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
