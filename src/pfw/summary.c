/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pfw/moment.h"
#include "util/buf.h"

enum {
    SUMMARY_FIRST_CAPACITY = 16,
    SUMMARY_RUNS_MAX = 1 << 20,
    SUMMARY_RUNS_MAX_BYTES = 64 << 20,
    SUMMARY_FINDING_MAX_BYTES = 4096,
    SUMMARY_SHOWN_MAX_BYTES = 200, /* of a name in a finding */
};

struct pfw_summary_series {
    uint64_t events;
    int64_t last_ns;
    uint32_t run; /* of its host when it was last seen */
    bool has_last;
};

/* What tells one writing process from another. Two of the same width: no bytes without a value between them. */
struct summary_run_key {
    int64_t pid;
    int64_t host;
};

/* One process that wrote events. */
struct pfw_summary_run {
    uint64_t events; /* since its start, with it */
    bool is_open;    /* started, not ended */
    bool is_known;   /* a start was seen */
};

void pfw_summary_init(struct pfw_summary *summary, pfw_summary_on_finding *on_finding, void *context)
{
    *summary = (struct pfw_summary){.on_finding = on_finding, .context = context};
    pfw_hosts_init(&summary->hosts);
    pfw_series_init(&summary->series);
    pfw_names_init(&summary->runs, SUMMARY_RUNS_MAX, SUMMARY_RUNS_MAX_BYTES);
}

void pfw_summary_fini(struct pfw_summary *summary)
{
    for (uint32_t i = 0; i < summary->host_capacity; i++)
        pfw_cadence_fini(&summary->host_list[i].cadence);
    free(summary->host_list);
    free(summary->series_list);
    free(summary->run_list);
    pfw_hosts_fini(&summary->hosts);
    pfw_series_fini(&summary->series);
    pfw_names_fini(&summary->runs);
}

/* ---- findings ---- */

static void PRINTF_LIKE(3, 4)
    summary_find(struct pfw_summary *summary, enum pfw_finding finding, const char *format, ...)
{
    summary->findings[finding]++;
    if (summary->on_finding == NULL)
        return;
    char text[SUMMARY_FINDING_MAX_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args); /* cut when it is too long: still a useful text */
    va_end(args);
    summary->on_finding(summary->context, finding, text);
}

/* How much of a name or phase is shown in a finding. */
static int summary_shown(const struct pfw_json *value)
{
    size_t length = cursor_left(&value->text);
    return (int)(length < SUMMARY_SHOWN_MAX_BYTES ? length : SUMMARY_SHOWN_MAX_BYTES);
}

static const char *summary_words(const struct pfw_json *value)
{
    return value->kind == PFW_JSON_NONE ? "" : value->text.at;
}

static void summary_check_keys(struct pfw_summary *summary, const struct pfw_line *line)
{
    bool has_stamp = line->phase != PFW_METADATA;
    const struct {
        const char *key;
        bool is_good;
    } keys[] = {
        {"name", line->name.kind == PFW_JSON_STRING},
        {"cat", line->category.kind == PFW_JSON_STRING},
        {"pid", line->pid.is_present},
        {"tid", line->tid.is_present},
        {"ts", !has_stamp || line->ts.is_present},
        {"dur", line->phase != PFW_COMPLETE || line->dur.is_present},
        {"args", line->args.kind == PFW_JSON_OBJECT},
    };
    if (line->phase == 0)
        summary_find(summary, PFW_FINDING_PHASE, "phase (ph) '%.*s' is none of 1 to 4, X, C, A, M",
                     summary_shown(&line->phase_text), summary_words(&line->phase_text));
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        if (!keys[i].is_good)
            summary_find(summary, PFW_FINDING_KEY, "event '%.*s': key \"%s\" is missing or of another type",
                         summary_shown(&line->name), summary_words(&line->name), keys[i].key);
    }
}

/* ---- tables ---- */

/*
 * Makes `list` hold at least `count` elements, new ones zeroed, and returns it. NULL without memory: `list` is then as
 * it was.
 */
static void *summary_reserve(void *list, uint32_t *capacity, uint32_t count, size_t element_bytes, struct error *err)
{
    if (count <= *capacity)
        return list;
    size_t grown = *capacity == 0 ? SUMMARY_FIRST_CAPACITY : (size_t)*capacity * 2;
    if (grown < count)
        grown = count;
    char *larger = realloc(list, grown * element_bytes);
    if (larger == NULL) {
        (void)error_set(err, -ENOMEM, "no memory for %zu hosts, series or runs", grown); /* NULL says it */
        return NULL;
    }
    memset(larger + *capacity * element_bytes, 0, (grown - *capacity) * element_bytes);
    *capacity = (uint32_t)grown;
    return larger;
}

