/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options.h"

#include <errno.h>
#include <string.h>

enum { OPTIONS_HELP_COLUMN = 22 };

/* Where the reading of the arguments is. */
struct options_scan {
    const struct cli_command *command;
    int argc;
    char **argv;
    int next;
    void *values;
};

static const struct cli_option *options_find_name(const struct cli_command *command, const char *name, size_t length)
{
    for (size_t i = 0; i < command->options_count; i++) {
        const struct cli_option *option = &command->options[i];
        if (strlen(option->name) == length && memcmp(option->name, name, length) == 0)
            return option;
    }
    return NULL;
}

static const struct cli_option *options_find_letter(const struct cli_command *command, char letter)
{
    for (size_t i = 0; i < command->options_count; i++) {
        if (command->options[i].letter == letter)
            return &command->options[i];
    }
    return NULL;
}

/* Stores an option; `value` is what was joined to it, NULL when nothing was. */
static int options_store(struct options_scan *scan, const struct cli_option *option, const char *value,
                         struct error *err)
{
    void *field = (char *)scan->values + option->offset;
    if (option->kind == CLI_FLAG) {
        if (value != NULL)
            return error_set(err, -EINVAL, "--%s takes no value, but got '%s'", option->name, value);
        *(bool *)field = true;
        return 0;
    }
    if (value == NULL && scan->next < scan->argc)
        value = scan->argv[scan->next++];
    if (value == NULL)
        return error_set(err, -EINVAL, "--%s needs a value: --%s %s", option->name, option->name, option->argument);
    *(const char **)field = value;
    return 0;
}

static int options_unknown(const struct options_scan *scan, const char *argument, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf known;
    buf_init(&known, ERROR_TEXT_MAX_BYTES);
    for (size_t i = 0; i < scan->command->options_count; i++)
        buf_printf(&known, "%s--%s", i > 0 ? ", " : "", scan->command->options[i].name);
    return error_set(err, -EINVAL, "there is no option '%s'; there are %s", argument, buf_string(&known));
}

static int options_take_long(struct options_scan *scan, const char *argument, struct error *err)
{
    const char *name = argument + 2;
    size_t length = strcspn(name, "=");
    const struct cli_option *option = options_find_name(scan->command, name, length);
    if (option == NULL)
        return options_unknown(scan, argument, err);
    return options_store(scan, option, name[length] == '=' ? name + length + 1 : NULL, err);
}

/* "-o FILE", "-oFILE", or flags together: "-qs". */
static int options_take_short(struct options_scan *scan, const char *argument, struct error *err)
{
    for (const char *letter = argument + 1; *letter != '\0'; letter++) {
        const struct cli_option *option = options_find_letter(scan->command, *letter);
        if (option == NULL)
            return options_unknown(scan, argument, err);
        if (option->kind != CLI_FLAG)
            return options_store(scan, option, letter[1] != '\0' ? letter + 1 : NULL, err);
        int rc = options_store(scan, option, NULL, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int cli_parse(const struct cli_command *command, int argc, char **argv, void *values, int *out_operands,
              struct error *err)
{
    struct options_scan scan = {.command = command, .argc = argc, .argv = argv, .next = 1, .values = values};
    int operands = 0;
    bool is_over = false;
    while (scan.next < argc) {
        char *argument = argv[scan.next++];
        bool is_option = !is_over && argument[0] == '-' && argument[1] != '\0';
        int rc = 0;
        if (!is_option)
            argv[operands++] = argument;
        else if (strcmp(argument, "--") == 0)
            is_over = true;
        else
            rc =
                argument[1] == '-' ? options_take_long(&scan, argument, err) : options_take_short(&scan, argument, err);
        if (rc < 0)
            return rc;
    }
    *out_operands = operands;
    return 0;
}

static void options_help_row(const struct cli_option *option, struct buf *out)
{
    size_t begin = out->length;
    if (option->letter != '\0')
        buf_printf(out, "  -%c, --%s", option->letter, option->name);
    else
        buf_printf(out, "      --%s", option->name);
    if (option->argument != NULL)
        buf_printf(out, " %s", option->argument);
    do {
        buf_char(out, ' ');
    } while (out->status == 0 && out->length - begin < OPTIONS_HELP_COLUMN);
    buf_printf(out, "%s\n", option->help);
}

void cli_help(const struct cli_command *command, struct buf *out)
{
    buf_printf(out, "Usage: %s [options] %s\n\n%s.\n", command->name, command->operands, command->summary);
    if (command->details[0] != '\0')
        buf_printf(out, "\n%s", command->details);
    buf_text(out, "\nOptions:\n");
    for (size_t i = 0; i < command->options_count; i++)
        options_help_row(&command->options[i], out);
}
