/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/alarms.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/alarms_text.h"
#include "proxy/contributor.h"
#include "support/allocation.h"
#include "util/log.h"

struct setting {
    struct jobs *jobs;
    struct contributor *client;
    uint32_t slot;
    struct alarms *alarms;
    unsigned raised, cleared, changes;
};

static void on_event(void *context, const struct alarm_view *alarm)
{
    struct setting *setting = context;
    *(alarm->is_active ? &setting->raised : &setting->cleared) += 1;
}

static void on_change(void *context)
{
    struct setting *setting = context;
    setting->changes++;
}

static void set_up(struct setting *setting)
{
    const struct jobs_config config = {
        .hostname = "host", .jobs_max = 10, .metrics_per_job_max = 100, .metrics_max = 10000, .linger_ns = 1};
    *setting = (struct setting){0};
    assert_int_equal(jobs_new(&config, &setting->jobs, NULL), 0);
    setting->client = contributor_new(setting->jobs, &(struct contributor_config){0});
    assert_non_null(setting->client);
    assert_int_equal(contributor_declare(setting->client, "load", 4, "how busy", METRIC_GAUGE, &setting->slot, NULL),
                     0);
    const struct alarms_config alarms_config = {
        .jobs = setting->jobs, .on_event = on_event, .on_change = on_change, .context = setting};
    setting->alarms = alarms_new(&alarms_config);
    assert_non_null(setting->alarms);
}

static void tear_down(struct setting *setting)
{
    alarms_free(setting->alarms);
    contributor_discard(setting->client);
    jobs_free(setting->jobs);
}

static void tick(struct setting *setting, double load)
{
    struct metric_value value = metric_gauge(load, 1);
    contributor_set(setting->client, setting->slot, &value);
    jobs_begin(setting->jobs);
    struct contributor *contributor = jobs_first_contributor(setting->jobs);
    for (; contributor != NULL; contributor = contributor_links(contributor)->next)
        contributor_add(contributor);
    jobs_end(setting->jobs);
    alarms_tick(setting->alarms, 1, 1000);
}

static int add(struct setting *setting, const char *name, const char *target, const char *metric,
               enum alarm_operator comparison, double value, struct error *err)
{
    const struct alarm_rule rule = {
        .name = name, .target = target, .metric = metric, .comparison = comparison, .value = value};
    return alarms_add(setting->alarms, &rule, err);
}

static double shown(const struct setting *setting, const char *name)
{
    const struct metric *metric = registry_find(job_registry(jobs_at(setting->jobs, 0)), name, strlen(name));
    return metric != NULL && metric->value.gauge.hits > 0 ? metric_shown(&metric->value) : -1;
}

static void each_operator_raises_and_clears_once(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum alarm_operator comparison;
        double calm, loud;
    } cases[] = {{"more", ALARM_MORE, 33, 33.5}, {"less", ALARM_LESS, 33, 32.5}, {"equal", ALARM_EQUAL, 32, 33}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct setting setting;
        set_up(&setting);
        assert_int_equal(add(&setting, cases[i].name, "main", "load", cases[i].comparison, 33, NULL), 0);
        tick(&setting, cases[i].calm);
        assert_int_equal(setting.raised, 0);
        for (unsigned turn = 0; turn < 3; turn++)
            tick(&setting, cases[i].loud);
        assert_int_equal(setting.raised, 1);
        assert_true(alarms_at(setting.alarms, 0).is_active);
        tick(&setting, cases[i].calm);
        tick(&setting, cases[i].calm);
        assert_int_equal(setting.raised, 1);
        assert_int_equal(setting.cleared, 1);
        assert_false(alarms_at(setting.alarms, 0).is_active);
        tear_down(&setting);
    }
}

static void an_alarm_is_a_metric_of_main_while_it_is_in_the_list(void **state)
{
    (void)state;
    static const char name[] = "cicada_alarm_active{job=\"main\",name=\"very \\\"high\\\"\"}";
    struct setting setting;
    set_up(&setting);
    assert_int_equal(add(&setting, "very \"high\"", "main", "load", ALARM_MORE, 1, NULL), 0);
    tick(&setting, 0);
    tick(&setting, 0);
    assert_true(shown(&setting, name) == 0);
    tick(&setting, 2);
    tick(&setting, 2);
    assert_true(shown(&setting, name) == 1);
    assert_int_equal(alarms_remove(setting.alarms, "main", "very \"high\"", NULL), 0);
    assert_int_equal(setting.cleared, 1); /* whoever was told that it is raised is told that it is not */
    tick(&setting, 2);
    assert_true(shown(&setting, name) == -1);
    tear_down(&setting);
}

