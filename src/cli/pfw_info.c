/* SPDX-License-Identifier: BSD-3-Clause */
/* pfw info: what traces hold: events, hosts, time, series, gaps. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "pfw/summary.h"

enum { INFO_NAMES_SHOWN = 8, INFO_GAPS_SHOWN = 3 };

struct info_values {
    struct command_common common;
    bool is_json;
};

static const struct cli_option info_options[] = {
    {"json", '\0', CLI_FLAG, NULL, offsetof(struct info_values, is_json), "print JSON, for programs"},
    COMMAND_COMMON_OPTIONS,
};

static const struct cli_command info_command = {
    .name = "pfw info",
    .operands = "FILE...",
    .summary = "Tells what DFTracer traces hold: events, hosts, span of time, series, gaps",
    .details =
        "A gap is a time of more than 1.75 intervals without any sample of a host. The unit of time is what the\n"
        "trace says, else it is told by the size of the first time stamp.\n" COMMAND_STATUS_DETAILS,
    .options = info_options,
    .options_count = ARRAY_LENGTH(info_options),
};

struct info {
    const struct info_values *values;
    struct output output;
    struct pfw_summary summary;
    bool has_summary;
    uint64_t files;
};

static void info_cleanup(struct info *info)
{
    if (info->has_summary)
        pfw_summary_fini(&info->summary);
    output_close(&info->output);
}

static int info_on_file(void *context, const char *name, struct error *err)
{
    (void)name;
    (void)err;
    struct info *info = context;
    if (info->has_summary)
        pfw_summary_fini(&info->summary);
    pfw_summary_init(&info->summary, NULL, NULL);
    info->has_summary = true;
    return 0;
}

static int info_on_line(void *context, const struct pfw_line *line, const struct pfw_item *item, bool *out_is_enough,
                        struct error *err)
{
    (void)item;
    (void)out_is_enough;
    struct info *info = context;
    return pfw_summary_add(&info->summary, line, err);
}

/* ---- series in groups ---- */

static int info_compare_series(const void *left, const void *right, void *context)
{
    const struct pfw_summary *summary = context;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    struct pfw_series_id first = pfw_series_id(&summary->series, a);
    struct pfw_series_id second = pfw_series_id(&summary->series, b);
    if (first.host != second.host)
        return first.host < second.host ? -1 : 1;
    size_t first_length = cursor_left(&first.category);
    size_t second_length = cursor_left(&second.category);
    int order =
        memcmp(first.category.at, second.category.at, first_length < second_length ? first_length : second_length);
    if (order != 0 || first_length != second_length)
        return order != 0 ? order : first_length < second_length ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* The numbers of all series by host and category, in each in the order of arrival. Returns owned, NULL without memory.
 */
static uint32_t *info_sort_series(struct pfw_summary *summary)
{
    uint32_t count = summary->series.keys.count;
    uint32_t *order = malloc((count > 0 ? count : 1) * sizeof *order);
    if (order == NULL)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, info_compare_series, summary);
    return order;
}

static bool info_is_same_group(const struct pfw_series_id *a, const struct pfw_series_id *b)
{
    return a->host == b->host && cursor_left(&a->category) == cursor_left(&b->category) &&
           memcmp(a->category.at, b->category.at, cursor_left(&a->category)) == 0;
}

/* One line for each category of a host's series: "sys 5: cpu, cpu-0, cpu-1, memory, pressure". */
static void info_series_text(const struct pfw_summary *summary, const uint32_t *order, uint32_t count, struct buf *out)
{
    for (uint32_t begin = 0, end = 0; begin < count; begin = end) {
        struct pfw_series_id first = pfw_series_id(&summary->series, order[begin]);
        for (end = begin + 1; end < count; end++) {
            struct pfw_series_id next = pfw_series_id(&summary->series, order[end]);
            if (!info_is_same_group(&first, &next))
                break;
        }
        buf_text(out, "      ");
        command_clean(out, first.category.at, cursor_left(&first.category));
        buf_printf(out, " %" PRIu32 ":", end - begin);
        for (uint32_t i = begin; i < end && i < begin + INFO_NAMES_SHOWN; i++) {
            struct pfw_series_id id = pfw_series_id(&summary->series, order[i]);
            buf_text(out, i > begin ? ", " : " ");
            command_clean(out, id.name.at, cursor_left(&id.name));
        }
        buf_text(out, end - begin > INFO_NAMES_SHOWN ? ", ...\n" : "\n");
    }
}

