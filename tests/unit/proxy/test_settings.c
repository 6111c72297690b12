/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/cleanup.h"

enum { WORDS_MAX = 32, HELP_MAX_BYTES = 1 << 16 };

/* Parses `line`, words separated by single spaces, as arguments. */
static int parse(const char *line, struct settings *out, struct error *err)
{
    static char text[1024]; /* settings borrow from it */
    char *argv[WORDS_MAX + 2] = {(char[]){"proxy_v2"}};
    int argc = 1;
    (void)snprintf(text, sizeof text, "%s", line);
    char *rest = text;
    for (char *word; argc <= WORDS_MAX && rest[0] != '\0' && (word = strsep(&rest, " ")) != NULL;) {
        argv[argc++] = word;
        if (rest == NULL)
            break;
    }
    return settings_parse(argc, argv, out, err);
}

static int clean_environment(void **state)
{
    (void)state;
    return setenv("HOME", "/scratch/ann", 1) + unsetenv("PROXY_PATH") + unsetenv("PROXY_ROOT_URL") +
           unsetenv("PROXY_TOKEN_FILE");
}

static void what_is_not_given_has_its_default(void **state)
{
    (void)state;
    CLEANUP(settings_cleanup) struct settings settings;
    assert_int_equal(parse("", &settings, NULL), 0);
    assert_int_equal(settings.port, SETTINGS_PORT_DEFAULT);
    assert_false(settings.has_port);
    assert_non_null(strstr(settings.socket_path, "/tmp/metric-proxy-"));
    assert_string_equal(settings.prefix, "/scratch/ann/.proxyprofiles");
    assert_string_equal(settings.root_url_dir, settings.prefix);
    assert_int_equal(settings.branches, 2);
    assert_int_equal(settings.trace_max_mb, 32);
    assert_int_equal(settings.auth, SETTINGS_AUTH_CHANGES);
    assert_int_equal(settings.log_level, LOG_LEVEL_INFO);
    assert_null(settings.root);
    assert_null(settings.targets);
    assert_null(settings.listen);
}

static void options_of_the_existing_proxy_are_taken(void **state)
{
    (void)state;
    CLEANUP(settings_cleanup) struct settings settings;
    struct error err = {0};
    if (parse("-p 0 -u /s -s a:1,b:2@500 -r root:1337@100 -m 64 -t /p -S 100 -b 0 -i --no-ftio", &settings, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(settings.has_port && settings.port == 0);
    assert_string_equal(settings.socket_path, "/s");
    assert_string_equal(settings.targets, "a:1,b:2@500");
    assert_string_equal(settings.root, "root:1337@100");
    assert_string_equal(settings.prefix, "/p");
    assert_int_equal(settings.trace_max_mb, 64);
    assert_int_equal(settings.period_ms, 100);
    assert_int_equal(settings.branches, 0);
    assert_true(settings.is_without_profiles);
    assert_true(settings.is_without_ftio);
}

static void long_forms_are_the_same(void **state)
{
    (void)state;
    CLEANUP(settings_cleanup) struct settings settings;
    assert_int_equal(parse("--port=7 --unix=/s --sampling-period=20 --inhibit-profile-agreggation --auto-root "
                           "--root-url-dir=/r --instrumentation=5 --auth=ALL --names=cicada --log-level=debug",
                           &settings, NULL),
                     0);
    assert_int_equal(settings.port, 7);
    assert_int_equal(settings.period_ms, 20);
    assert_true(settings.is_without_profiles);
    assert_true(settings.waits_for_root);
    assert_string_equal(settings.root_url_dir, "/r");
    assert_int_equal(settings.instrumentation_s, 5);
    assert_int_equal(settings.auth, SETTINGS_AUTH_ALL);
    assert_true(settings.is_without_legacy && !settings.is_without_cicada);
    assert_int_equal(settings.log_level, LOG_LEVEL_DEBUG);
}

static void environment_gives_what_options_do_not(void **state)
{
    (void)state;
    assert_int_equal(setenv("PROXY_PATH", "/tmp/mine", 1), 0);
    assert_int_equal(setenv("PROXY_ROOT_URL", "http://root:1", 1), 0);
    assert_int_equal(setenv("PROXY_TOKEN_FILE", "/token", 1), 0);
    struct settings settings;
    assert_int_equal(parse("", &settings, NULL), 0);
    assert_string_equal(settings.socket_path, "/tmp/mine");
    assert_string_equal(settings.root, "http://root:1");
    assert_string_equal(settings.token_file, "/token");
    settings_fini(&settings);
    assert_int_equal(parse("-u /other -r b:2 --token-file /t", &settings, NULL), 0);
    assert_string_equal(settings.socket_path, "/other");
    assert_string_equal(settings.root, "b:2");
    assert_string_equal(settings.token_file, "/t");
    settings_fini(&settings);
}

static void bad_values_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *line, *word;
    } cases[] = {
        {"-p 65536", "--port '65536'"},
        {"-p -1", "--port '-1'"},
        {"-p 1x", "--port '1x'"},
        {"-S 9", "10 to 3600000"},
        {"-S 1e3", "'1e3'"},
        {"-m 0", "--max-trace-size"},
        {"--auth some", "changes|all|none"},
        {"--names x", "legacy|cicada|both"},
        {"--instrumentation 0", "1 to"},
        {"--nope", "--nope"},
        {"-S", "missing"},
        {"a", "'a'"},
        {"--listen=", "empty"},
        {"--help=yes", "--help"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(settings_cleanup) struct settings settings;
        struct error err = {0};
        assert_int_equal(parse(cases[i].line, &settings, &err), -EINVAL);
        if (strstr(err.text, cases[i].word) == NULL)
            fail_msg("'%s': %s", cases[i].line, err.text);
    }
}

static void help_shows_options_but_no_historic_spellings(void **state)
{
    (void)state;
    static const char *const some[] = {"-p, --port N", "--auto-root", "--legacy-peers", "--alarm-webhook",
                                       "-h, --help"};
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, HELP_MAX_BYTES);
    settings_help(&text);
    for (size_t i = 0; i < ARRAY_LENGTH(some); i++)
        assert_non_null(strstr(buf_string(&text), some[i]));
    assert_null(strstr(buf_string(&text), "agreggation"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_not_given_has_its_default, clean_environment),
        cmocka_unit_test_setup(options_of_the_existing_proxy_are_taken, clean_environment),
        cmocka_unit_test_setup(long_forms_are_the_same, clean_environment),
        cmocka_unit_test_setup(environment_gives_what_options_do_not, clean_environment),
        cmocka_unit_test_setup(bad_values_are_refused_by_name, clean_environment),
        cmocka_unit_test_setup(help_shows_options_but_no_historic_spellings, clean_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
