/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alarms_command: runs a person's command for each alarm that is raised or cleared.
 *
 * The command is one program, started without a shell, with one argument, "raised" or "cleared", and in its environment
 * CICADA_ALARM_NAME, _JOB, _METRIC, _OPERATOR, _THRESHOLD, _VALUE, _TEXT and _HOST. At most
 * ALARMS_COMMAND_RUNNING_MAX run at a time, each for ALARMS_COMMAND_TIMEOUT_MS; of the events that wait the oldest are
 * dropped past ALARMS_COMMAND_WAITING_MAX, with a word in the log. Loop thread only.
 */
#ifndef PROXY_ALARMS_COMMAND_H
#define PROXY_ALARMS_COMMAND_H

#include <stddef.h>
#include <uv.h>

#include "proxy/alarms.h"

struct alarms_command;

#define ALARMS_COMMAND_RUNNING_MAX 4
#define ALARMS_COMMAND_WAITING_MAX 256
#define ALARMS_COMMAND_TIMEOUT_MS  30000

/* Texts are copied. NULL without memory. */
struct alarms_command *alarms_command_new(uv_loop_t *loop, const char *path, const char *hostname);

/* Those that run are killed. NULL is fine. */
void alarms_command_free(struct alarms_command *command);

/* Runs it for this event, now or when others have ended. */
void alarms_command_tell(struct alarms_command *command, const struct alarm_view *alarm);

#endif
