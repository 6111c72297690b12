/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * squeue's `--format %all` separates its fields by '|', which comments and names may hold, too, and jobs by newlines,
 * likewise. So the same fields are asked for one by one, between control characters that nobody types. A name that
 * %all has twice means its last one there.
 */
#include "proxy/queue.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/program.h"
#include "util/clock.h"
#include "util/cursor.h"
#include "util/log.h"

enum { QUEUE_FIELD_END = 0x1f, QUEUE_JOB_END = 0x1e, QUEUE_FORMAT_MAX_BYTES = 1024 };

#define QUEUE_ID "JOBID"

/* The names of %all, and the letters that mean them (squeue(1), "--format"). */
static const struct {
    const char *name;
    char letter;
} queue_fields[] = {
    {QUEUE_ID, 'A'},
    {"ACCOUNT", 'a'},
    {"TRES_PER_NODE", 'b'},
    {"MIN_CPUS", 'c'},
    {"MIN_TMP_DISK", 'd'},
    {"END_TIME", 'e'},
    {"FEATURES", 'f'},
    {"GROUP", 'G'},
    {"OVER_SUBSCRIBE", 'h'},
    {"NAME", 'j'},
    {"COMMENT", 'k'},
    {"TIME_LIMIT", 'l'},
    {"MIN_MEMORY", 'm'},
    {"REQ_NODES", 'n'},
    {"COMMAND", 'o'},
    {"PRIORITY", 'Q'},
    {"QOS", 'q'},
    {"REASON", 'r'},
    {"ST", 't'},
    {"USER", 'u'},
    {"RESERVATION", 'v'},
    {"WCKEY", 'w'},
    {"EXC_NODES", 'x'},
    {"NICE", 'y'},
    {"S:C:T", 'z'},
    {"EXEC_HOST", 'B'},
    {"CPUS", 'C'},
    {"NODES", 'D'},
    {"DEPENDENCY", 'E'},
    {"ARRAY_JOB_ID", 'F'},
    {"SOCKETS_PER_NODE", 'H'},
    {"CORES_PER_SOCKET", 'I'},
    {"THREADS_PER_CORE", 'J'},
    {"ARRAY_TASK_ID", 'K'},
    {"TIME_LEFT", 'L'},
    {"TIME", 'M'},
    {"NODELIST", 'N'},
    {"CONTIGUOUS", 'O'},
    {"PARTITION", 'P'},
    {"NODELIST(REASON)", 'R'},
    {"START_TIME", 'S'},
    {"STATE", 'T'},
    {"UID", 'U'},
    {"SUBMIT_TIME", 'V'},
    {"LICENSES", 'W'},
    {"CORE_SPEC", 'X'},
    {"SCHEDNODES", 'Y'},
    {"WORK_DIR", 'Z'},
};

enum { QUEUE_FIELDS = ARRAY_LENGTH(queue_fields) };

struct queue_wait {
    struct queue *queue;
    struct queue_wait *previous, *next;
    queue_answer *on_answer;
    void *context;
};

struct queue {
    uv_loop_t *loop;
    struct program *program; /* NULL: none runs */
    struct queue_wait *first;
    size_t waiting;
    bool has_answer;
    int64_t answered_mono_ns;
    struct buf json;  /* the last answer, or */
    struct error err; /* why there is none */
};

struct queue *queue_new(uv_loop_t *loop)
{
    struct queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return NULL;
    queue->loop = loop;
    buf_init(&queue->json, 4 * (size_t)QUEUE_OUTPUT_MAX_BYTES);
    return queue;
}

void queue_free(struct queue *queue)
{
    if (queue == NULL)
        return;
    program_cancel(queue->program);
    buf_fini(&queue->json);
    free(queue);
}

/* Takes what is before `end`; false when `end` is not there. */
static bool queue_take(struct cursor *text, char end, struct cursor *out_part)
{
    const char *at = cursor_is_empty(text) ? NULL : memchr(text->at, end, cursor_left(text));
    if (at == NULL)
        return false;
    *out_part = (struct cursor){.at = text->at, .end = at};
    text->at = at + 1;
    return true;
}

static bool queue_put_job(struct cursor job, bool is_first, struct buf *out)
{
    size_t start = out->length;
    struct cursor fields[QUEUE_FIELDS];
    for (size_t i = 0; i < QUEUE_FIELDS; i++) {
        if (!queue_take(&job, QUEUE_FIELD_END, &fields[i]))
            return false;
    }
    if (!cursor_is_empty(&job) || cursor_is_empty(&fields[0]))
        return false;
    buf_text(out, is_first ? "" : ",");
    buf_json_bytes(out, fields[0].at, cursor_left(&fields[0]));
    for (size_t i = 0; i < QUEUE_FIELDS; i++) {
        buf_text(out, i == 0 ? ":{" : ",");
        buf_json_string(out, queue_fields[i].name);
        buf_char(out, ':');
        buf_json_bytes(out, fields[i].at, cursor_left(&fields[i]));
    }
    buf_char(out, '}');
    if (buf_status(out, NULL) < 0)
        buf_truncate(out, start);
    return true;
}

