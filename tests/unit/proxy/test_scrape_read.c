/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/scrape_read.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"

enum { TEXT_MAX_BYTES = 32 << 20, NOW_US = 1000000 };

static const char *name_of(const struct scrape_answer *answer, size_t index)
{
    return answer->texts.data + answer->values[index].name_at;
}

static const char *doc_of(const struct scrape_answer *answer, size_t index)
{
    return answer->texts.data + answer->values[index].doc_at;
}

static void an_exporter_is_one_group(void **state)
{
    (void)state;
    static const char text[] = "# HELP a what\n# TYPE a counter\na{x=\"1\"} 5\na{x=\"2\"} 6 0\na{x=\"3\"} -1\n"
                               "b NaN\nc +Inf\nrubbish\nprocess_cpu_seconds_total 2\ncicada_node_load 1 99999999\n";
    struct scrape_answer *answer;
    assert_int_equal(scrape_read_exporter(text, sizeof text - 1, false, NOW_US, &answer, NULL), 0);
    assert_int_equal(answer->groups_count, 1);
    assert_int_equal(answer->groups[0].kind, SCRAPE_GROUP_EXPORTER);
    assert_int_equal(answer->groups[0].count, 4);
    assert_int_equal(answer->bad, 1);
    assert_string_equal(name_of(answer, 0), "a{x=\"1\"}");
    assert_string_equal(doc_of(answer, 0), "what");
    assert_string_equal(doc_of(answer, 1), "what");
    assert_true(answer->values[1].value.kind == METRIC_COUNTER && answer->values[1].value.counter == 6);
    assert_string_equal(name_of(answer, 2), "exported_process_cpu_seconds_total");
    assert_string_equal(doc_of(answer, 2), "");
    assert_string_equal(name_of(answer, 3), "exported_cicada_node_load");
    assert_int_equal(answer->values[3].value.wall_us, NOW_US); /* nothing is measured in the future */
    scrape_read_free(answer);
}

static const char proxy_text[] =
    "[{\"desc\":{\"jobid\":\"main\"},\"counters\":["
    "{\"name\":\"work\",\"doc\":\"d\",\"ctype\":{\"Counter\":{\"ts\":5,\"value\":7.5}}},"
    "{\"name\":\"proxy_mpi_ranks\",\"doc\":\"\",\"ctype\":{\"Gauge\":{\"min\":1,\"max\":4,\"hits\":3,\"total\":9}}},"
    "{\"name\":\"nan\",\"doc\":\"\",\"ctype\":{\"Counter\":{\"ts\":5,\"value\":null}}},"
    "{\"name\":7,\"doc\":\"\",\"ctype\":{\"Counter\":{\"ts\":5,\"value\":1}}},"
    "{\"name\":\"none\",\"doc\":\"\"}]},"
    "{\"desc\":{\"jobid\":\"Node: x\"},\"counters\":[{\"name\":\"work\",\"ctype\":{\"Counter\":{\"value\":1}}}]},"
    "{\"desc\":{\"jobid\":\"42\",\"command\":\"./"
    "app\",\"size\":4,\"nodelist\":\"\",\"partition\":\"\",\"cluster\":\"\","
    "\"run_dir\":\"/x\",\"start_time\":1700000000,\"end_time\":0},\"counters\":["
    "{\"name\":\"level\",\"doc\":\"\",\"ctype\":{\"Gauge\":{\"min\":1.0,\"max\":9.0,\"hits\":4.0,\"total\":20.0}}},"
    "{\"name\":\"job_mpi_ranks\",\"doc\":\"\",\"ctype\":{\"Gauge\":{\"min\":4,\"max\":4,\"hits\":1,\"total\":4}}}]},"
    "{\"desc\":{\"jobid\":\"bad\",\"size\":\"x\"},\"counters\":[]},{\"desc\":{}},3]";

static void a_proxy_is_its_main_and_its_jobs(void **state)
{
    (void)state;
    struct scrape_answer *answer;
    assert_int_equal(scrape_read_proxy(proxy_text, sizeof proxy_text - 1, NOW_US, &answer, NULL), 0);
    assert_int_equal(answer->groups_count, 2);
    assert_int_equal(answer->groups[0].kind, SCRAPE_GROUP_MAIN);
    assert_int_equal(answer->groups[0].count, 1);
    assert_int_equal(answer->groups[0].ranks, 9); /* they add up and are not averaged */
    assert_int_equal(answer->groups[1].kind, SCRAPE_GROUP_JOB);
    assert_string_equal(answer->groups[1].description.id, "42");
    assert_int_equal(answer->groups[1].description.size, 4);
    assert_int_equal(answer->groups[1].ranks, 4);
    assert_int_equal(answer->groups[1].first, 1);
    assert_true(answer->values[1].value.gauge.total == 20);
    assert_int_equal(answer->bad, 6);
    scrape_read_free(answer);
    assert_int_equal(scrape_read_proxy("<html>", 6, NOW_US, &answer, NULL), -EBADMSG);
    assert_int_equal(scrape_read_proxy("{}", 2, NOW_US, &answer, NULL), -EBADMSG);
    assert_int_equal(scrape_read_proxy(proxy_text, sizeof proxy_text / 2, NOW_US, &answer, NULL), -EBADMSG);
}

static void values_have_an_end(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    for (unsigned i = 0; i < SCRAPE_READ_VALUES_MAX + 7; i++)
        buf_printf(&text, "m{i=\"%u\"} 1\n", i);
    struct scrape_answer *answer;
    assert_int_equal(scrape_read_exporter(text.data, text.length, false, NOW_US, &answer, NULL), 0);
    assert_int_equal(answer->values_count, SCRAPE_READ_VALUES_MAX);
    assert_int_equal(answer->refused, 7);
    scrape_read_free(answer);
}

static void without_memory_nothing_is_lost_but_the_answer(void **state)
{
    (void)state;
    bool has_failed = true;
    for (size_t n = 0; has_failed; n++) {
        struct scrape_answer *answer = NULL;
        allocation_fail_at(n);
        int rc = scrape_read_proxy(proxy_text, sizeof proxy_text - 1, NOW_US, &answer, NULL);
        has_failed = allocation_stop();
        assert_int_equal(rc, has_failed ? -ENOMEM : 0);
        scrape_read_free(answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exporter_is_one_group),
        cmocka_unit_test(a_proxy_is_its_main_and_its_jobs),
        cmocka_unit_test(values_have_an_end),
        cmocka_unit_test(without_memory_nothing_is_lost_but_the_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
