/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proxy_command: what the commands of `cicada` have in common: options, --help, messages, the proxy, and words for
 * jobs and metrics out of its answers.
 */
#ifndef CLI_PROXY_COMMAND_H
#define CLI_PROXY_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/columns.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "util/buf.h"
#include "util/error.h"

/* Exit statuses of all commands of `cicada`. */
enum proxy_command_status {
    PROXY_COMMAND_FINE = 0,
    PROXY_COMMAND_FAULT = 1,  /* what was asked for isn't there, or `doctor` found something to mend */
    PROXY_COMMAND_FAILED = 2, /* no proxy, no answer, bad usage */
};

/* Every command's values begin with this. */
struct proxy_command_common {
    bool wants_help;
    const char *proxy; /* address, or NULL: this node's */
};

#define PROXY_COMMAND_COMMON_OPTIONS                                                                                   \
    {"proxy",                                                                                                          \
     'p',                                                                                                              \
     CLI_TEXT,                                                                                                         \
     "HOST:PORT",                                                                                                      \
     offsetof(struct proxy_command_common, proxy),                                                                     \
     "ask that proxy instead of mine on this node"},                                                                   \
    {                                                                                                                  \
        "help", 'h', CLI_FLAG, NULL, offsetof(struct proxy_command_common, wants_help), "show this and end"            \
    }

#define PROXY_COMMAND_STATUS_DETAILS                                                                                   \
    "Exit status: 0 all is told; 1 what was asked for isn't there; 2 no proxy, no answer, or bad usage.\n"

/*
 * Reads the options. True when the command goes on, with `*out_operand` (NULL: none was given); else it is over, with
 * `*out_status`: help was shown, or usage was wrong and stderr says how.
 */
MUST_CHECK bool proxy_command_begin(const struct cli_command *command, int argc, char **argv, void *values,
                                    const char **out_operand, int *out_status);

/* "cicada jobs: <words>" on stderr; returns the status that `rc` means. */
int proxy_command_fail(const struct cli_command *command, int rc, const struct error *err);

/* Prints all of `text`. A reader that has gone is fine: 0; -EIO when it can't be written. */
MUST_CHECK int proxy_command_print(const struct buf *text, struct error *err);

/* A member's text, "" when there is none; its number, 0 then. Borrowed from `object`. */
const char *proxy_command_text(const json_t *object, const char *key);
double proxy_command_number(const json_t *object, const char *key);

/* Appends a cell: text fit for a terminal and cut to `characters_max` (0: whole); a number in six digits; "4h 05m". */
void proxy_command_cell_text(struct columns *columns, const char *text, size_t characters_max);
void proxy_command_cell_number(struct columns *columns, double number);
void proxy_command_cell_duration(struct columns *columns, double seconds);

/* The value that people see of a metric `{"name","doc","ctype"}`, and whether it is a counter. */
double proxy_command_value(const json_t *metric, bool *out_is_counter);

#endif