/* ---- text ---- */

static void info_gaps_text(const struct pfw_cadence *cadence, struct buf *out)
{
    struct pfw_silence gaps[PFW_CADENCE_GAPS_MAX];
    size_t count = pfw_cadence_gaps(cadence, pfw_cadence_interval_s(cadence), gaps);
    buf_printf(out, "    gaps      %s%zu", count == PFW_CADENCE_GAPS_MAX ? "at least " : "", count);
    for (size_t i = 0; i < count && i < INFO_GAPS_SHOWN; i++) {
        buf_text(out, i == 0 ? ": " : ", ");
        pfw_moment_duration(pfw_moment_elapsed_ns(gaps[i].from_ns, gaps[i].to_ns), out);
        buf_text(out, " after ");
        pfw_moment_local(gaps[i].from_ns, out);
    }
    buf_text(out, count > INFO_GAPS_SHOWN ? ", ...\n" : "\n");
}

static void info_times_text(const struct pfw_summary_host *host, struct buf *out)
{
    if (!host->has_time)
        return;
    buf_text(out, "    span      ");
    pfw_moment_local(host->first_ns, out);
    buf_text(out, " to ");
    pfw_moment_local(host->last_ns, out);
    buf_text(out, " (");
    pfw_moment_duration(pfw_moment_elapsed_ns(host->first_ns, host->last_ns), out);
    buf_text(out, ")\n    interval  ");
    double interval_s = pfw_cadence_interval_s(&host->cadence);
    if (interval_s > 0)
        pfw_moment_duration(interval_s < 0x1p30 ? (int64_t)(interval_s * 1e9 + 0.5) : INT64_MAX, out);
    else
        buf_text(out, "none seen");
    if (host->interval_told_ms > 0) {
        buf_text(out, " (set to ");
        pfw_moment_duration(pfw_unit_to_ns(PFW_UNIT_MS, host->interval_told_ms), out);
        buf_char(out, ')');
    }
    buf_char(out, '\n');
    info_gaps_text(&host->cadence, out);
}

/* `order` begins with the host's own series. */
static void info_host_text(const struct pfw_summary *summary, const uint32_t *order, uint32_t number, struct buf *out)
{
    const struct pfw_summary_host *host = &summary->host_list[number];
    const char *name = pfw_hosts_name(&summary->hosts, number);
    const char *hash = pfw_hosts_hash(&summary->hosts, number);
    buf_text(out, "  host        ");
    if (name != NULL)
        command_clean(out, name, strlen(name));
    else
        buf_text(out, hash[0] != '\0' ? "without a name" : "unknown");
    if (hash[0] != '\0') {
        buf_text(out, " (");
        command_clean(out, hash, strlen(hash));
        buf_char(out, ')');
    }
    buf_text(out, "\n    events    ");
    command_count(out, host->events);
    buf_char(out, '\n');
    info_times_text(host, out);
    if (host->runs > 0)
        buf_printf(out, "    runs      %" PRIu32 ", %" PRIu32 " with an end\n", host->runs, host->runs_ended);
    if (host->dropped > 0) {
        buf_text(out, "    dropped   ");
        command_count(out, host->dropped);
        buf_text(out, " events, by the writer\n");
    }
    if (host->clock_steps > 0)
        buf_printf(out, "    clock     was set %" PRIu64 " time%s\n", host->clock_steps,
                   host->clock_steps == 1 ? "" : "s");
    buf_printf(out, "    series    %" PRIu32 "\n", host->series);
    info_series_text(summary, order, host->series, out);
}

