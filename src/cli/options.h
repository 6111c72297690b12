/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options: a command's options as a table: one row each, from which parsing, messages and --help are made.
 *
 * Understands --name VALUE, --name=VALUE, -x VALUE, -xVALUE, "--" and options behind operands. "-" is an operand.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "util/buf.h"
#include "util/error.h"

enum cli_kind {
    CLI_FLAG, /* a bool, set to true */
    CLI_TEXT, /* a const char *, borrowed from argv */
};

struct cli_option {
    const char *name; /* without its dashes */
    char letter;      /* '\0': none */
    enum cli_kind kind;
    const char *argument; /* what --help calls it; NULL for a flag */
    size_t offset;        /* of the value in the command's struct */
    const char *help;     /* one line, no full stop */
};

struct cli_command {
    const char *name;     /* "pfw cat" */
    const char *operands; /* "FILE…", for the first line of --help */
    const char *summary;  /* one line, no full stop */
    const char *details;  /* paragraphs below it, each line with its newline; may be "" */
    const struct cli_option *options;
    size_t options_count;
};

/*
 * Reads argv[1] and what follows into `values`. Operands are moved to the front, argv[0] on, and `*out_operands` is
 * their number. -EINVAL: `err` says which argument and what is possible.
 */
MUST_CHECK int cli_parse(const struct cli_command *command, int argc, char **argv, void *values, int *out_operands,
                         struct error *err);

/* Appends what --help shows. */
void cli_help(const struct cli_command *command, struct buf *out);

#endif
