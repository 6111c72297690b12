/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/queue.h"

#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "support/scratch.h"

enum { TEXT_MAX_BYTES = 1 << 20, FIELDS = 48, FIELD_COMMENT = 10 };

/* A job as squeue prints it, with this id and comment. */
static void put_job(struct buf *text, const char *id, const char *comment)
{
    for (int i = 0; i < FIELDS; i++)
        buf_printf(text, "%s\x1f", i == 0 ? id : i == FIELD_COMMENT ? comment : "(null)");
    buf_text(text, "\x1e\n");
}

static json_t *parse(struct buf *text, size_t *out_bad)
{
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, TEXT_MAX_BYTES);
    queue_parse(text->length > 0 ? text->data : "", text->length, &out, out_bad);
    json_t *root = json_loadb(out.data, out.length, 0, NULL);
    assert_non_null(root);
    return root;
}

static void comments_may_hold_anything(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    put_job(&text, "42", "./app | tee \"x\"\nand more");
    put_job(&text, "43", "");
    size_t bad;
    json_t *root = parse(&text, &bad);
    const json_t *jobs = json_object_get(root, "jobs");
    assert_int_equal(json_object_size(jobs), 2);
    const json_t *job = json_object_get(jobs, "42");
    assert_string_equal(json_string_value(json_object_get(job, "COMMENT")), "./app | tee \"x\"\nand more");
    assert_string_equal(json_string_value(json_object_get(job, "JOBID")), "42");
    assert_string_equal(json_string_value(json_object_get(job, "WORK_DIR")), "(null)");
    assert_int_equal(bad, 0);
    json_decref(root);
}

static void what_makes_no_sense_spoils_itself_alone(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    size_t bad;
    json_decref(parse(&text, &bad));
    assert_int_equal(bad, 0);
    buf_text(&text, "squeue: a warning\x1e\n");
    put_job(&text, "42", "good");
    put_job(&text, "", "without an id");
    buf_text(&text, "43\x1ftoo few\x1f\x1e\n");
    put_job(&text, "44\x1f", "too many");
    put_job(&text, "45", "bad \xff\x01 bytes");
    buf_text(&text, "46\x1f half");
    json_t *root = parse(&text, &bad);
    const json_t *jobs = json_object_get(root, "jobs");
    assert_int_equal(json_object_size(jobs), 2);
    assert_non_null(json_object_get(jobs, "42"));
    assert_non_null(json_object_get(jobs, "45"));
    assert_int_equal(bad, 5);
    json_decref(root);
}

struct outcome {
    unsigned answers, failures;
    char text[256];
};

static void on_answer(void *context, const struct buf *json, const struct error *err)
{
    struct outcome *outcome = context;
    *(json != NULL ? &outcome->answers : &outcome->failures) += 1;
    const char *text = json != NULL ? json->data : err->text;
    size_t bytes = json != NULL ? json->length : strlen(err->text);
    memcpy(outcome->text, text, bytes < sizeof outcome->text - 1 ? bytes : sizeof outcome->text - 1);
}

/* A squeue that counts how often it is run. */
static void put_squeue(const struct scratch *scratch, const char *script)
{
    char path[PATH_MAX];
    scratch_write(scratch, "squeue", script, strlen(script));
    assert_int_equal(chmod(scratch_path(scratch, "squeue", path), 0755), 0);
    assert_int_equal(setenv("PATH", scratch->path, 1), 0);
}

static void many_who_ask_run_it_once(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    put_squeue(&scratch, "#!/bin/sh\necho x >> \"${0%/*}/runs\"\n/bin/sleep 0.1\n");
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct queue *queue = queue_new(&loop);
    struct outcome outcome = {0};
    struct queue_wait *wait;
    struct queue_wait *first = NULL;
    for (unsigned i = 0; i < QUEUE_WAITING_MAX; i++) {
        assert_int_equal(queue_ask(queue, on_answer, &outcome, &wait, NULL), 0);
        assert_non_null(wait);
        first = first == NULL ? wait : first;
    }
    assert_int_equal(queue_ask(queue, on_answer, &outcome, &wait, NULL), -EAGAIN);
    queue_cancel(first);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(outcome.answers, QUEUE_WAITING_MAX - 1);
    assert_string_equal(outcome.text, "{\"jobs\":{}}");
    assert_int_equal(queue_ask(queue, on_answer, &outcome, &wait, NULL), 0); /* known */
    assert_null(wait);
    assert_int_equal(outcome.answers, QUEUE_WAITING_MAX);
    char path[PATH_MAX];
    struct stat info;
    assert_int_equal(stat(scratch_path(&scratch, "runs", path), &info), 0);
    assert_int_equal(info.st_size, 2);
    queue_free(queue);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void a_squeue_that_fails_or_is_not_there_is_told(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    for (int has_squeue = 0; has_squeue <= 1; has_squeue++) {
        if (has_squeue)
            put_squeue(&scratch, "#!/bin/sh\nexit 1\n");
        else
            assert_int_equal(setenv("PATH", scratch.path, 1), 0);
        uv_loop_t loop;
        assert_int_equal(uv_loop_init(&loop), 0);
        struct queue *queue = queue_new(&loop);
        struct outcome outcome = {0};
        struct queue_wait *wait;
        assert_int_equal(queue_ask(queue, on_answer, &outcome, &wait, NULL), 0);
        assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
        assert_int_equal(outcome.failures, 1);
        assert_non_null(strstr(outcome.text, has_squeue ? "status 1" : "no squeue"));
        queue_free(queue);
        assert_int_equal(uv_loop_close(&loop), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments_may_hold_anything),
        cmocka_unit_test(what_makes_no_sense_spoils_itself_alone),
        cmocka_unit_test(many_who_ask_run_it_once),
        cmocka_unit_test(a_squeue_that_fails_or_is_not_there_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
