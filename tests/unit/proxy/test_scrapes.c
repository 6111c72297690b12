/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/scrapes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_MAX_BYTES = 1 << 20, OWN_PORT = 1337 };

/* Targets whose loop doesn't run: nobody is asked. */
struct setting {
    uv_loop_t loop;
    struct jobs *jobs;
    struct resolve *resolve;
    struct http_client *client;
    struct scrapes *scrapes;
};

static void set_up(struct setting *setting)
{
    static const struct jobs_config config = {
        .hostname = "host", .jobs_max = 10, .metrics_per_job_max = 10000, .metrics_max = 20000, .linger_ns = 1};
    *setting = (struct setting){0};
    assert_int_equal(uv_loop_init(&setting->loop), 0);
    assert_int_equal(jobs_new(&config, &setting->jobs, NULL), 0);
    setting->resolve = resolve_new(&setting->loop);
    assert_int_equal(http_client_new(&setting->loop, setting->resolve, 4, &setting->client, NULL), 0);
    const struct scrapes_config scrapes_config = {.loop = &setting->loop,
                                                  .jobs = setting->jobs,
                                                  .client = setting->client,
                                                  .resolve = setting->resolve,
                                                  .period_ms = 700,
                                                  .port = OWN_PORT};
    setting->scrapes = scrapes_new(&scrapes_config);
    assert_non_null(setting->scrapes);
}

static void tear_down(struct setting *setting)
{
    scrapes_stop(setting->scrapes);
    scrapes_free(setting->scrapes);
    jobs_free(setting->jobs); /* nobody contributes any more */
    http_client_close(setting->client, NULL, NULL);
    assert_int_equal(uv_run(&setting->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(resolve_close(setting->resolve), 0);
    assert_int_equal(uv_run(&setting->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&setting->loop), 0);
}

/* "url period;…" of all targets. */
static void list(const struct setting *setting, struct buf *out)
{
    CLEANUP(buf_cleanup) struct buf json;
    buf_init(&json, TEXT_MAX_BYTES);
    scrapes_list(setting->scrapes, &json);
    const char *at = buf_string(&json);
    while ((at = strstr(at, "\"target_url\":\"http://")) != NULL) {
        at += strlen("\"target_url\":\"http://");
        buf_bytes(out, at, strcspn(at, "\""));
        const char *period = strstr(at, "\"period\":");
        assert_non_null(period);
        buf_printf(out, " %ld;", strtol(period + strlen("\"period\":"), NULL, 10));
    }
}

static void the_option_has_periods_for_one_or_for_all(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"a:1", "a:1 700;"},
        {"a:1,b:2", "a:1 700;b:2 700;"},
        {"a:1,b:2@500", "a:1 500;b:2 500;"},
        {"a:1@100,b:2", "a:1 100;b:2 700;"},
        {"a:1@100,b:2,c:3@500", "a:1 100;b:2 500;c:3 500;"},
        {"http://a:1/metrics,,http://A:1@500,", "a:1 500;"},
        {"a:1,a:1", "a:1 700;"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct setting setting;
        set_up(&setting);
        struct error err = {0};
        if (scrapes_join_list(setting.scrapes, cases[i].text, &err) < 0)
            fail_msg("'%s': %s", cases[i].text, err.text);
        CLEANUP(buf_cleanup) struct buf text;
        buf_init(&text, TEXT_MAX_BYTES);
        list(&setting, &text);
        if (strcmp(buf_string(&text), cases[i].expected) != 0)
            fail_msg("'%s': '%s'", cases[i].text, buf_string(&text));
        tear_down(&setting);
    }
}

static void one_that_makes_no_sense_spoils_the_option(void **state)
{
    (void)state;
    static const char *const bad[] = {"a:1,b",    "a:1,b:2@",  "a:1,b:2@x",       "a:1@9", "a:1@99999999",
                                      "a:1@-500", "ftp://a:1", "a:1@500@x,b:2@5", "a b:1"};
    struct setting setting;
    set_up(&setting);
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        struct error err = {0};
        if (scrapes_join_list(setting.scrapes, bad[i], &err) != -EINVAL || err.text[0] == '\0')
            fail_msg("'%s': '%s'", bad[i], err.text);
        assert_int_equal(scrapes_count(setting.scrapes), 0); /* none is joined when one is wrong */
    }
    tear_down(&setting);
}

static void who_is_there_already_gets_a_new_period(void **state)
{
    (void)state;
    struct setting setting;
    bool is_new = false;
    set_up(&setting);
    assert_int_equal(scrapes_join(setting.scrapes, "127.0.0.1:1", 0, &is_new, NULL), 0);
    assert_true(is_new);
    assert_int_equal(scrapes_join(setting.scrapes, "http://localhost:1/", 50, &is_new, NULL), 0);
    assert_false(is_new);
    assert_int_equal(scrapes_disconnect(setting.scrapes, "localhost:1", NULL), 0);
    assert_int_equal(scrapes_count(setting.scrapes), 0);
    assert_int_equal(scrapes_disconnect(setting.scrapes, "localhost:1", NULL), -ENOENT);
    assert_int_equal(scrapes_join(setting.scrapes, "localhost:1", 60, &is_new, NULL), 0);
    assert_true(is_new);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    list(&setting, &text);
    assert_string_equal(buf_string(&text), "127.0.0.1:1 60;"); /* as it was first called */
    tear_down(&setting);
}

static void this_proxy_is_no_target(void **state)
{
    (void)state;
    static const char *const self[] = {"127.0.0.1:1337", "localhost:1337", "[::1]:1337", "127.9.9.9:1337"};
    struct setting setting;
    bool is_new;
    set_up(&setting);
    for (size_t i = 0; i < ARRAY_LENGTH(self); i++)
        assert_int_equal(scrapes_join(setting.scrapes, self[i], 0, &is_new, NULL), -EINVAL);
    assert_int_equal(scrapes_join(setting.scrapes, "127.0.0.1:1338", 0, &is_new, NULL), 0);
    assert_int_equal(scrapes_join(setting.scrapes, "192.0.2.1:1337", 0, &is_new, NULL), 0);
    tear_down(&setting);
}

static void there_is_an_end_to_their_number_and_to_what_is_remembered(void **state)
{
    (void)state;
    struct setting setting;
    bool is_new;
    char name[32];
    set_up(&setting);
    for (unsigned i = 0; i <= SCRAPES_MAX; i++) {
        (void)snprintf(name, sizeof name, "node%u:1", i);
        assert_int_equal(scrapes_join(setting.scrapes, name, 0, &is_new, NULL), i < SCRAPES_MAX ? 0 : -ENOSPC);
    }
    for (unsigned i = SCRAPES_MAX; i < 3 * SCRAPES_MAX; i++) { /* each makes room for another */
        (void)snprintf(name, sizeof name, "node%u:1", i - SCRAPES_MAX);
        assert_int_equal(scrapes_disconnect(setting.scrapes, name, NULL), 0);
        (void)snprintf(name, sizeof name, "node%u:1", i);
        assert_int_equal(scrapes_join(setting.scrapes, name, 0, &is_new, NULL), 0);
        assert_true(is_new);
    }
    assert_int_equal(scrapes_count(setting.scrapes), SCRAPES_MAX);
    tear_down(&setting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_option_has_periods_for_one_or_for_all),
        cmocka_unit_test(one_that_makes_no_sense_spoils_the_option),
        cmocka_unit_test(who_is_there_already_gets_a_new_period),
        cmocka_unit_test(this_proxy_is_no_target),
        cmocka_unit_test(there_is_an_end_to_their_number_and_to_what_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
