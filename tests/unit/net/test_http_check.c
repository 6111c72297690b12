/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/http_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "util/cleanup.h"

/* "Name: value" lines, separated by '|'. */
static const char *verdict_of(const char *lines, bool is_http_1_0)
{
    struct http_check check = {0};
    while (*lines != '\0') {
        size_t line = strcspn(lines, "|");
        const char *colon = memchr(lines, ':', line);
        assert_non_null(colon);
        const char *value = colon + 1 + (colon[1] == ' ' ? 1 : 0);
        http_check_header(&check, lines, (size_t)(colon - lines), value, (size_t)(lines + line - value));
        lines += line + (lines[line] == '|' ? 1 : 0);
    }
    return http_check_verdict(&check, is_http_1_0);
}

static void heads_that_mean_one_thing_pass(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "Host: x",
        "host: x|Content-Length: 5",
        "Host: x|CONTENT-LENGTH: 0",
        "Host: x|Transfer-Encoding: Chunked",
        "Host: |X-Empty: ",
        "Host: x|X-Tab: a\tb",
        "Host: x|X-Utf8: \xc3\xa9",
        "Host: x|Content-Length: 999999999999999999",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(heads); i++)
        if (verdict_of(heads[i], false) != NULL)
            fail_msg("'%s': %s", heads[i], verdict_of(heads[i], false));
    assert_null(verdict_of("Accept: */*", true)); /* HTTP/1.0 had no Host */
}

static void heads_that_mean_two_things_are_refused_in_words(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        const char *reason;
    } cases[] = {
        {"Accept: x", "no Host"},
        {"Host: x|Host: x", "more than one Host"},
        {"Host: x|content-length: 1|Content-Length: 1", "more than one Content-Length"},
        {"Host: x|Content-Length: 1|Transfer-Encoding: chunked", "both"},
        {"Host: x|Transfer-Encoding: chunked|Transfer-Encoding: chunked", "more than one Transfer-Encoding"},
        {"Host: x|Transfer-Encoding: gzip, chunked", "not 'chunked'"},
        {"Host: x|Transfer-Encoding: chunked ", "not 'chunked'"},
        {"Host: x|Transfer-Encoding: ", "not 'chunked'"},
        {"Host: x|Content-Length: ", "no number"},
        {"Host: x|Content-Length: +1", "no number"},
        {"Host: x|Content-Length: 1, 1", "no number"},
        {"Host: x|Content-Length: 1 ", "no number"},
        {"Host: x|Content-Length: 0x1", "no number"},
        {"Host: x|Content-Length: 1000000000000000000", "no number"},
        {"Host: x|Content-Length : 1", "name"},
        {"Host: x| X: 1", "name"},
        {"Host: x|: 1", "name"},
        {"Host: x|X\x80: 1", "name"},
        {"Host: x|X: a\nb", "control"},
        {"Host: x|X: a\x7f", "control"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        const char *reason = verdict_of(cases[i].head, false);
        if (reason == NULL || strstr(reason, cases[i].reason) == NULL)
            fail_msg("'%s': %s", cases[i].head, reason != NULL ? reason : "passed");
    }
    assert_non_null(verdict_of("Transfer-Encoding: chunked", true));
}

static void nul_in_a_name_or_value_is_refused(void **state)
{
    (void)state;
    struct http_check name = {.hosts = 1}, value = {.hosts = 1};
    http_check_header(&name, "X\0Y", 3, "a", 1);
    http_check_header(&value, "X", 1, "a\0b", 3);
    assert_non_null(http_check_verdict(&name, false));
    assert_non_null(http_check_verdict(&value, false));
}

static void gzip_is_used_when_it_is_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool is_accepted;
    } cases[] = {
        {NULL, false},
        {"", false},
        {"gzip", true},
        {"GZIP", true},
        {"x-gzip", true},
        {"br, gzip", true},
        {"br,gzip;q=1.0", true},
        {"gzip;q=0.001", true},
        {"gzip;q=0", false},
        {"gzip; q=0", false},
        {"gzip;q=0.000", false},
        {"identity", false},
        {"gzipped", false},
        {"*", true},
        {"*;q=0", false},
        {"*;q=1, gzip;q=0", false},
        {"gzip;q=0, *", false},
        {" ,, gzip", true},
        {"deflate;q=0, gzip", true},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        if (http_check_accepts_gzip(cases[i].value) != cases[i].is_accepted)
            fail_msg("'%s'", cases[i].value);
}

static void host_is_split(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        const char *name; /* NULL: none */
        uint32_t port;
    } cases[] = {
        {"Node7.Cluster", "node7.cluster", 0},
        {"node7:1337", "node7", 1337},
        {"node7.:80", "node7", 80},
        {"[::1]:9", "::1", 9},
        {"[fe80::1%eth0]", "fe80::1%eth0", 0},
        {"127.0.0.1:65535", "127.0.0.1", 65535},
        {"", NULL, 0},
        {":80", NULL, 0},
        {"a:", NULL, 0},
        {"a:65536", NULL, 0},
        {"a:1x", NULL, 0},
        {"a: 1", NULL, 0},
        {"a:1:2", NULL, 0},
        {"::1", NULL, 0},
        {"[::1", NULL, 0},
        {"[::1]x", NULL, 0},
        {"a@b", NULL, 0},
        {"a/b", NULL, 0},
        {"a b", NULL, 0},
        {"a,b", NULL, 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct http_check_host host = {0};
        bool is_host = http_check_split_host(cases[i].value, strlen(cases[i].value), &host);
        if (is_host != (cases[i].name != NULL))
            fail_msg("'%s'", cases[i].value);
        if (is_host) {
            assert_string_equal(host.name, cases[i].name);
            assert_int_equal(host.port, cases[i].port);
        }
    }
}

static void loopback_names_are_told_from_names_that_look_like_them(void **state)
{
    (void)state;
    static const char *const loopback[] = {"localhost", "127.0.0.1", "127.255.0.9", "::1"};
    static const char *const others[] = {
        "localhost.evil.example", "127.0.0.1.evil.example", "128.0.0.1", "::2", "0.0.0.0", ""};
    for (size_t i = 0; i < ARRAY_LENGTH(loopback); i++)
        assert_true(http_check_is_loopback_name(loopback[i]));
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        assert_false(http_check_is_loopback_name(others[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_that_mean_one_thing_pass),
        cmocka_unit_test(heads_that_mean_two_things_are_refused_in_words),
        cmocka_unit_test(nul_in_a_name_or_value_is_refused),
        cmocka_unit_test(gzip_is_used_when_it_is_accepted),
        cmocka_unit_test(host_is_split),
        cmocka_unit_test(loopback_names_are_told_from_names_that_look_like_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
