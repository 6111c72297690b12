/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/utf8.h"

enum { COMMAND_HELP_MAX_BYTES = 1 << 16 };

void command_complain(const struct cli_command *command, const struct error *err)
{
    char text[ERROR_TEXT_MAX_BYTES];
    size_t length = strnlen(err->text, sizeof text);
    memcpy(text, err->text, length);
    length = utf8_clean_line(text, length);
    (void)fprintf(stderr, "%s: %.*s\n", command->name, (int)length, text);
}

bool command_begin(const struct cli_command *command, int argc, char **argv, void *values, int *out_operands,
                   int *out_status)
{
    const struct command_common *common = values;
    struct error err = {0};
    if (cli_parse(command, argc, argv, values, out_operands, &err) < 0) {
        command_complain(command, &err);
    } else if (common->wants_help) {
        CLEANUP(buf_cleanup) struct buf help;
        buf_init(&help, COMMAND_HELP_MAX_BYTES);
        cli_help(command, &help);
        (void)fputs(buf_string(&help), stdout); /* who closed stdout wants no words */
        *out_status = INPUT_FINE;
        return false;
    } else if (*out_operands > 0) {
        return true;
    } else {
        (void)fprintf(stderr, "%s: no file given; - is standard input\n", command->name);
    }
    (void)fprintf(stderr, "Usage: %s [options] %s; %s --help tells more\n", command->name, command->operands,
                  command->name);
    *out_status = INPUT_FAILED;
    return false;
}

int command_filter(const struct command_filtered *values, struct pfw_filter_options *out_options, struct error *err)
{
    *out_options = (struct pfw_filter_options){
        .name = values->name,
        .category = values->category,
        .host = values->host,
        .has_from = values->from != NULL,
        .has_to = values->to != NULL,
    };
    int rc = values->from != NULL ? pfw_moment_parse(values->from, &out_options->from, err) : 0;
    if (rc < 0)
        return error_wrap(err, rc, "--from");
    rc = values->to != NULL ? pfw_moment_parse(values->to, &out_options->to, err) : 0;
    return rc < 0 ? error_wrap(err, rc, "--to") : 0;
}

void command_count(struct buf *out, uint64_t number)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, number);
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            buf_char(out, ',');
        buf_char(out, digits[i]);
    }
}

void command_plural(struct buf *out, uint64_t number, const char *noun)
{
    command_count(out, number);
    buf_printf(out, " %s%s", noun, number == 1 ? "" : "s");
}

void command_bytes(struct buf *out, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1000 && unit + 1 < ARRAY_LENGTH(units); unit++)
        value /= 1000;
    buf_fixed(out, value, unit == 0 ? 0 : value < 10 ? 2 : 1);
    buf_printf(out, " %s", units[unit]);
}

void command_clean(struct buf *out, const char *text, size_t length)
{
    char *to = buf_reserve(out, length);
    if (to == NULL || length == 0)
        return;
    memcpy(to, text, length);
    buf_commit(out, utf8_clean_line(to, length));
}
