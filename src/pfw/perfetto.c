/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/perfetto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    PERFETTO_PROCESSES_MAX = 1 << 24,
    PERFETTO_PROCESSES_MAX_BYTES = 512 << 20,
    PERFETTO_NS_PER_US = 1000,
};

/* The process that stands for the host itself. */
static const int64_t perfetto_host_pid = INT64_MIN;

/* What tells processes apart. Two of the same width: no bytes without a value between them. */
struct perfetto_process {
    int64_t pid;
    int64_t host;
};

void pfw_perfetto_init(struct pfw_perfetto *perfetto)
{
    *perfetto = (struct pfw_perfetto){0};
    pfw_hosts_init(&perfetto->hosts);
    pfw_args_init(&perfetto->args);
    pfw_names_init(&perfetto->processes, PERFETTO_PROCESSES_MAX, PERFETTO_PROCESSES_MAX_BYTES);
}

void pfw_perfetto_fini(struct pfw_perfetto *perfetto)
{
    pfw_hosts_fini(&perfetto->hosts);
    pfw_args_fini(&perfetto->args);
    pfw_names_fini(&perfetto->processes);
    free(perfetto->is_named);
}

/* ---- pieces of an event ---- */

/* Opens the next event of the array up to its name. */
static void perfetto_open(struct pfw_perfetto *perfetto, struct buf *out, const char *phase)
{
    buf_text(out, perfetto->events++ == 0 ? "{\"ph\":\"" : ",\n{\"ph\":\"");
    buf_text(out, phase);
    buf_char(out, '"');
}

static void perfetto_string(struct buf *out, const char *key, const struct pfw_json *string)
{
    buf_text(out, key);
    buf_char(out, '"');
    if (string->kind == PFW_JSON_STRING)
        buf_bytes(out, string->text.at, cursor_left(&string->text)); /* checked and escaped already */
    buf_char(out, '"');
}

/* Nanoseconds as microseconds, without losing a digit. */
static void perfetto_time(struct buf *out, const char *key, int64_t ns)
{
    int64_t us = ns / PERFETTO_NS_PER_US;
    int64_t rest = ns % PERFETTO_NS_PER_US;
    buf_text(out, key);
    if (ns < 0 && us == 0)
        buf_char(out, '-');
    buf_i64(out, us);
    if (rest != 0)
        buf_printf(out, ".%03d", (int)(rest < 0 ? -rest : rest));
}

static void perfetto_place(struct buf *out, const struct pfw_line *line, uint32_t process, int64_t tid)
{
    perfetto_string(out, ",\"name\":", &line->name);
    perfetto_string(out, ",\"cat\":", &line->category);
    buf_text(out, ",\"pid\":");
    buf_u64(out, (uint64_t)process + 1);
    buf_text(out, ",\"tid\":");
    buf_i64(out, tid);
}

/* ---- processes ---- */

static struct perfetto_process perfetto_process_of(const struct pfw_perfetto *perfetto, uint32_t process)
{
    struct perfetto_process key;
    memcpy(&key, pfw_names_text(&perfetto->processes, process).at, sizeof key);
    return key;
}

static void perfetto_name_process(struct pfw_perfetto *perfetto, uint32_t process, struct buf *out)
{
    struct perfetto_process key = perfetto_process_of(perfetto, process);
    perfetto_open(perfetto, out, "M");
    buf_printf(out,
               ",\"name\":\"process_name\",\"pid\":%" PRIu64 ",\"tid\":0,\"args\":{\"name\":", (uint64_t)process + 1);
    buf_json_string(out, pfw_hosts_label(&perfetto->hosts, (uint32_t)key.host));
    if (key.pid != perfetto_host_pid && out->status == 0) {
        buf_truncate(out, out->length - 1); /* the string goes on */
        buf_printf(out, " pid %" PRId64 "\"", key.pid);
    }
    buf_text(out, "}}");
    perfetto->is_named[process] = true;
}

/* The process of an event; its name goes out with its first event if it is known by then. */
static int perfetto_find_process(struct pfw_perfetto *perfetto, uint32_t host, int64_t pid, uint32_t *out_process,
                                 struct buf *out, struct error *err)
{
    const struct perfetto_process key = {.pid = pid, .host = host};
    uint32_t known = perfetto->processes.count;
    int rc = pfw_names_add(&perfetto->processes, &key, sizeof key, out_process, err);
    if (rc < 0)
        return rc;
    if (perfetto->processes.capacity > perfetto->capacity) {
        bool *is_named = realloc(perfetto->is_named, perfetto->processes.capacity * sizeof *is_named);
        if (is_named == NULL)
            return error_set(err, -ENOMEM, "no memory for %u processes", perfetto->processes.capacity);
        perfetto->is_named = is_named;
        perfetto->capacity = perfetto->processes.capacity;
    }
    if (*out_process < known)
        return 0;
    perfetto->is_named[*out_process] = false;
    if (pfw_hosts_name(&perfetto->hosts, host) != NULL)
        perfetto_name_process(perfetto, *out_process, out);
    return 0;
}