static int summary_host_of(struct pfw_summary *summary, const struct pfw_line *line, uint32_t *out_host,
                           struct error *err)
{
    int rc = pfw_hosts_of(&summary->hosts, line, out_host, err);
    if (rc < 0)
        return rc;
    struct pfw_summary_host *list =
        summary_reserve(summary->host_list, &summary->host_capacity, summary->hosts.hashes.count, sizeof *list, err);
    if (list == NULL)
        return -ENOMEM;
    summary->host_list = list;
    return 0;
}

static int summary_series_of(struct pfw_summary *summary, uint32_t host, const struct pfw_line *line,
                             struct pfw_summary_series **out_series, struct error *err)
{
    uint32_t number;
    int rc = pfw_series_of(&summary->series, host, line, &number, err);
    if (rc < 0)
        return rc;
    struct pfw_summary_series *list =
        summary_reserve(summary->series_list, &summary->series_capacity, number + 1, sizeof *list, err);
    if (list == NULL)
        return -ENOMEM;
    summary->series_list = list;
    *out_series = &summary->series_list[number];
    if ((*out_series)->events == 0)
        summary->host_list[host].series++;
    return 0;
}

static int summary_run_of(struct pfw_summary *summary, uint32_t host, const struct pfw_line *line,
                          struct pfw_summary_run **out_run, struct error *err)
{
    const struct summary_run_key key = {.pid = line->pid.value, .host = host};
    uint32_t number;
    int rc = pfw_names_add(&summary->runs, &key, sizeof key, &number, err);
    if (rc < 0)
        return rc;
    struct pfw_summary_run *list =
        summary_reserve(summary->run_list, &summary->run_capacity, number + 1, sizeof *list, err);
    if (list == NULL)
        return -ENOMEM;
    summary->run_list = list;
    *out_run = &summary->run_list[number];
    return 0;
}

/* ---- one event ---- */

/* A number among the arguments of an event, or of the settings in it. */
static bool summary_arg(const struct pfw_line *line, const char *key, int64_t *out_number)
{
    struct pfw_json value = pfw_member(&line->args, key);
    if (value.kind == PFW_JSON_NONE) {
        struct pfw_json settings = pfw_member(&line->args, "cfg");
        value = pfw_member(&settings, key);
    }
    return pfw_json_i64(&value, out_number);
}

static void summary_start(struct pfw_summary *summary, uint32_t number, struct pfw_summary_run *run)
{
    struct pfw_summary_host *host = &summary->host_list[number];
    if (run->is_open)
        summary_find(summary, PFW_FINDING_NO_END, "host %s: a run has no end event: its writer was killed",
                     pfw_hosts_label(&summary->hosts, number));
    *run = (struct pfw_summary_run){.is_open = true, .is_known = true};
    host->runs++;
    pfw_cadence_restart(&host->cadence);
}

/* Our service counts the end event, too, and says how many events it dropped; other writers' ways to count differ. */
static void summary_end(struct pfw_summary *summary, uint32_t number, struct pfw_summary_run *run,
                        const struct pfw_line *line)
{
    int64_t told;
    int64_t dropped;
    uint64_t events = run->events + 1;
    bool is_ours = summary_arg(line, "dropped", &dropped);
    if (run->is_known && summary_arg(line, "num_events", &told) && (told < 0 || (uint64_t)told != events))
        summary_find(summary, is_ours ? PFW_FINDING_COUNT : PFW_FINDING_FOREIGN_COUNT,
                     "host %s: the end event counts %" PRId64 " events of its run, but there are %" PRIu64,
                     pfw_hosts_label(&summary->hosts, number), told, events);
    summary->host_list[number].runs_ended += run->is_open;
    run->is_open = false;
}

/* Events that DFTracer writes about the trace itself. */
static void summary_on_own(struct pfw_summary *summary, uint32_t number, struct pfw_summary_run *run,
                           const struct pfw_line *line)
{
    struct pfw_summary_host *host = &summary->host_list[number];
    int64_t told;
    bool is_start = pfw_json_equals(&line->name, "start");
    bool is_end = pfw_json_equals(&line->name, "end");
    if ((is_start || is_end) && summary_arg(line, "trace_interval_ms", &told))
        host->interval_told_ms = told;
    if (is_start)
        summary_start(summary, number, run);
    if (is_end)
        summary_end(summary, number, run, line);
    if (pfw_json_equals(&line->name, "dropped_events") && summary_arg(line, "count", &told) && told > 0) {
        host->dropped += (uint64_t)told;
        summary_find(summary, PFW_FINDING_DROPPED, "host %s: %" PRId64 " events were dropped by the writer",
                     pfw_hosts_label(&summary->hosts, number), told);
    }
    if (pfw_json_equals(&line->name, "clock_step")) {
        host->clock_steps++;
        if (!summary_arg(line, "offset_us", &told))
            told = 0;
        summary_find(summary, PFW_FINDING_CLOCK,
                     "host %s: the wall clock was set; it is now %.3f s ahead of the time stamps",
                     pfw_hosts_label(&summary->hosts, number), (double)told / 1e6);
    }
}