void queue_parse(const char *text, size_t length, struct buf *out, size_t *out_bad)
{
    struct cursor rest = cursor_of(text, length);
    struct cursor job;
    bool is_first = true;
    *out_bad = 0;
    buf_text(out, "{\"jobs\":{");
    while (queue_take(&rest, QUEUE_JOB_END, &job)) {
        if (!cursor_is_empty(&job) && *job.at == '\n')
            job.at++; /* squeue's own, after the job before */
        if (queue_put_job(job, is_first, out))
            is_first = false;
        else
            ++*out_bad;
    }
    cursor_skip_blanks(&rest);
    (void)cursor_accept(&rest, '\n');
    *out_bad += !cursor_is_empty(&rest);
    buf_text(out, "}}");
}

static void queue_unlink(struct queue_wait *wait)
{
    if (wait->previous != NULL)
        wait->previous->next = wait->next;
    else
        wait->queue->first = wait->next;
    if (wait->next != NULL)
        wait->next->previous = wait->previous;
    wait->queue->waiting--;
}

void queue_cancel(struct queue_wait *wait)
{
    if (wait == NULL)
        return;
    queue_unlink(wait);
    free(wait);
}

static void queue_tell(struct queue *queue, queue_answer *on_answer, void *context)
{
    on_answer(context, queue->err.code == 0 ? &queue->json : NULL, &queue->err);
}

static void queue_on_done(void *context, struct program_result *result)
{
    struct queue *queue = context;
    queue->program = NULL;
    queue->has_answer = true;
    queue->answered_mono_ns = clock_mono_ns();
    queue->err = result->err;
    buf_reset(&queue->json);
    if (result->code == -ENOENT)
        (void)error_set(&queue->err, -ENOENT, "there is no squeue here: this proxy knows no queue");
    else if (result->code < 0)
        (void)error_wrap(&queue->err, result->code, "squeue");
    if (result->code == 0) {
        size_t bad;
        queue_parse(result->output->length > 0 ? result->output->data : "", result->output->length, &queue->json, &bad);
        if (bad > 0)
            log_debug("squeue: %zu jobs make no sense", bad);
        if (buf_status(&queue->json, &queue->err) < 0)
            buf_reset(&queue->json);
    }
    while (queue->first != NULL) {
        struct queue_wait wait = *queue->first;
        queue_cancel(queue->first);
        queue_tell(queue, wait.on_answer, wait.context);
    }
}

static int queue_start(struct queue *queue, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf format;
    buf_init(&format, QUEUE_FORMAT_MAX_BYTES);
    for (size_t i = 0; i < QUEUE_FIELDS; i++)
        buf_printf(&format, "%%%c%c", queue_fields[i].letter, QUEUE_FIELD_END);
    buf_char(&format, QUEUE_JOB_END);
    const char *format_text = buf_string(&format);
    int rc = buf_status(&format, err);
    const char *const arguments[] = {"squeue", "--noheader", "--format", format_text, NULL};
    const struct program_config config = {.loop = queue->loop,
                                          .arguments = arguments,
                                          .timeout_ms = QUEUE_TIMEOUT_MS,
                                          .output_max_bytes = QUEUE_OUTPUT_MAX_BYTES,
                                          .on_done = queue_on_done,
                                          .context = queue};
    return rc == 0 ? program_start(&config, &queue->program, err) : rc;
}

int queue_ask(struct queue *queue, queue_answer *on_answer, void *context, struct queue_wait **out_wait,
              struct error *err)
{
    *out_wait = NULL;
    if (queue->has_answer && clock_mono_ns() - queue->answered_mono_ns < QUEUE_KEEP_MS * CLOCK_NS_PER_MS) {
        queue_tell(queue, on_answer, context);
        return 0;
    }
    if (queue->waiting == QUEUE_WAITING_MAX)
        return error_set(err, -EAGAIN, "%d others wait for squeue already", QUEUE_WAITING_MAX);
    struct queue_wait *wait = calloc(1, sizeof *wait);
    if (wait == NULL)
        return error_set(err, -ENOMEM, "no memory to wait for squeue");
    if (queue->program == NULL) {
        int rc = queue_start(queue, err);
        if (rc < 0) {
            free(wait);
            return rc;
        }
    }
    *wait = (struct queue_wait){.queue = queue, .next = queue->first, .on_answer = on_answer, .context = context};
    if (wait->next != NULL)
        wait->next->previous = wait;
    queue->first = wait;
    queue->waiting++;
    *out_wait = wait;
    return 0;
}
