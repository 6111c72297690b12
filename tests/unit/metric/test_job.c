/* SPDX-License-Identifier: BSD-3-Clause */
#include "metric/job.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"

static const char whole[] =
    "{\"jobid\":\"42\",\"command\":\"./app\",\"size\":4,\"nodelist\":\"n1\",\"partition\":\"p\","
    "\"cluster\":\"c\",\"run_dir\":\"/x\",\"start_time\":1700000000000,\"end_time\":0}";

static int read_job(const char *text, struct metric_job *job, struct error *err)
{
    json_t *object = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_non_null(object);
    int rc = metric_job_from_json(object, job, err);
    json_decref(object);
    return rc;
}

static struct metric_job job_of(const char *text)
{
    struct metric_job job = {0};
    assert_int_equal(read_job(text, &job, NULL), 0);
    return job;
}

static void a_description_reads_back_as_it_was_written(void **state)
{
    (void)state;
    struct metric_job job = job_of(whole);
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, 4096);
    metric_job_to_json(&job, &out);
    assert_string_equal(buf_string(&out), whole);
    metric_job_fini(&job);
}

static void bad_fields_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"[]", "must be an object"},
        {"{\"jobid\":7}", "'jobid' must be a text"},
        {"{\"jobid\":\"a\\u0000b\"}", "'jobid' holds a NUL"},
        {"{\"size\":-1}", "'size'"},
        {"{\"size\":1.5}", "'size'"},
        {"{\"start_time\":\"now\"}", "'start_time'"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct metric_job job = {0};
        struct error err = {0};
        assert_int_equal(read_job(cases[i].text, &job, &err), -EINVAL);
        if (strstr(err.text, cases[i].words) == NULL)
            fail_msg("%s: %s", cases[i].text, err.text);
        assert_null(job.id);
    }
}

static void a_text_past_its_limit_is_refused(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, 1 << 16);
    buf_text(&text, "{\"jobid\":\"");
    for (int i = 0; i <= METRIC_JOB_ID_MAX_BYTES; i++)
        buf_char(&text, 'a');
    buf_text(&text, "\"}");
    struct metric_job job = {0};
    struct error err = {0};
    assert_int_equal(read_job(buf_string(&text), &job, &err), -EINVAL);
    assert_non_null(strstr(err.text, "1025 bytes"));
}

static void descriptions_that_differ_merge(void **state)
{
    (void)state;
    struct metric_job job =
        job_of("{\"jobid\":\"7\",\"size\":2,\"nodelist\":\"n1,n2\",\"start_time\":50,\"end_time\":90}");
    struct metric_job other = job_of("{\"jobid\":\"7\",\"command\":\"late\",\"size\":4,\"nodelist\":\"n2,n3\","
                                     "\"start_time\":40,\"end_time\":95}");
    assert_int_equal(metric_job_merge(&job, &other, NULL), 0);
    assert_string_equal(job.command, "late");
    assert_string_equal(job.nodelist, "n1,n2,n3");
    assert_int_equal(job.size, 4);
    assert_int_equal(job.start_wall_ms, 40);
    assert_int_equal(job.end_wall_ms, 95);

    other.end_wall_ms = 0; /* it runs on somewhere */
    assert_int_equal(metric_job_merge(&job, &other, NULL), 0);
    assert_int_equal(job.end_wall_ms, 0);
    metric_job_fini(&job);
    metric_job_fini(&other);
}

static void no_memory_at_any_point_leaves_nothing_behind(void **state)
{
    (void)state;
    json_t *object = json_loads(whole, 0, NULL);
    struct metric_job other = job_of(whole);
    for (size_t n = 0;; n++) {
        struct metric_job job = {0};
        allocation_fail_at(n);
        int rc = metric_job_from_json(object, &job, NULL);
        int merged = rc == 0 ? metric_job_merge(&job, &other, NULL) : rc;
        bool has_failed = allocation_stop();
        metric_job_fini(&job);
        if (!has_failed)
            break;
        assert_int_equal(merged, -ENOMEM);
    }
    metric_job_fini(&other);
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_description_reads_back_as_it_was_written),
        cmocka_unit_test(bad_fields_are_named),
        cmocka_unit_test(a_text_past_its_limit_is_refused),
        cmocka_unit_test(descriptions_that_differ_merge),
        cmocka_unit_test(no_memory_at_any_point_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