/* ---- events ---- */

static int perfetto_counter(struct pfw_perfetto *perfetto, const struct pfw_line *line, uint32_t host,
                            enum pfw_unit unit, struct buf *out, struct error *err)
{
    int rc = pfw_args_read(&perfetto->args, &line->args, err);
    size_t numbers = 0;
    for (size_t i = 0; i < perfetto->args.count; i++)
        numbers += perfetto->args.list[i].value.kind == PFW_JSON_NUMBER;
    if (rc < 0 || numbers == 0) {
        perfetto->left_out += rc == 0;
        return rc;
    }
    uint32_t process;
    rc = perfetto_find_process(perfetto, host, perfetto_host_pid, &process, out, err);
    if (rc < 0)
        return rc;
    perfetto_open(perfetto, out, "C");
    perfetto_place(out, line, process, 0);
    perfetto_time(out, ",\"ts\":", pfw_unit_to_ns(unit, line->ts.value));
    buf_text(out, ",\"args\":");
    char before = '{';
    for (size_t i = 0; i < perfetto->args.count; i++) {
        const struct pfw_arg *arg = &perfetto->args.list[i];
        if (arg->value.kind != PFW_JSON_NUMBER)
            continue;
        struct cursor key = pfw_names_text(&perfetto->args.keys, arg->key);
        buf_char(out, before);
        buf_json_bytes(out, key.at, cursor_left(&key));
        buf_char(out, ':');
        buf_bytes(out, arg->value.text.at, cursor_left(&arg->value.text));
        before = ',';
    }
    buf_text(out, "}}");
    perfetto->counters++;
    perfetto->values += numbers;
    return 0;
}

/* A complete event, or metadata that has an instant. */
static int perfetto_slice(struct pfw_perfetto *perfetto, const struct pfw_line *line, uint32_t host, enum pfw_unit unit,
                          struct buf *out, struct error *err)
{
    /* What DFTracer says about the trace itself stands with the host's counters. */
    int64_t pid = pfw_json_equals(&line->category, "dftracer") ? perfetto_host_pid : line->pid.value;
    uint32_t process;
    int rc = perfetto_find_process(perfetto, host, pid, &process, out, err);
    if (rc < 0)
        return rc;
    bool is_complete = line->phase == PFW_COMPLETE;
    perfetto_open(perfetto, out, is_complete ? "X" : "i");
    perfetto_place(out, line, process, line->tid.value);
    perfetto_time(out, ",\"ts\":", pfw_unit_to_ns(unit, line->ts.value));
    if (is_complete)
        perfetto_time(out, ",\"dur\":", pfw_unit_to_ns(unit, line->dur.value));
    else
        buf_text(out, ",\"s\":\"p\"");
    buf_text(out, ",\"args\":");
    if (line->args.kind == PFW_JSON_OBJECT)
        buf_bytes(out, line->args.text.at, cursor_left(&line->args.text));
    else
        buf_text(out, "{}");
    buf_char(out, '}');
    return 0;
}

void pfw_perfetto_begin(struct buf *out)
{
    buf_text(out, "[\n");
}

int pfw_perfetto_add(struct pfw_perfetto *perfetto, const struct pfw_line *line, enum pfw_unit unit, bool is_wanted,
                     struct buf *out, struct error *err)
{
    uint32_t host;
    int rc = pfw_hosts_of(&perfetto->hosts, line, &host, err);
    if (rc < 0 || !is_wanted || pfw_hosts_is_naming(line))
        return rc;
    if (line->phase == 0 || !line->ts.is_present) {
        perfetto->left_out += line->phase != PFW_METADATA;
        return 0;
    }
    if (line->phase == PFW_COUNTER || line->phase == PFW_AGGREGATED)
        return perfetto_counter(perfetto, line, host, unit, out, err);
    return perfetto_slice(perfetto, line, host, unit, out, err);
}

int pfw_perfetto_end(struct pfw_perfetto *perfetto, struct buf *out, struct error *err)
{
    for (uint32_t i = 0; i < perfetto->processes.count; i++) {
        if (!perfetto->is_named[i])
            perfetto_name_process(perfetto, i, out);
    }
    buf_text(out, "\n]\n");
    return buf_status(out, err);
}