static void info_file_text(const struct pfw_summary *summary, const struct input_totals *totals, struct buf *out)
{
    const struct pfw_unpack_status *unpack = &totals->reader.unpack;
    static const char *const phases[] = {[PFW_COMPLETE] = "complete",
                                         [PFW_COUNTER] = "counters",
                                         [PFW_AGGREGATED] = "aggregated",
                                         [PFW_METADATA] = "metadata"};
    command_clean(out, totals->name, strlen(totals->name));
    buf_text(out, "\n  file        ");
    command_bytes(out, unpack->file_bytes);
    if (unpack->is_compressed) {
        buf_text(out, " of gzip, ");
        command_plural(out, unpack->members, "member");
        buf_text(out, ", ");
        command_bytes(out, unpack->text_bytes);
    }
    buf_text(out, " of text\n  events      ");
    command_count(out, summary->events);
    const char *before = " (";
    for (size_t phase = PFW_COMPLETE; phase <= PFW_METADATA; phase++) {
        if (summary->phases[phase] == 0)
            continue;
        buf_text(out, before);
        command_count(out, summary->phases[phase]);
        buf_printf(out, " %s", phases[phase]);
        before = ", ";
    }
    if (summary->phases[0] > 0)
        buf_printf(out, "%s%" PRIu64 " of another phase", before, summary->phases[0]);
    buf_text(out, summary->events > 0 ? ")\n" : "\n");
    if (summary->unit.unit != PFW_UNIT_UNKNOWN)
        buf_printf(out, "  time unit   %s (%s)\n", pfw_unit_name(summary->unit.unit),
                   summary->unit.is_told ? "the trace says so" : "by the size of the time stamps");
}

/* ---- JSON ---- */

static void info_seconds_json(struct buf *out, const char *key, double seconds)
{
    buf_text(out, key);
    buf_fixed(out, seconds, 9);
}

static void info_gaps_json(const struct pfw_cadence *cadence, struct buf *out)
{
    struct pfw_silence gaps[PFW_CADENCE_GAPS_MAX];
    size_t count = pfw_cadence_gaps(cadence, pfw_cadence_interval_s(cadence), gaps);
    buf_text(out, ",\"gaps\":[");
    for (size_t i = 0; i < count; i++) {
        buf_text(out, i > 0 ? ",{\"after\":\"" : "{\"after\":\"");
        pfw_moment_utc(gaps[i].from_ns, out);
        info_seconds_json(out,
                          "\",\"seconds\":", (double)(pfw_moment_elapsed_ns(gaps[i].from_ns, gaps[i].to_ns)) / 1e9);
        buf_char(out, '}');
    }
    buf_printf(out, "],\"gaps_are_all\":%s", count == PFW_CADENCE_GAPS_MAX ? "false" : "true");
}

static void info_times_json(const struct pfw_summary_host *host, struct buf *out)
{
    if (host->has_time) {
        buf_text(out, ",\"start\":\"");
        pfw_moment_utc(host->first_ns, out);
        buf_text(out, "\",\"end\":\"");
        pfw_moment_utc(host->last_ns, out);
        info_seconds_json(out, "\",\"seconds\":", (double)(pfw_moment_elapsed_ns(host->first_ns, host->last_ns)) / 1e9);
    }
    info_seconds_json(out, ",\"interval_seconds\":", pfw_cadence_interval_s(&host->cadence));
    info_seconds_json(out, ",\"interval_set_seconds\":", (double)host->interval_told_ms / 1e3);
    info_gaps_json(&host->cadence, out);
}

static void info_host_json(const struct pfw_summary *summary, const uint32_t *order, uint32_t number, struct buf *out)
{
    const struct pfw_summary_host *host = &summary->host_list[number];
    const char *name = pfw_hosts_name(&summary->hosts, number);
    buf_text(out, "{\"hash\":");
    buf_json_string(out, pfw_hosts_hash(&summary->hosts, number));
    buf_text(out, ",\"name\":");
    if (name != NULL)
        buf_json_string(out, name);
    else
        buf_text(out, "null");
    buf_printf(out, ",\"events\":%" PRIu64, host->events);
    info_times_json(host, out);
    buf_printf(out,
               ",\"runs\":%" PRIu32 ",\"runs_ended\":%" PRIu32 ",\"dropped_events\":%" PRIu64
               ",\"clock_steps\":%" PRIu64 ",\"series\":[",
               host->runs, host->runs_ended, host->dropped, host->clock_steps);
    for (uint32_t i = 0; i < host->series; i++) {
        struct pfw_series_id id = pfw_series_id(&summary->series, order[i]);
        buf_text(out, i == 0 ? "{\"cat\":" : ",{\"cat\":");
        buf_json_bytes(out, id.category.at, cursor_left(&id.category));
        buf_text(out, ",\"name\":");
        buf_json_bytes(out, id.name.at, cursor_left(&id.name));
        buf_printf(out, ",\"events\":%" PRIu64 "}", pfw_summary_series_events(summary, order[i]));
    }
    buf_text(out, "]}");
}

