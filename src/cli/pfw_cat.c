/* SPDX-License-Identifier: BSD-3-Clause */
/* pfw cat: the events that match, as they are. */
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"

static const struct cli_option cat_options[] = {
    COMMAND_FILTER_OPTIONS,
    COMMAND_COMMON_OPTIONS,
};

static const struct cli_command cat_command = {
    .name = "pfw cat",
    .operands = "FILE...",
    .summary = "Prints the events of DFTracer traces, one JSON object a line, as they are",
    .details = COMMAND_FILTER_DETAILS COMMAND_STATUS_DETAILS,
    .options = cat_options,
    .options_count = ARRAY_LENGTH(cat_options),
};

struct cat {
    struct pfw_filter filter;
    struct output output;
};

static int cat_on_file(void *context, const char *name, struct error *err)
{
    (void)name;
    (void)err;
    struct cat *cat = context;
    pfw_filter_next_file(&cat->filter);
    return 0;
}

static int cat_on_line(void *context, const struct pfw_line *line, const struct pfw_item *item, bool *out_is_enough,
                       struct error *err)
{
    struct cat *cat = context;
    bool is_wanted;
    int rc = pfw_filter_add(&cat->filter, line, &is_wanted, err);
    if (rc < 0 || !is_wanted)
        return rc;
    buf_bytes(&cat->output.text, item->text, item->length);
    buf_char(&cat->output.text, '\n');
    rc = output_drain(&cat->output, err);
    *out_is_enough = cat->output.is_reader_gone;
    return rc;
}

static void cat_cleanup(struct cat *cat)
{
    output_close(&cat->output);
    pfw_filter_fini(&cat->filter);
}

static int cat_open(struct cat *cat, const struct command_filtered *values, struct error *err)
{
    struct pfw_filter_options options;
    int rc = command_filter(values, &options, err);
    if (rc < 0)
        return rc;
    pfw_filter_init(&cat->filter, &options);
    return output_open(&cat->output, NULL, false, err);
}

int commands_cat(int argc, char **argv)
{
    struct command_filtered values = {0};
    int files;
    int status;
    if (!command_begin(&cat_command, argc, argv, &values, &files, &status))
        return status;
    CLEANUP(cat_cleanup) struct cat cat = {0};
    struct error err = {0};
    if (cat_open(&cat, &values, &err) < 0) {
        command_complain(&cat_command, &err);
        return INPUT_FAILED;
    }
    const struct input_handler handler = {.context = &cat, .on_file = cat_on_file, .on_line = cat_on_line};
    enum input_status read_status = input_read(cat_command.name, argv, files, values.common.is_salvaging, &handler);
    if (output_finish(&cat.output, &err) < 0) {
        command_complain(&cat_command, &err);
        return INPUT_FAILED;
    }
    return (int)read_status;
}
