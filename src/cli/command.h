/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * command: what the pfw commands have in common: options, --help, messages, and words for numbers and names.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/input.h"
#include "cli/options.h"
#include "pfw/filter.h"
#include "util/buf.h"
#include "util/error.h"

/* Every command's values begin with this. */
struct command_common {
    bool wants_help;
    bool is_salvaging;
};

#define COMMAND_COMMON_OPTIONS                                                                                         \
    {"salvage",                                                                                                        \
     '\0',                                                                                                             \
     CLI_FLAG,                                                                                                         \
     NULL,                                                                                                             \
     offsetof(struct command_common, is_salvaging),                                                                    \
     "read damaged gzip members up to the damage, too; values in them may be wrong"},                                  \
    {                                                                                                                  \
        "help", 'h', CLI_FLAG, NULL, offsetof(struct command_common, wants_help), "show this and end"                  \
    }

/* The values of a command that chooses events begin with this; command_filter() makes a filter of it. */
struct command_filtered {
    struct command_common common;
    const char *name;
    const char *category;
    const char *host;
    const char *from;
    const char *to;
};

#define COMMAND_FILTER_OPTIONS                                                                                         \
    {"name", '\0', CLI_TEXT, "GLOB", offsetof(struct command_filtered, name), "only events whose name matches"},       \
        {"cat",                                                                                                        \
         '\0',                                                                                                         \
         CLI_TEXT,                                                                                                     \
         "GLOB",                                                                                                       \
         offsetof(struct command_filtered, category),                                                                  \
         "only events whose category matches"},                                                                        \
        {"host",                                                                                                       \
         '\0',                                                                                                         \
         CLI_TEXT,                                                                                                     \
         "GLOB",                                                                                                       \
         offsetof(struct command_filtered, host),                                                                      \
         "only events of hosts whose name or hash matches"},                                                           \
        {"from", '\0', CLI_TEXT, "TIME", offsetof(struct command_filtered, from), "only events from then on"},         \
    {                                                                                                                  \
        "to", '\0', CLI_TEXT, "TIME", offsetof(struct command_filtered, to), "only events up to then"                  \
    }

/* What --help says about those. */
#define COMMAND_FILTER_DETAILS                                                                                         \
    "GLOB is a pattern of the shell (* ? [abc]). TIME is a number of seconds since 1970 (1796098782.5), a date\n"      \
    "(2026-12-01T04:16:14, local unless it ends in Z or +01:00) or a time from the first event on (+5s, +1.5min).\n"   \
    "Events without a time, such as the names of hosts, are in every span of time.\n"

#define COMMAND_STATUS_DETAILS                                                                                         \
    "FILE - is standard input. gzip and plain text are told apart by content.\n"                                       \
    "Exit status: 0 all was read; 1 something was left out, as stderr says; 2 a file or an option is no good.\n"

/*
 * Reads the options. True when the command goes on with `*out_operands` files in argv; else it is over, with
 * `*out_status`: help was shown, or usage was wrong and stderr says how.
 */
MUST_CHECK bool command_begin(const struct cli_command *command, int argc, char **argv, void *values, int *out_operands,
                              int *out_status);

/* "pfw cat: <words>" on stderr. */
void command_complain(const struct cli_command *command, const struct error *err);

/* What the options of `values` choose; texts are borrowed. -EINVAL: `err` names the option and what it takes. */
MUST_CHECK int command_filter(const struct command_filtered *values, struct pfw_filter_options *out_options,
                              struct error *err);

/* Appends "12,345". */
void command_count(struct buf *out, uint64_t number);

/* Appends "1 problem" or "2 problems". */
void command_plural(struct buf *out, uint64_t number, const char *noun);

/* Appends "1.2 MB". */
void command_bytes(struct buf *out, uint64_t bytes);

/* Appends text from a trace, made fit for a terminal. */
void command_clean(struct buf *out, const char *text, size_t length);

#endif