static void info_file_json(const struct pfw_summary *summary, const struct input_totals *totals, struct buf *out)
{
    const struct pfw_unpack_status *unpack = &totals->reader.unpack;
    buf_text(out, "{\"file\":");
    buf_json_string(out, totals->name);
    buf_printf(out,
               ",\"is_gzip\":%s,\"members\":%" PRIu64 ",\"file_bytes\":%" PRIu64 ",\"text_bytes\":%" PRIu64
               ",\"events\":%" PRIu64 ",\"complete\":%" PRIu64 ",\"counters\":%" PRIu64 ",\"aggregated\":%" PRIu64
               ",\"metadata\":%" PRIu64 ",\"of_other_phases\":%" PRIu64,
               unpack->is_compressed ? "true" : "false", unpack->members, unpack->file_bytes, unpack->text_bytes,
               summary->events, summary->phases[PFW_COMPLETE], summary->phases[PFW_COUNTER],
               summary->phases[PFW_AGGREGATED], summary->phases[PFW_METADATA], summary->phases[0]);
    buf_printf(out,
               ",\"bad_lines\":%" PRIu64 ",\"long_lines\":%" PRIu64 ",\"left_bytes\":%" PRIu64
               ",\"unchecked_bytes\":%" PRIu64 ",\"zero_bytes\":%" PRIu64 ",\"cut_line_bytes\":%" PRIu64
               ",\"is_cut\":%s,\"time_unit\":\"%s\",\"time_unit_is_told\":%s,\"hosts\":[",
               totals->bad_lines, totals->long_lines, totals->left_bytes, totals->unchecked_bytes, totals->zero_bytes,
               totals->cut_bytes, totals->is_cut || totals->cut_bytes > 0 ? "true" : "false",
               pfw_unit_name(summary->unit.unit), summary->unit.is_told ? "true" : "false");
}

/* ---- a file's end ---- */

static int info_on_end(void *context, const struct input_totals *totals, struct error *err)
{
    struct info *info = context;
    struct pfw_summary *summary = &info->summary;
    struct buf *out = &info->output.text;
    bool is_json = info->values->is_json;
    pfw_summary_finish(summary);
    CLEANUP(memory_cleanup) uint32_t *order = info_sort_series(summary);
    if (order == NULL)
        return error_set(err, -ENOMEM, "no memory to sort %" PRIu32 " series", summary->series.keys.count);
    if (is_json) {
        buf_text(out, info->files > 0 ? ",\n" : "[");
        info_file_json(summary, totals, out);
    } else {
        buf_text(out, info->files > 0 ? "\n" : "");
        info_file_text(summary, totals, out);
    }
    uint32_t begin = 0; /* of the host's series in the order */
    for (uint32_t i = 0; i < summary->hosts.hashes.count; i++) {
        if (summary->host_list[i].events == 0)
            continue;
        buf_text(out, is_json && begin > 0 ? "," : "");
        (is_json ? info_host_json : info_host_text)(summary, order + begin, i, out);
        begin += summary->host_list[i].series;
    }
    buf_text(out, is_json ? "]}" : "");
    info->files++;
    return output_drain(&info->output, err);
}

int commands_info(int argc, char **argv)
{
    struct info_values values = {0};
    int files;
    int status;
    if (!command_begin(&info_command, argc, argv, &values, &files, &status))
        return status;
    CLEANUP(info_cleanup) struct info info = {.values = &values};
    struct error err = {0};
    int rc = output_open(&info.output, NULL, false, &err);
    enum input_status read_status = INPUT_FAILED;
    if (rc == 0) {
        const struct input_handler handler = {
            .context = &info, .on_file = info_on_file, .on_line = info_on_line, .on_end = info_on_end};
        read_status = input_read(info_command.name, argv, files, values.common.is_salvaging, &handler);
        if (values.is_json)
            buf_text(&info.output.text, info.files > 0 ? "]\n" : "[]\n");
        rc = output_finish(&info.output, &err);
    }
    if (rc < 0) {
        command_complain(&info_command, &err);
        return INPUT_FAILED;
    }
    return (int)read_status;
}
