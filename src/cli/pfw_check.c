/* SPDX-License-Identifier: BSD-3-Clause */
/* pfw check: is a trace whole, well-formed and continuous? */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "pfw/args.h"
#include "pfw/summary.h"

enum { CHECK_SHOWN_MAX = 10 };

struct check_values {
    struct command_common common;
    bool is_strict;
    bool is_quiet;
    bool shows_all;
};

static const struct cli_option check_options[] = {
    {"strict", '\0', CLI_FLAG, NULL, offsetof(struct check_values, is_strict), "notes count as problems"},
    {"all", 'a', CLI_FLAG, NULL, offsetof(struct check_values, shows_all), "show all of a kind, not only the first 10"},
    {"quiet", 'q', CLI_FLAG, NULL, offsetof(struct check_values, is_quiet), "print nothing; the exit status tells"},
    COMMAND_COMMON_OPTIONS,
};

static const struct cli_command check_command = {
    .name = "pfw check",
    .operands = "FILE...",
    .summary = "Checks that DFTracer traces are whole, well-formed and continuous",
    .details =
        "Problems: lines that are not strict JSON in UTF-8; events that lack a key; time stamps of a series that "
        "fall;\n"
        "gaps of more than 1.75 intervals; dropped events; hosts without a name; an end event that counts wrong (one\n"
        "that says how many were dropped, as the service writes it); damaged or cut gzip; no event at all.\n"
        "Notes: no start or no end event (the writer was killed, or still runs); a wall clock that was set; equal "
        "keys\n"
        "in one object; zero bytes at the end of the file; an end event of another program that counts otherwise.\n"
        "Exit status: 0 no problem; 1 there are problems; 2 a file or an option is no good.\n",
    .options = check_options,
    .options_count = ARRAY_LENGTH(check_options),
};

/* What is reported: the summary's findings, then those of the file and its lines. */
enum check_kind {
    CHECK_JSON = PFW_FINDINGS,
    CHECK_DUPLICATES,
    CHECK_GZIP,
    CHECK_ZEROS,
    CHECK_EMPTY,
    CHECK_KINDS,
};

static const bool check_is_note[CHECK_KINDS] = {
    [PFW_FINDING_NO_START] = true,      [PFW_FINDING_NO_END] = true, [PFW_FINDING_CLOCK] = true,
    [PFW_FINDING_FOREIGN_COUNT] = true, [CHECK_DUPLICATES] = true,   [CHECK_ZEROS] = true,
};

struct check {
    const struct check_values *values;
    struct output output;
    struct pfw_summary summary;
    bool has_summary;
    struct pfw_args args;
    const char *name;
    uint64_t line; /* the present one; 0 before the first and after the last */
    uint64_t shown[CHECK_KINDS];
    uint64_t problems; /* in this file */
    uint64_t notes;
    bool has_problems; /* in any file */
};

static void check_cleanup(struct check *check)
{
    if (check->has_summary)
        pfw_summary_fini(&check->summary);
    pfw_args_fini(&check->args);
    output_close(&check->output);
}

static void check_report(struct check *check, unsigned kind, const char *text)
{
    struct buf *out = &check->output.text;
    bool is_note = check_is_note[kind];
    check->problems += !is_note;
    check->notes += is_note;
    check->shown[kind]++;
    if (check->values->is_quiet || (!check->values->shows_all && check->shown[kind] > CHECK_SHOWN_MAX))
        return;
    command_clean(out, check->name, strlen(check->name));
    if (check->line > 0)
        buf_printf(out, ":%" PRIu64, check->line);
    buf_text(out, is_note ? ": note: " : ": problem: ");
    command_clean(out, text, strlen(text));
    buf_char(out, '\n');
}

static void check_on_finding(void *context, enum pfw_finding finding, const char *text)
{
    check_report(context, finding, text);
}

static int check_on_file(void *context, const char *name, struct error *err)
{
    (void)err;
    struct check *check = context;
    if (check->has_summary)
        pfw_summary_fini(&check->summary);
    pfw_summary_init(&check->summary, check_on_finding, check);
    check->has_summary = true;
    check->name = name;
    check->line = 0;
    check->problems = check->notes = 0;
    memset(check->shown, 0, sizeof check->shown);
    return 0;
}

