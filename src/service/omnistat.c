/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/omnistat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

enum { OMNISTAT_VALUE_DECIMALS = 9 };

enum omnistat_role { OMNISTAT_IGNORED, OMNISTAT_TIME, OMNISTAT_HOST, OMNISTAT_DEVICE, OMNISTAT_METRIC };

struct omnistat_column {
    enum omnistat_role role;
    char *name;
};

struct omnistat {
    struct omnistat_request request;
    struct omnistat_column columns[OMNISTAT_COLUMNS_MAX];
    size_t columns_count; /* 0: no header yet */
    uint64_t bad_rows;
    struct buf unquoted; /* memory for a field with quotes in it */
};

/* One row, as far as it has been read. */
struct omnistat_row {
    struct cursor fields[OMNISTAT_COLUMNS_MAX];
    size_t count;
    struct cursor time, host, device;
};

/*
 * Takes the next field. One in quotes may hold commas, and quotes by doubling them (RFC 4180); it is put together at
 * the end of `unquoted`, whose memory doesn't move: it was reserved for the whole line. False when it makes no sense.
 */
static bool omnistat_field(struct cursor *line, struct buf *unquoted, struct cursor *out_field)
{
    if (!cursor_accept(line, '"')) {
        const char *comma = memchr(line->at, ',', cursor_left(line));
        *out_field = (struct cursor){.at = line->at, .end = comma != NULL ? comma : line->end};
        line->at = out_field->end;
        return true;
    }
    size_t start = unquoted->length;
    for (;;) {
        const char *quote = memchr(line->at, '"', cursor_left(line));
        if (quote == NULL)
            return false;
        buf_bytes(unquoted, line->at, (size_t)(quote - line->at));
        line->at = quote + 1;
        if (!cursor_accept(line, '"'))
            break;
        buf_char(unquoted, '"');
    }
    const char *bytes = unquoted->data != NULL ? unquoted->data : "";
    *out_field = cursor_of(bytes + start, unquoted->length - start);
    return unquoted->status == 0 && (cursor_is_empty(line) || *line->at == ',');
}

static bool omnistat_split(struct omnistat *omnistat, struct cursor line, struct omnistat_row *out_row)
{
    buf_reset(&omnistat->unquoted);
    if (buf_reserve(&omnistat->unquoted, cursor_left(&line) + 1) == NULL)
        return false;
    out_row->count = 0;
    do {
        if (out_row->count == OMNISTAT_COLUMNS_MAX ||
            !omnistat_field(&line, &omnistat->unquoted, &out_row->fields[out_row->count]))
            return false;
        out_row->count++;
    } while (cursor_accept(&line, ','));
    return cursor_is_empty(&line);
}

/* Is `name` in a list of names separated by commas? */
static bool omnistat_is_listed(const char *list, const struct cursor *name)
{
    for (struct cursor left = cursor_of(list, strlen(list)); !cursor_is_empty(&left);) {
        const char *comma = memchr(left.at, ',', cursor_left(&left));
        struct cursor one = {.at = left.at, .end = comma != NULL ? comma : left.end};
        left.at = comma != NULL ? comma + 1 : left.end;
        cursor_skip_blanks(&one);
        while (!cursor_is_empty(&one) && one.end[-1] == ' ')
            one.end--;
        if (cursor_left(&one) == cursor_left(name) && memcmp(one.at, name->at, cursor_left(name)) == 0)
            return true;
    }
    return false;
}

static enum omnistat_role omnistat_role_of(const struct omnistat_request *request, const struct cursor *name)
{
    if (cursor_equals(name, request->time_column))
        return OMNISTAT_TIME;
    if (cursor_equals(name, "hostname"))
        return OMNISTAT_HOST;
    if (cursor_equals(name, "device_id"))
        return OMNISTAT_DEVICE;
    return request->has_all_counters || omnistat_is_listed(request->counters, name) ? OMNISTAT_METRIC
                                                                                    : OMNISTAT_IGNORED;
}

void omnistat_restart(struct omnistat *omnistat)
{
    for (size_t i = 0; i < omnistat->columns_count; i++)
        free(omnistat->columns[i].name);
    omnistat->columns_count = 0;
}

static int omnistat_header(struct omnistat *omnistat, const struct omnistat_row *row, struct error *err)
{
    size_t roles[OMNISTAT_METRIC + 1] = {0};
    for (size_t i = 0; i < row->count; i++) {
        char *name = strndup(row->fields[i].at, cursor_left(&row->fields[i]));
        if (name == NULL) {
            omnistat_restart(omnistat);
            return error_set(err, -ENOMEM, "no memory for the columns");
        }
        enum omnistat_role role = omnistat_role_of(&omnistat->request, &row->fields[i]);
        omnistat->columns[omnistat->columns_count++] = (struct omnistat_column){.role = role, .name = name};
        roles[role]++;
    }
    int rc = 0;
    if (roles[OMNISTAT_TIME] == 0)
        rc = error_set(err, -EINVAL, "there is no column '%s' (features.omnistat.timestamp_column)",
                       omnistat->request.time_column);
    else if (roles[OMNISTAT_METRIC] == 0)
        rc = error_set(err, -EINVAL,
                       "none of its columns is among features.omnistat.counters, and include_all_counters is false");
    if (rc < 0)
        omnistat_restart(omnistat);
    return rc;
}

