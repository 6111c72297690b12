/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines of any bytes: what is taken for an event has its parts inside the line, and everything that counts, filters or
 * converts events can live with it; what the conversion writes is JSON again.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "pfw/filter.h"
#include "pfw/perfetto.h"
#include "pfw/stats.h"
#include "pfw/summary.h"

static void check_inside(const struct pfw_json *value, const char *text, size_t size)
{
    if (value->kind == PFW_JSON_NONE)
        return;
    assert(value->text.at >= text && value->text.at <= value->text.end && value->text.end <= text + size);
    CLEANUP(buf_cleanup) struct buf plain;
    buf_init(&plain, size + 1);
    if (value->kind == PFW_JSON_STRING)
        pfw_json_unescape(value, &plain);
    assert(plain.status == 0 && plain.length <= cursor_left(&value->text));
    const char *string = buf_string(&plain);
    if (value->kind == PFW_JSON_STRING && strlen(string) == plain.length)
        assert(pfw_json_equals(value, string));
}

static size_t check_members(const struct pfw_line *line, const char *text, size_t size)
{
    size_t members_count = 0;
    struct pfw_json key;
    struct pfw_json value;
    for (struct cursor members = pfw_members(&line->args); pfw_members_next(&members, &key, &value); members_count++) {
        check_inside(&key, text, size);
        check_inside(&value, text, size);
        assert(key.kind == PFW_JSON_STRING && value.kind != PFW_JSON_NONE);
    }
    return members_count;
}

static void check_perfetto(struct pfw_perfetto *perfetto, struct buf *json, const struct pfw_line *line)
{
    int rc = pfw_perfetto_add(perfetto, line, PFW_UNIT_NS, true, json, NULL);
    assert(rc == 0 && json->status == 0);
    struct cursor rest = cursor_of(json->data, json->length);
    for (struct cursor event; cursor_line(&rest, &event);) {
        if (cursor_left(&event) > 0 && event.end[-1] == ',')
            event.end--;
        struct pfw_line again;
        if (!cursor_is_empty(&event)) /* the first event has no comma before it, the others one on a line of its own */
            assert(pfw_line_parse(event.at, cursor_left(&event), &again, NULL) == 0);
    }
    buf_reset(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(pfw_summary_cleanup) struct pfw_summary summary;
    CLEANUP(pfw_stats_cleanup) struct pfw_stats stats;
    CLEANUP(pfw_filter_cleanup) struct pfw_filter filter;
    CLEANUP(pfw_perfetto_cleanup) struct pfw_perfetto perfetto;
    CLEANUP(pfw_args_cleanup) struct pfw_args args;
    CLEANUP(buf_cleanup) struct buf json;
    const struct pfw_filter_options options = {
        .name = "c*", .host = "[ab]*", .has_from = true, .from.is_relative = true};
    pfw_summary_init(&summary, NULL, NULL);
    pfw_stats_init(&stats);
    pfw_filter_init(&filter, &options);
    pfw_perfetto_init(&perfetto);
    pfw_args_init(&args);
    buf_init(&json, SIZE_MAX);

    struct cursor text = cursor_of((const char *)data, size);
    for (struct cursor bytes; cursor_line(&text, &bytes);) {
        struct pfw_line line;
        if (pfw_line_parse(bytes.at, cursor_left(&bytes), &line, NULL) < 0)
            continue;
        check_inside(&line.name, bytes.at, cursor_left(&bytes));
        check_inside(&line.category, bytes.at, cursor_left(&bytes));
        check_inside(&line.host_hash, bytes.at, cursor_left(&bytes));
        size_t members = check_members(&line, bytes.at, cursor_left(&bytes));
        bool is_wanted;
        int rc = pfw_args_read(&args, &line.args, NULL);
        assert(rc == 0 && args.count + args.duplicates == members);
        rc = pfw_summary_add(&summary, &line, NULL);
        assert(rc == 0);
        rc = pfw_stats_add(&stats, &line, NULL);
        assert(rc == 0);
        rc = pfw_filter_add(&filter, &line, &is_wanted, NULL);
        assert(rc == 0);
        check_perfetto(&perfetto, &json, &line);
    }
    pfw_summary_finish(&summary);
    return 0;
}
