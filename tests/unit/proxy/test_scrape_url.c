/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/scrape_url.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void forms_of_one_target_have_one_key(void **state)
{
    (void)state;
    static const struct {
        const char *text, *key, *origin, *path;
        bool is_metrics;
    } cases[] = {
        {"node7:9100", "http|node7|9100", "http://node7:9100", "", false},
        {"NODE7.:9100", "http|node7|9100", "http://node7:9100", "", false},
        {"http://node7:9100/", "http|node7|9100", "http://node7:9100", "", false},
        {"HTTP://node7:9100/metrics", "http|node7|9100", "http://node7:9100", "", true},
        {"http://node7:9100/job", "http|node7|9100", "http://node7:9100", "", false},
        {"localhost:1", "http|127.0.0.1|1", "http://localhost:1", "", false},
        {"127.0.0.1:1", "http|127.0.0.1|1", "http://127.0.0.1:1", "", false},
        {"[::1]:9100", "http|::1|9100", "http://[::1]:9100", "", false},
        {"[0:0::0:1]:9100", "http|::1|9100", "http://[::1]:9100", "", false},
        {"http://node7", "http|node7|80", "http://node7:80", "", false},
        {"https://node7/x?y=1", "https|node7|443/x?y=1", "https://node7:443", "/x?y=1", true},
        {"a_b-c.d:65535", "http|a_b-c.d|65535", "http://a_b-c.d:65535", "", false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct scrape_url url;
        struct error err = {0};
        if (scrape_url_parse(cases[i].text, &url, &err) < 0)
            fail_msg("'%s': %s", cases[i].text, err.text);
        assert_string_equal(url.key, cases[i].key);
        assert_string_equal(url.origin, cases[i].origin);
        assert_string_equal(url.path, cases[i].path);
        assert_int_equal(url.is_metrics, cases[i].is_metrics);
    }
}

static void what_is_no_target_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "node7",
        "node7:",
        "node7:0",
        "node7:65536",
        "node7:99999999999999999999",
        ":9100",
        "node7: 9100",
        "node7:9100x",
        "ftp://node7",
        "file:///etc/passwd",
        "http://",
        "a b:9100",
        "u@node7:9100",
        "http://u:p@n:1/",
        "::1:9100",
        "[::1:9100",
        "[1.2.3.4]:9100",
        "[]:9100",
        "node7:9100?x=1",
        "node7:9100/a b",
        "node7:9100/#",
        "n\xc3\xb6:9100",
        "node7:9100/\x01",
        "node7:+1",
        ".:1",
        "a..b:1",
        "node7..:1",
        "gopher://x:70",
        "//node7:9100",
        "node7\n:9100",
        "http:node7:9100",
        "node7:9100/\xff",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        struct scrape_url url;
        struct error err = {0};
        if (scrape_url_parse(bad[i], &url, &err) != -EINVAL || err.text[0] == '\0')
            fail_msg("'%s': '%s'", bad[i], err.text);
    }
}

static void lengths_are_bounded(void **state)
{
    (void)state;
    char text[SCRAPE_URL_TEXT_MAX_BYTES + 100];
    struct scrape_url url;
    for (size_t bytes = SCRAPE_URL_HOST_MAX_BYTES; bytes <= SCRAPE_URL_HOST_MAX_BYTES + 1; bytes++) {
        memset(text, 'x', bytes);
        memcpy(text + bytes, ":1", 3);
        assert_int_equal(scrape_url_parse(text, &url, NULL), bytes <= SCRAPE_URL_HOST_MAX_BYTES ? 0 : -EINVAL);
    }
    for (size_t bytes = SCRAPE_URL_PATH_MAX_BYTES; bytes <= SCRAPE_URL_PATH_MAX_BYTES + 1; bytes++) {
        memcpy(text, "n:1/", 4);
        memset(text + 4, 'x', bytes - 1);
        text[3 + bytes] = '\0';
        assert_int_equal(scrape_url_parse(text, &url, NULL), bytes <= SCRAPE_URL_PATH_MAX_BYTES ? 0 : -EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_of_one_target_have_one_key),
        cmocka_unit_test(what_is_no_target_is_refused),
        cmocka_unit_test(lengths_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
