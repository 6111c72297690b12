/* SPDX-License-Identifier: BSD-3-Clause */
/* pfw perfetto: traces as Chrome's JSON trace format, for ui.perfetto.dev and chrome://tracing. */
#include "pfw/perfetto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"

/* The largest JSON that the viewers take: a JavaScript string has at most about 2^28 characters. */
static const uint64_t perfetto_viewer_max_bytes = UINT64_C(1) << 28;

struct perfetto_values {
    struct command_filtered filtered;
    const char *path;
    bool is_gzip;
};

static const struct cli_option perfetto_options[] = {
    {"output", 'o', CLI_TEXT, "FILE", offsetof(struct perfetto_values, path), "write there, not to standard output"},
    {"gzip", 'z', CLI_FLAG, NULL, offsetof(struct perfetto_values, is_gzip), "compress, as one gzip member"},
    COMMAND_FILTER_OPTIONS,
    COMMAND_COMMON_OPTIONS,
};

static const struct cli_command perfetto_command = {
    .name = "pfw perfetto",
    .operands = "FILE...",
    .summary = "Converts DFTracer traces to one JSON trace for ui.perfetto.dev and chrome://tracing",
    .details =
        "Several files become one trace. Each host is a process, its counters are that process's tracks. An output\n"
        "FILE that ends in .gz is compressed; it is written only if all traces could be read. Viewers take up to "
        "about\n"
        "256 MB of JSON: choose a part with the options below.\n" COMMAND_FILTER_DETAILS COMMAND_STATUS_DETAILS,
    .options = perfetto_options,
    .options_count = ARRAY_LENGTH(perfetto_options),
};

struct perfetto {
    struct pfw_filter filter;
    struct pfw_perfetto perfetto;
    struct output output;
};

static void perfetto_cleanup(struct perfetto *perfetto)
{
    pfw_filter_fini(&perfetto->filter);
    pfw_perfetto_fini(&perfetto->perfetto);
    output_close(&perfetto->output);
}

static int perfetto_on_file(void *context, const char *name, struct error *err)
{
    (void)name;
    (void)err;
    struct perfetto *perfetto = context;
    pfw_filter_next_file(&perfetto->filter);
    return 0;
}

static int perfetto_on_line(void *context, const struct pfw_line *line, const struct pfw_item *item,
                            bool *out_is_enough, struct error *err)
{
    (void)item;
    struct perfetto *perfetto = context;
    bool is_wanted;
    int rc = pfw_filter_add(&perfetto->filter, line, &is_wanted, err);
    if (rc == 0)
        rc = pfw_perfetto_add(&perfetto->perfetto, line, perfetto->filter.unit.unit, is_wanted, &perfetto->output.text,
                              err);
    if (rc == 0)
        rc = output_drain(&perfetto->output, err);
    *out_is_enough = perfetto->output.is_reader_gone;
    return rc;
}

/* The result would replace what it is made from. */
static int perfetto_refuse_input(const char *path, char *const *files, int count, struct error *err)
{
    for (int i = 0; i < count; i++) {
        struct stat status;
        if (stat(files[i], &status) == 0 && output_is_file(path, &status))
            return error_set(err, -EINVAL, "'%s' is one of the traces; name another file for the result", path);
    }
    return 0;
}

static int perfetto_open(struct perfetto *perfetto, const struct perfetto_values *values, char *const *files, int count,
                         struct error *err)
{
    struct pfw_filter_options options;
    int rc = command_filter(&values->filtered, &options, err);
    if (rc == 0 && values->path != NULL)
        rc = perfetto_refuse_input(values->path, files, count, err);
    if (rc < 0)
        return rc;
    pfw_filter_init(&perfetto->filter, &options);
    pfw_perfetto_init(&perfetto->perfetto);
    size_t length = values->path != NULL ? strlen(values->path) : 0;
    bool is_named_gzip = length > 3 && strcmp(values->path + length - 3, ".gz") == 0;
    return output_open(&perfetto->output, values->path, values->is_gzip || is_named_gzip, err);
}

static int perfetto_finish(struct perfetto *perfetto, struct error *err)
{
    int rc = pfw_perfetto_end(&perfetto->perfetto, &perfetto->output.text, err);
    if (rc == 0)
        rc = output_finish(&perfetto->output, err);
    if (rc < 0)
        return rc;
    if (perfetto->perfetto.left_out > 0)
        (void)fprintf(stderr, "%s: %" PRIu64 " events have no place in the format and were left out\n",
                      perfetto_command.name, perfetto->perfetto.left_out);
    if (perfetto->output.bytes > perfetto_viewer_max_bytes)
        (void)fprintf(stderr,
                      "%s: the result is %.0f MB of JSON, more than viewers take; choose a part with --from, --to, "
                      "--name, --cat or --host\n",
                      perfetto_command.name, (double)perfetto->output.bytes / 1e6);
    return 0;
}

int commands_perfetto(int argc, char **argv)
{
    struct perfetto_values values = {0};
    int files;
    int status;
    if (!command_begin(&perfetto_command, argc, argv, &values, &files, &status))
        return status;
    CLEANUP(perfetto_cleanup) struct perfetto perfetto = {0};
    struct error err = {0};
    int rc = perfetto_open(&perfetto, &values, argv, files, &err);
    enum input_status read_status = INPUT_FAILED;
    if (rc == 0) {
        pfw_perfetto_begin(&perfetto.output.text);
        const struct input_handler handler = {
            .context = &perfetto, .on_file = perfetto_on_file, .on_line = perfetto_on_line};
        read_status = input_read(perfetto_command.name, argv, files, values.filtered.common.is_salvaging, &handler);
        if (read_status == INPUT_FAILED && values.path != NULL)
            (void)fprintf(stderr, "%s: '%s' was not written\n", perfetto_command.name, values.path);
        else
            rc = perfetto_finish(&perfetto, &err);
    }
    if (rc < 0) {
        command_complain(&perfetto_command, &err);
        return INPUT_FAILED;
    }
    return (int)read_status;
}