/* How many nanoseconds a unit of the file's times has; AUTO tells it from the size: 1e11 s are the year 5138. */
static double omnistat_unit_ns(enum options_stamp stamp, double time)
{
    switch (stamp) {
    case OPTIONS_STAMP_SEC:
        return 1e9;
    case OPTIONS_STAMP_MS:
        return 1e6;
    case OPTIONS_STAMP_US:
        return 1e3;
    case OPTIONS_STAMP_NS:
        return 1;
    case OPTIONS_STAMP_AUTO:
        break;
    }
    if (time < 1e11)
        return 1e9;
    if (time < 1e14)
        return 1e6;
    return time < 1e17 ? 1e3 : 1;
}

/*
 * The instant in nanoseconds. The whole part is taken as an integer: a double has 53 bits, and the nanoseconds since
 * 1970 need 61.
 */
static bool omnistat_stamp(enum options_stamp stamp, struct cursor text, int64_t *out_stamp_ns)
{
    struct cursor whole_text = text;
    uint64_t whole;
    double time;
    cursor_skip_blanks(&whole_text);
    if (!cursor_double(&text, &time) || !cursor_is_empty(&text) || time < 0 || time >= 9e18)
        return false;
    double unit_ns = omnistat_unit_ns(stamp, time);
    if (time * unit_ns >= 9e18)
        return false;
    if (!cursor_u64(&whole_text, &whole) || (double)whole > time || time - (double)whole >= 1) {
        *out_stamp_ns = (int64_t)(time * unit_ns); /* written with an exponent */
        return true;
    }
    struct cursor fraction_text = whole_text;
    double fraction = 0;
    if (!cursor_is_empty(&fraction_text) && !cursor_double(&fraction_text, &fraction))
        fraction = 0; /* a point without digits */
    *out_stamp_ns = (int64_t)whole * (int64_t)unit_ns + (int64_t)(fraction * unit_ns);
    return true;
}

static void omnistat_text(struct buf *out, const char *key, const struct cursor *text)
{
    if (text->at != NULL)
        pfw_event_bytes(out, key, text->at, cursor_left(text));
}

static void omnistat_event(const struct omnistat *omnistat, const struct omnistat_row *row, size_t index, double value,
                           int64_t stamp_ns, struct buf *out)
{
    const char *name = omnistat->columns[index].name;
    pfw_event_begin(out, omnistat->request.source, PFW_COUNTER, name, strlen(name), "omnistat", PFW_TYPE_OMNISTAT,
                    options_time_of(omnistat->request.time, stamp_ns));
    pfw_event_text(out, "source", "omnistat");
    pfw_event_text(out, "metric", name);
    pfw_event_fixed(out, "value", value, OMNISTAT_VALUE_DECIMALS);
    omnistat_text(out, "hostname", &row->host);
    omnistat_text(out, "device_id", &row->device);
    omnistat_text(out, "original_timestamp", &row->time);
    pfw_event_end(out);
}

/* A field that is no number (empty, "nan") is a metric that wasn't measured then. */
static int omnistat_events(const struct omnistat *omnistat, const struct omnistat_row *row, int64_t stamp_ns,
                           struct buf *out)
{
    int events = 0;
    for (size_t i = 0; i < row->count && i < omnistat->columns_count; i++) {
        struct cursor text = row->fields[i];
        double value;
        if (omnistat->columns[i].role != OMNISTAT_METRIC || !cursor_double(&text, &value))
            continue;
        cursor_skip_blanks(&text);
        if (!cursor_is_empty(&text))
            continue;
        omnistat_event(omnistat, row, i, value, stamp_ns, out);
        events++;
    }
    return events;
}

int omnistat_new(const struct omnistat_request *request, struct omnistat **out_omnistat, struct error *err)
{
    struct omnistat *omnistat = calloc(1, sizeof *omnistat);
    if (omnistat == NULL)
        return error_set(err, -ENOMEM, "no memory for the table of omnistat");
    omnistat->request = *request;
    buf_init(&omnistat->unquoted, OMNISTAT_LINE_MAX_BYTES + 1);
    *out_omnistat = omnistat;
    return 0;
}

void omnistat_free(struct omnistat *omnistat)
{
    if (omnistat == NULL)
        return;
    omnistat_restart(omnistat);
    buf_fini(&omnistat->unquoted);
    free(omnistat);
}

int omnistat_line(struct omnistat *omnistat, struct cursor line, struct buf *out, struct error *err)
{
    while (!cursor_is_empty(&line) && line.end[-1] == '\r')
        line.end--;
    struct omnistat_row row = {.count = 0};
    bool is_table = cursor_left(&line) <= OMNISTAT_LINE_MAX_BYTES && omnistat_split(omnistat, line, &row);
    if (omnistat->columns_count == 0)
        return is_table ? omnistat_header(omnistat, &row, err)
                        : error_set(err, -EINVAL, "its first line is no line of column names");
    for (size_t i = 0; is_table && i < row.count && i < omnistat->columns_count; i++) {
        enum omnistat_role role = omnistat->columns[i].role;
        struct cursor *place = role == OMNISTAT_TIME     ? &row.time
                               : role == OMNISTAT_HOST   ? &row.host
                               : role == OMNISTAT_DEVICE ? &row.device
                                                         : NULL;
        if (place != NULL && place->at == NULL)
            *place = row.fields[i];
    }
    int64_t stamp_ns;
    if (!is_table || row.time.at == NULL || !omnistat_stamp(omnistat->request.stamp, row.time, &stamp_ns)) {
        omnistat->bad_rows++;
        return 0;
    }
    return omnistat_events(omnistat, &row, stamp_ns, out);
}

uint64_t omnistat_bad_rows(const struct omnistat *omnistat)
{
    return omnistat->bad_rows;
}