/* Counts equal keys in the event itself and in its arguments. */
static int check_duplicates(struct check *check, const struct pfw_line *line, const struct pfw_item *item,
                            struct error *err)
{
    const struct pfw_json event = {.text = cursor_of(item->text, item->length), .kind = PFW_JSON_OBJECT};
    int rc = pfw_args_read(&check->args, &event, err);
    size_t duplicates = check->args.duplicates;
    if (rc == 0)
        rc = pfw_args_read(&check->args, &line->args, err);
    duplicates += check->args.duplicates;
    if (duplicates > 0)
        check_report(check, CHECK_DUPLICATES, "the event has equal keys; readers take the last");
    return rc;
}

static int check_on_line(void *context, const struct pfw_line *line, const struct pfw_item *item, bool *out_is_enough,
                         struct error *err)
{
    (void)out_is_enough;
    struct check *check = context;
    check->line = item->number;
    int rc = check_duplicates(check, line, item, err);
    if (rc == 0)
        rc = pfw_summary_add(&check->summary, line, err);
    check->line = 0;
    return rc < 0 ? rc : output_drain(&check->output, err);
}

static void check_on_fault(void *context, const struct pfw_item *item, const char *reason)
{
    struct check *check = context;
    if (item->kind == PFW_ITEM_LINE) {
        check->line = item->number;
        check_report(check, CHECK_JSON, reason);
        check->line = 0;
        return;
    }
    check_report(check, item->gap.kind == PFW_GAP_ZEROS ? CHECK_ZEROS : CHECK_GZIP, reason);
}

static int check_on_end(void *context, const struct input_totals *totals, struct error *err)
{
    struct check *check = context;
    struct buf *out = &check->output.text;
    pfw_summary_finish(&check->summary);
    if (totals->lines == 0)
        check_report(check, CHECK_EMPTY, "there is no event in it");
    if (check->values->is_strict) {
        check->problems += check->notes;
        check->notes = 0;
    }
    check->has_problems |= check->problems > 0;
    if (check->values->is_quiet)
        return 0;
    for (unsigned kind = 0; kind < CHECK_KINDS && !check->values->shows_all; kind++) {
        if (check->shown[kind] <= CHECK_SHOWN_MAX)
            continue;
        command_clean(out, totals->name, strlen(totals->name));
        buf_printf(out, ": %" PRIu64 " more like that (--all shows them)\n", check->shown[kind] - CHECK_SHOWN_MAX);
    }
    command_clean(out, totals->name, strlen(totals->name));
    buf_text(out, ": ");
    command_plural(out, check->summary.events, "event");
    buf_text(out, ", ");
    command_plural(out, check->problems, "problem");
    buf_text(out, ", ");
    command_plural(out, check->notes, "note");
    buf_char(out, '\n');
    return output_drain(&check->output, err);
}

int commands_check(int argc, char **argv)
{
    struct check_values values = {0};
    int files;
    int status;
    if (!command_begin(&check_command, argc, argv, &values, &files, &status))
        return status;
    CLEANUP(check_cleanup) struct check check = {.values = &values};
    pfw_args_init(&check.args);
    struct error err = {0};
    int rc = output_open(&check.output, NULL, false, &err);
    enum input_status read_status = INPUT_FAILED;
    if (rc == 0) {
        const struct input_handler handler = {.context = &check,
                                              .on_file = check_on_file,
                                              .on_line = check_on_line,
                                              .on_fault = check_on_fault,
                                              .on_end = check_on_end};
        read_status = input_read(check_command.name, argv, files, values.common.is_salvaging, &handler);
        rc = output_finish(&check.output, &err);
    }
    if (rc < 0) {
        command_complain(&check_command, &err);
        return INPUT_FAILED;
    }
    return read_status == INPUT_FINE && check.has_problems ? INPUT_INCOMPLETE : (int)read_status;
}
