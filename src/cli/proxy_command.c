/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/proxy_command.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "util/file.h"
#include "util/utf8.h"

enum {
    PROXY_COMMAND_HELP_MAX_BYTES = 1 << 16,
    PROXY_COMMAND_DIGITS = 6,
    SECONDS_PER_MINUTE = 60,
    SECONDS_PER_HOUR = 3600,
    SECONDS_PER_DAY = 86400,
};

bool proxy_command_begin(const struct cli_command *command, int argc, char **argv, void *values,
                         const char **out_operand, int *out_status)
{
    const struct proxy_command_common *common = values;
    struct error err = {0};
    int operands = 0;
    int operands_max = command->operands[0] != '\0' ? 1 : 0;
    *out_operand = NULL;
    *out_status = PROXY_COMMAND_FAILED;
    if (cli_parse(command, argc, argv, values, &operands, &err) < 0) {
        command_complain(command, &err);
    } else if (common->wants_help) {
        CLEANUP(buf_cleanup) struct buf help;
        buf_init(&help, PROXY_COMMAND_HELP_MAX_BYTES);
        cli_help(command, &help);
        (void)fputs(buf_string(&help), stdout); /* who closed stdout wants no words */
        *out_status = PROXY_COMMAND_FINE;
        return false;
    } else if (operands <= operands_max) {
        *out_operand = operands > 0 ? argv[1] : NULL;
        return true;
    } else {
        (void)fprintf(stderr, "%s: '%s' is one argument too many\n", command->name, argv[operands_max + 1]);
    }
    (void)fprintf(stderr, "Usage: %s [options] %s; %s --help tells more\n", command->name, command->operands,
                  command->name);
    return false;
}

int proxy_command_fail(const struct cli_command *command, int rc, const struct error *err)
{
    command_complain(command, err);
    return rc == -ESRCH ? PROXY_COMMAND_FAULT : PROXY_COMMAND_FAILED;
}

int proxy_command_print(const struct buf *text, struct error *err)
{
    int rc = buf_status(text, err);
    if (rc == 0 && text->length > 0)
        rc = file_write_all(STDOUT_FILENO, text->data, text->length, err);
    if (rc == -EPIPE)
        return 0;
    return rc < 0 ? error_wrap(err, rc, "writing to standard output") : 0;
}

const char *proxy_command_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

double proxy_command_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

void proxy_command_cell_text(struct columns *columns, const char *text, size_t characters_max)
{
    size_t length = 0;
    size_t characters = 0;
    bool is_cut = false;
    for (; text[length] != '\0'; length++) {
        bool is_first_byte = ((unsigned char)text[length] & 0xc0) != 0x80;
        if (is_first_byte && characters_max > 0 && ++characters > characters_max) {
            is_cut = true;
            break;
        }
    }
    command_clean(&columns->line, text, length);
    if (is_cut)
        buf_text(&columns->line, "…");
    columns_end_cell(columns);
}

void proxy_command_cell_number(struct columns *columns, double number)
{
    double magnitude = fabs(number);
    unsigned decimals = 0; /* six digits in all, but never cut before the point */
    double limit = 1e5;
    while (decimals < PROXY_COMMAND_DIGITS - 1 && magnitude < limit) {
        decimals++;
        limit /= 10;
    }
    bool is_whole = floor(number) == number;
    if (magnitude > 0 && magnitude < 1e-4)
        buf_double(&columns->line, number);
    else
        buf_fixed(&columns->line, number, is_whole ? 0 : decimals);
    columns_end_cell(columns);
}

void proxy_command_cell_duration(struct columns *columns, double seconds)
{
    uint64_t whole = seconds > 0 ? (uint64_t)seconds : 0;
    unsigned days = (unsigned)(whole / SECONDS_PER_DAY);
    unsigned hours = (unsigned)(whole % SECONDS_PER_DAY / SECONDS_PER_HOUR);
    unsigned minutes = (unsigned)(whole % SECONDS_PER_HOUR / SECONDS_PER_MINUTE);
    unsigned rest = (unsigned)(whole % SECONDS_PER_MINUTE);
    if (days > 0)
        buf_printf(&columns->line, "%ud %02uh", days, hours);
    else if (hours > 0)
        buf_printf(&columns->line, "%uh %02um", hours, minutes);
    else if (minutes > 0)
        buf_printf(&columns->line, "%um %02us", minutes, rest);
    else
        buf_printf(&columns->line, "%us", rest);
    columns_end_cell(columns);
}

double proxy_command_value(const json_t *metric, bool *out_is_counter)
{
    const json_t *type = json_object_get(metric, "ctype");
    const json_t *counter = json_object_get(type, "Counter");
    *out_is_counter = counter != NULL;
    if (counter != NULL)
        return proxy_command_number(counter, "value");
    const json_t *gauge = json_object_get(type, "Gauge");
    double hits = proxy_command_number(gauge, "hits");
    return hits > 0 ? proxy_command_number(gauge, "total") / hits : 0;
}