static void jobs_are_watched_when_they_come_and_when_they_come_again(void **state)
{
    (void)state;
    struct setting setting;
    set_up(&setting);
    assert_int_equal(add(&setting, "slow", "42", "speed", ALARM_LESS, 10, NULL), 0);
    assert_int_equal(add(&setting, "node", "Node: host", "load", ALARM_MORE, 10, NULL), 0);
    tick(&setting, 0);
    assert_int_equal(setting.raised, 0); /* nothing is not less than 10 */
    for (unsigned run = 1; run <= 2; run++) {
        struct metric_job description;
        uint32_t slot;
        assert_int_equal(metric_job_init(&description, "42", NULL), 0);
        struct contributor *rank = contributor_new(setting.jobs, &(struct contributor_config){0});
        assert_int_equal(contributor_join(rank, &description, 0, 1, NULL), 0);
        assert_int_equal(contributor_declare(rank, "speed", 5, "", METRIC_GAUGE, &slot, NULL), 0);
        tick(&setting, 0);
        assert_int_equal(setting.raised, run - 1); /* declared, but nobody has set it */
        struct metric_value value = metric_gauge(3, 1);
        contributor_set(rank, slot, &value);
        tick(&setting, 0);
        assert_int_equal(setting.raised, run);
        struct job *job = contributor_job(rank);
        contributor_end(rank, 2, 2);
        jobs_remove(setting.jobs, job);
        tick(&setting, 0);
        assert_int_equal(setting.cleared, run);
        assert_false(alarms_at(setting.alarms, 0).has_value);
        metric_job_fini(&description);
    }
    tick(&setting, 11);
    assert_int_equal(setting.raised, 3);
    tear_down(&setting);
}

static void what_makes_no_sense_is_refused_with_its_field(void **state)
{
    (void)state;
    static char long_name[ALARMS_NAME_MAX_BYTES + 2];
    memset(long_name, 'x', sizeof long_name - 1);
    static const struct {
        const char *name, *target, *metric;
        double value;
        const char *word;
    } cases[] = {{"", "main", "load", 1, "'name'"},        {NULL, "main", "load", 1, "'name'"},
                 {"a\nb", "main", "load", 1, "'name'"},    {"\xff", "main", "load", 1, "'name'"},
                 {long_name, "main", "load", 1, "'name'"}, {"a", "", "load", 1, "'target'"},
                 {"a", "main", NULL, 1, "'metric'"},       {"a", "main", "", 1, "metric"},
                 {"a", "main", "load", NAN, "'value'"},    {"a", "main", "load", INFINITY, "'value'"},
                 {"known", "main", "load", 1, "'known'"}};
    struct setting setting;
    set_up(&setting);
    assert_int_equal(add(&setting, "known", "main", "load", ALARM_MORE, 1, NULL), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct error err = {0};
        int rc = add(&setting, cases[i].name, cases[i].target, cases[i].metric, ALARM_MORE, cases[i].value, &err);
        if (rc >= 0 || strstr(err.text, cases[i].word) == NULL)
            fail_msg("case %zu: %d '%s'", i, rc, err.text);
    }
    assert_int_equal(add(&setting, "known", "other", "load", ALARM_MORE, 1, NULL), 0); /* of another target */
    assert_int_equal(alarms_remove(setting.alarms, "other", "nobody", NULL), -ENOENT);
    assert_int_equal(setting.changes, 2);
    tear_down(&setting);
}

static void there_is_an_end_to_their_number(void **state)
{
    (void)state;
    struct setting setting;
    set_up(&setting);
    for (unsigned i = 0; i <= ALARMS_MAX; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "alarm %u", i);
        struct error err = {0};
        assert_int_equal(add(&setting, name, i % 2 == 0 ? "main" : name, "load", ALARM_MORE, 1, &err),
                         i < ALARMS_MAX ? 0 : -ENOSPC);
    }
    tick(&setting, 2);
    assert_int_equal(setting.raised, ALARMS_MAX / 2);
    tear_down(&setting);
}

static void the_answer_is_that_of_the_existing_interface(void **state)
{
    (void)state;
    struct setting setting;
    set_up(&setting);
    assert_int_equal(add(&setting, "b", "main", "load", ALARM_MORE, 33, NULL), 0);
    assert_int_equal(add(&setting, "a", "42", "none", ALARM_LESS, -1.5, NULL), 0);
    assert_int_equal(add(&setting, "c", "main", "load", ALARM_EQUAL, 51.5, NULL), 0);
    tick(&setting, 51.5);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, 1 << 20);
    alarms_text_list(setting.alarms, false, &text);
    assert_string_equal(
        buf_string(&text),
        "{\"main\":[{\"name\":\"b\",\"metric\":\"load\",\"operator\":{\"More\":33},\"current\":51.5,\"active\":true,"
        "\"pretty\":\"b : load (how busy) = 51.5 (Min: 51.5, Max : 51.5, Hits: 1, Total : 51.5) GAUGE > 33\"},"
        "{\"name\":\"c\",\"metric\":\"load\",\"operator\":{\"Equal\":51.5},\"current\":51.5,\"active\":true,"
        "\"pretty\":\"c : load (how busy) = 51.5 (Min: 51.5, Max : 51.5, Hits: 1, Total : 51.5) GAUGE = 51.5\"}],"
        "\"42\":[{\"name\":\"a\",\"metric\":\"none\",\"operator\":{\"Less\":-1.5},\"current\":0,\"active\":false,"
        "\"pretty\":\"a : none is not there < -1.5\"}]}");
    tick(&setting, 3);
    buf_reset(&text);
    alarms_text_list(setting.alarms, true, &text);
    assert_string_equal(buf_string(&text), "{}");
    tear_down(&setting);
}

