/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/alarms_command.h"

#include <stdlib.h>
#include <string.h>

#include "proxy/alarms_event.h"
#include "proxy/program.h"
#include "util/clock.h"
#include "util/log.h"

enum { ALARMS_COMMAND_VARIABLES = 8, ALARMS_COMMAND_TEXT_MAX_BYTES = 1 << 16 };

#define ALARMS_COMMAND_LOG_NS (10 * CLOCK_NS_PER_SECOND)

struct alarms_command;

struct alarms_command_run {
    struct alarms_command *command;
    struct program *program; /* NULL: free */
};

struct alarms_command {
    uv_loop_t *loop;
    char *path;
    char *hostname;
    struct alarms_event_queue waiting;
    struct alarms_command_run runs[ALARMS_COMMAND_RUNNING_MAX];
    struct log_repeat failure_repeat, drop_repeat;
};

struct alarms_command *alarms_command_new(uv_loop_t *loop, const char *path, const char *hostname)
{
    struct alarms_command *command = calloc(1, sizeof *command);
    if (command == NULL)
        return NULL;
    *command = (struct alarms_command){.loop = loop, .path = strdup(path), .hostname = strdup(hostname)};
    for (size_t i = 0; i < ALARMS_COMMAND_RUNNING_MAX; i++)
        command->runs[i].command = command;
    if (command->path != NULL && command->hostname != NULL)
        return command;
    alarms_command_free(command);
    return NULL;
}

void alarms_command_free(struct alarms_command *command)
{
    if (command == NULL)
        return;
    for (size_t i = 0; i < ALARMS_COMMAND_RUNNING_MAX; i++)
        program_cancel(command->runs[i].program);
    alarms_event_clear(&command->waiting);
    free(command->path);
    free(command->hostname);
    free(command);
}

static void alarms_command_log(struct alarms_command *command, const char *why)
{
    uint64_t held_back;
    if (log_repeat_is_due(&command->failure_repeat, clock_mono_ns(), ALARMS_COMMAND_LOG_NS, &held_back))
        log_error("alarm-command '%s': %s (%llu times before)", command->path, why, (unsigned long long)held_back);
}

static void alarms_command_go_on(struct alarms_command *command);

static void alarms_command_on_done(void *context, struct program_result *result)
{
    struct alarms_command_run *run = context;
    run->program = NULL;
    if (result->code < 0)
        alarms_command_log(run->command, result->err.text);
    alarms_command_go_on(run->command);
}

/* The variables, one after the other in `text`, each with its NUL. */
static void alarms_command_put(const struct alarms_command *command, const struct alarms_event *event,
                               size_t offsets[ALARMS_COMMAND_VARIABLES], struct buf *text)
{
    const struct {
        const char *name, *value;
    } rows[] = {
        {"NAME", event->name},     {"JOB", event->target},
        {"METRIC", event->metric}, {"OPERATOR", alarms_operator_text(event->comparison)},
        {"TEXT", event->pretty},   {"HOST", command->hostname},
        {"THRESHOLD", NULL},       {"VALUE", NULL},
    };
    _Static_assert(ARRAY_LENGTH(rows) == ALARMS_COMMAND_VARIABLES, "as many as there is room for");
    for (size_t i = 0; i < ALARMS_COMMAND_VARIABLES; i++) {
        offsets[i] = text->length;
        buf_printf(text, "CICADA_ALARM_%s=", rows[i].name);
        if (rows[i].value != NULL)
            buf_text(text, rows[i].value);
        else
            buf_double(text, rows[i].name[0] == 'T' ? event->value : event->current);
        buf_char(text, '\0');
    }
}

static void alarms_command_run(struct alarms_command *command, struct alarms_command_run *run,
                               const struct alarms_event *event)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, ALARMS_COMMAND_TEXT_MAX_BYTES);
    size_t offsets[ALARMS_COMMAND_VARIABLES];
    alarms_command_put(command, event, offsets, &text);
    struct error err = {0};
    int rc = buf_status(&text, &err);
    const char *variables[ALARMS_COMMAND_VARIABLES + 1] = {NULL};
    for (size_t i = 0; i < ALARMS_COMMAND_VARIABLES && rc == 0; i++)
        variables[i] = text.data + offsets[i];
    const char *const arguments[] = {command->path, event->is_active ? "raised" : "cleared", NULL};
    const struct program_config config = {.loop = command->loop,
                                          .arguments = arguments,
                                          .variables = variables,
                                          .timeout_ms = ALARMS_COMMAND_TIMEOUT_MS,
                                          .on_done = alarms_command_on_done,
                                          .context = run};
    if (rc == 0)
        rc = program_start(&config, &run->program, &err);
    if (rc < 0)
        alarms_command_log(command, err.text);
}

static void alarms_command_go_on(struct alarms_command *command)
{
    for (size_t i = 0; i < ALARMS_COMMAND_RUNNING_MAX && command->waiting.count > 0; i++) {
        struct alarms_command_run *run = &command->runs[i];
        if (run->program != NULL)
            continue;
        struct alarms_event *event = alarms_event_pop(&command->waiting);
        alarms_command_run(command, run, event);
        alarms_event_free(event);
    }
}

void alarms_command_tell(struct alarms_command *command, const struct alarm_view *alarm)
{
    struct alarms_event *event = alarms_event_new(alarm);
    uint64_t held_back;
    if (event == NULL)
        alarms_command_log(command, "no memory to tell of an alarm");
    else if (alarms_event_push(&command->waiting, event, ALARMS_COMMAND_WAITING_MAX) &&
             log_repeat_is_due(&command->drop_repeat, clock_mono_ns(), ALARMS_COMMAND_LOG_NS, &held_back))
        log_error("alarm-command '%s': too slow: %llu events were not told", command->path,
                  (unsigned long long)held_back + 1);
    alarms_command_go_on(command);
}