/* A sample of a series: is it later than the last one, and how much? */
static int summary_on_sample(struct pfw_summary *summary, uint32_t number, struct pfw_summary_series *series,
                             const struct pfw_line *line, int64_t ns, struct error *err)
{
    struct pfw_summary_host *host = &summary->host_list[number];
    bool has_last = series->has_last && series->run == host->runs;
    int rc = 0;
    if (has_last && ns < series->last_ns)
        summary_find(summary, PFW_FINDING_BACKWARDS,
                     "host %s, series '%.*s': the time stamp %" PRId64 " is %.6f s before the last one",
                     pfw_hosts_label(&summary->hosts, number), summary_shown(&line->name), summary_words(&line->name),
                     line->ts.value, (double)pfw_moment_elapsed_ns(ns, series->last_ns) / 1e9);
    else if (has_last)
        rc = pfw_cadence_step(&host->cadence, pfw_moment_elapsed_ns(series->last_ns, ns), err);
    pfw_cadence_sample(&host->cadence, ns);
    series->last_ns = ns;
    series->has_last = true;
    series->run = host->runs;
    return rc;
}

int pfw_summary_add(struct pfw_summary *summary, const struct pfw_line *line, struct error *err)
{
    pfw_unit_observe(&summary->unit, line);
    uint32_t number;
    struct pfw_summary_series *series = NULL;
    struct pfw_summary_run *run = NULL;
    int rc = summary_host_of(summary, line, &number, err);
    if (rc == 0)
        rc = summary_series_of(summary, number, line, &series, err);
    if (rc == 0)
        rc = summary_run_of(summary, number, line, &run, err);
    if (rc < 0)
        return rc;
    struct pfw_summary_host *host = &summary->host_list[number];
    summary->events++;
    summary->phases[line->phase]++;
    summary_check_keys(summary, line);
    if (pfw_json_equals(&line->category, "dftracer"))
        summary_on_own(summary, number, run, line);
    host->events++;
    series->events++;
    run->events++;
    if (!line->ts.is_present)
        return 0;

    int64_t ns = pfw_unit_to_ns(summary->unit.unit, line->ts.value);
    host->first_ns = !host->has_time || ns < host->first_ns ? ns : host->first_ns;
    host->last_ns = !host->has_time || ns > host->last_ns ? ns : host->last_ns;
    host->has_time = true;
    if (line->phase == PFW_COUNTER || line->phase == PFW_AGGREGATED)
        rc = summary_on_sample(summary, number, series, line, ns, err);
    return rc;
}

/* ---- the whole ---- */

static void summary_finish_gaps(struct pfw_summary *summary, uint32_t number)
{
    const struct pfw_cadence *cadence = &summary->host_list[number].cadence;
    struct pfw_silence gaps[PFW_CADENCE_GAPS_MAX];
    double interval_s = pfw_cadence_interval_s(cadence);
    size_t count = pfw_cadence_gaps(cadence, interval_s, gaps);
    for (size_t i = 0; i < count; i++) {
        CLEANUP(buf_cleanup) struct buf from;
        buf_init(&from, SUMMARY_FINDING_MAX_BYTES);
        pfw_moment_local(gaps[i].from_ns, &from);
        summary_find(summary, PFW_FINDING_GAP, "host %s: no sample for %.3f s after %s; the interval is %.3f s",
                     pfw_hosts_label(&summary->hosts, number),
                     (double)pfw_moment_elapsed_ns(gaps[i].from_ns, gaps[i].to_ns) / 1e9, buf_string(&from),
                     interval_s);
    }
}

void pfw_summary_finish(struct pfw_summary *summary)
{
    /* Not as far as the names go: where memory was short, a table ends earlier. */
    for (uint32_t i = 0; i < summary->hosts.hashes.count && i < summary->host_capacity; i++) {
        const struct pfw_summary_host *host = &summary->host_list[i];
        const char *label = pfw_hosts_label(&summary->hosts, i);
        if (host->events == 0)
            continue; /* only named by another one's event */
        if (pfw_hosts_name(&summary->hosts, i) == NULL)
            summary_find(summary, PFW_FINDING_NO_NAME, "host %s: no \"HH\" event gives its name", label);
        if (host->runs == 0)
            summary_find(summary, PFW_FINDING_NO_START, "host %s: no start event", label);
        summary_finish_gaps(summary, i);
    }
    for (uint32_t i = 0; i < summary->runs.count && i < summary->run_capacity; i++) {
        if (!summary->run_list[i].is_open)
            continue;
        struct summary_run_key key;
        memcpy(&key, pfw_names_text(&summary->runs, i).at, sizeof key);
        summary_find(summary, PFW_FINDING_NO_END,
                     "host %s: the run of pid %" PRId64 " has no end event: its writer was killed, or still runs",
                     pfw_hosts_label(&summary->hosts, (uint32_t)key.host), key.pid);
    }
}

uint64_t pfw_summary_series_events(const struct pfw_summary *summary, uint32_t series)
{
    return summary->series_list[series].events;
}