static void what_is_saved_is_loaded_and_bad_entries_spoil_themselves_alone(void **state)
{
    (void)state;
    struct setting setting;
    set_up(&setting);
    static const char added[] =
        "{\"name\":\"My \\\"Alarm\\\"\",\"target\":\"main\",\"metric\":\"load\",\"operation\":\">\",\"value\":0.1}";
    assert_int_equal(alarms_text_add(setting.alarms, added, sizeof added - 1, NULL), 0);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, 1 << 20);
    alarms_text_save(setting.alarms, &text);
    struct setting successor;
    set_up(&successor);
    size_t bad;
    assert_int_equal(alarms_text_load(successor.alarms, text.data, text.length, &bad, NULL), 0);
    assert_int_equal(alarms_text_load(successor.alarms, text.data, text.length, &bad, NULL), 0); /* there already */
    assert_int_equal(bad, 0);
    assert_int_equal(alarms_count(successor.alarms), 1);
    assert_string_equal(alarms_at(successor.alarms, 0).rule.name, "My \"Alarm\"");
    assert_true(alarms_at(successor.alarms, 0).rule.value == 0.1);

    static const char mixed[] = "{\"alarms\":[7,{\"name\":\"x\"},{\"name\":\"y\",\"target\":\"t\",\"metric\":\"m\","
                                "\"operation\":\"<\",\"value\":1},{\"name\":\"z\",\"target\":\"t\",\"metric\":\"m\","
                                "\"operation\":\"<\",\"value\":\"1\"}]}";
    struct error err = {0};
    assert_int_equal(alarms_text_load(successor.alarms, mixed, sizeof mixed - 1, &bad, &err), 0);
    assert_int_equal(bad, 3);
    assert_int_equal(alarms_count(successor.alarms), 2);
    assert_int_equal(alarms_text_load(successor.alarms, text.data, text.length / 2, &bad, &err), -EBADMSG);
    assert_int_equal(alarms_text_load(successor.alarms, "[]", 2, &bad, &err), -EBADMSG);

    static const char removed[] = "{\"target\":\"t\",\"name\":\"y\"}";
    assert_int_equal(alarms_text_remove(successor.alarms, removed, sizeof removed - 1, &err), 0);
    assert_int_equal(alarms_text_remove(successor.alarms, removed, sizeof removed - 1, &err), -ENOENT);
    assert_int_equal(alarms_text_remove(successor.alarms, "{}", 2, &err), -EINVAL);
    assert_int_equal(alarms_text_remove(successor.alarms, "", 0, &err), -EINVAL);
    tear_down(&successor);
    tear_down(&setting);
}

static void without_memory_an_alarm_is_refused_and_the_list_is_whole(void **state)
{
    (void)state;
    bool has_failed = true;
    for (size_t n = 0; has_failed; n++) {
        struct setting setting;
        set_up(&setting);
        allocation_fail_at(n);
        int rc = add(&setting, "a", "main", "load", ALARM_MORE, 1, NULL);
        has_failed = allocation_stop();
        assert_int_equal(alarms_count(setting.alarms), rc == 0 ? 1 : 0);
        tick(&setting, 2);
        assert_int_equal(setting.raised, rc == 0 ? 1 : 0);
        assert_true(rc == 0 || rc == -ENOMEM);
        tear_down(&setting);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_operator_raises_and_clears_once),
        cmocka_unit_test(an_alarm_is_a_metric_of_main_while_it_is_in_the_list),
        cmocka_unit_test(jobs_are_watched_when_they_come_and_when_they_come_again),
        cmocka_unit_test(what_makes_no_sense_is_refused_with_its_field),
        cmocka_unit_test(there_is_an_end_to_their_number),
        cmocka_unit_test(the_answer_is_that_of_the_existing_interface),
        cmocka_unit_test(what_is_saved_is_loaded_and_bad_entries_spoil_themselves_alone),
        cmocka_unit_test(without_memory_an_alarm_is_refused_and_the_list_is_whole),
    };
    log_open(2, LOG_LEVEL_ERROR); /* each alarm would be a line */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
