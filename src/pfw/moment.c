/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/moment.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/cursor.h"

enum { MOMENT_FRACTION_DIGITS = 9 };

/* Seconds rounded down and the nanoseconds after them, also before 1970. */
static void moment_split(int64_t ns, time_t *out_seconds, int64_t *out_rest_ns)
{
    int64_t seconds = ns / CLOCK_NS_PER_SECOND;
    int64_t rest = ns % CLOCK_NS_PER_SECOND;
    if (rest < 0) {
        rest += CLOCK_NS_PER_SECOND;
        seconds--;
    }
    *out_seconds = seconds;
    *out_rest_ns = rest;
}

void pfw_moment_local(int64_t ns, struct buf *out)
{
    time_t seconds;
    int64_t rest;
    moment_split(ns, &seconds, &rest);
    struct tm parts = {0};
    char text[64] = "";
    char zone[16] = "";
    (void)localtime_r(&seconds, &parts); /* fails only for years that 64 bits of nanoseconds don't reach */
    (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
    (void)strftime(zone, sizeof zone, "%z", &parts);
    buf_printf(out, "%s.%03d %s", text, (int)(rest / CLOCK_NS_PER_MS), zone);
}

void pfw_moment_utc(int64_t ns, struct buf *out)
{
    time_t seconds;
    int64_t rest;
    moment_split(ns, &seconds, &rest);
    struct tm parts = {0};
    char text[64] = "";
    (void)gmtime_r(&seconds, &parts); /* as above */
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    buf_printf(out, "%s.%09dZ", text, (int)rest);
}

void pfw_moment_duration(int64_t ns, struct buf *out)
{
    static const struct {
        const char *unit;
        const char *smaller_unit;
        int64_t seconds;
        int64_t smaller_seconds;
    } large[] = {{"d", "h", 86400, 3600}, {"h", "min", 3600, 60}, {"min", "s", 60, 1}};
    static const struct {
        const char *unit;
        int64_t ns;
    } small[] = {{"s", CLOCK_NS_PER_SECOND}, {"ms", CLOCK_NS_PER_MS}, {"us", CLOCK_NS_PER_US}, {"ns", 1}};

    int64_t seconds = ns / CLOCK_NS_PER_SECOND;
    for (size_t i = 0; i < ARRAY_LENGTH(large); i++) {
        if (seconds < large[i].seconds)
            continue;
        buf_printf(out, "%" PRId64 " %s", seconds / large[i].seconds, large[i].unit);
        int64_t smaller = seconds % large[i].seconds / large[i].smaller_seconds;
        if (smaller > 0)
            buf_printf(out, " %" PRId64 " %s", smaller, large[i].smaller_unit);
        return;
    }
    size_t unit = 0;
    while (unit + 1 < ARRAY_LENGTH(small) && ns < small[unit].ns)
        unit++;
    double value = (double)ns / (double)small[unit].ns;
    buf_fixed(out, value, value < 10 ? 3 : value < 100 ? 2 : 1);
    buf_printf(out, " %s", small[unit].unit);
}

/* ---- reading ---- */

/* Exactly `digits` digits. */
static bool moment_digits(struct cursor *text, int digits, int *out_number)
{
    struct cursor ahead = *text;
    int number = 0;
    for (int i = 0; i < digits; i++) {
        if (cursor_is_empty(&ahead) || *ahead.at < '0' || *ahead.at > '9')
            return false;
        number = number * 10 + (*ahead.at++ - '0');
    }
    *text = ahead;
    *out_number = number;
    return true;
}

/* ".5" in nanoseconds; nothing is 0. What comes after nine digits is passed over. */
static bool moment_fraction(struct cursor *text, int64_t *out_ns)
{
    *out_ns = 0;
    if (!cursor_accept(text, '.'))
        return true;
    int64_t ns = 0;
    int digits = 0;
    for (; !cursor_is_empty(text) && *text->at >= '0' && *text->at <= '9'; text->at++, digits++) {
        if (digits < MOMENT_FRACTION_DIGITS)
            ns = ns * 10 + (*text->at - '0');
    }
    for (int i = digits; i < MOMENT_FRACTION_DIGITS; i++)
        ns *= 10;
    *out_ns = ns;
    return digits > 0;
}

/* "12.5" in nanoseconds, exactly. */
static bool moment_seconds(struct cursor *text, int64_t *out_ns)
{
    uint64_t seconds;
    int64_t fraction;
    int64_t ns;
    if (cursor_is_empty(text) || *text->at < '0' || *text->at > '9' || !cursor_u64(text, &seconds) ||
        !moment_fraction(text, &fraction))
        return false;
    if (seconds > INT64_MAX / CLOCK_NS_PER_SECOND ||
        __builtin_add_overflow((int64_t)seconds * CLOCK_NS_PER_SECOND, fraction, &ns))
        return false;
    *out_ns = ns;
    return true;
}

static bool moment_relative(struct cursor text, int64_t *out_ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"", 1e9},     {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},   {"ns", 1},
                 {"min", 60e9}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
    double number;
    if (cursor_is_empty(&text) || !cursor_double(&text, &number) || number < 0)
        return false;
    cursor_skip_blanks(&text);
    for (size_t i = 0; i < ARRAY_LENGTH(units); i++) {
        double ns = number * units[i].ns;
        if (!cursor_equals(&text, units[i].unit) || ns >= 0x1p62)
            continue;
        *out_ns = (int64_t)ns;
        return true;
    }
    return false;
}

/* "Z", "+01:00", "-0500"; nothing means local time. */
static bool moment_zone(struct cursor *text, bool *out_is_local, int *out_east_seconds)
{
    *out_is_local = cursor_is_empty(text);
    *out_east_seconds = 0;
    if (*out_is_local || cursor_accept(text, 'Z'))
        return true;
    bool is_west = cursor_accept(text, '-');
    int hours;
    int minutes;
    if ((!is_west && !cursor_accept(text, '+')) || !moment_digits(text, 2, &hours))
        return false;
    (void)cursor_accept(text, ':');
    if (!moment_digits(text, 2, &minutes))
        return false;
    *out_east_seconds = (hours * 60 + minutes) * 60 * (is_west ? -1 : 1);
    return true;
}

static bool moment_clock(struct cursor *text, struct tm *out_parts, int64_t *out_fraction_ns)
{
    if (!moment_digits(text, 2, &out_parts->tm_hour) || !cursor_accept(text, ':') ||
        !moment_digits(text, 2, &out_parts->tm_min))
        return false;
    if (!cursor_accept(text, ':'))
        return true;
    return moment_digits(text, 2, &out_parts->tm_sec) && moment_fraction(text, out_fraction_ns);
}

static bool moment_date(struct cursor text, int64_t *out_ns)
{
    struct tm parts = {.tm_isdst = -1};
    int64_t fraction_ns = 0;
    if (!moment_digits(&text, 4, &parts.tm_year) || !cursor_accept(&text, '-') ||
        !moment_digits(&text, 2, &parts.tm_mon) || !cursor_accept(&text, '-') ||
        !moment_digits(&text, 2, &parts.tm_mday))
        return false;
    bool has_clock = cursor_accept(&text, 'T') || cursor_accept(&text, ' ');
    if (has_clock && !moment_clock(&text, &parts, &fraction_ns))
        return false;
    cursor_skip_blanks(&text);
    bool is_local;
    int east_seconds;
    if (!moment_zone(&text, &is_local, &east_seconds) || !cursor_is_empty(&text))
        return false;
    if (parts.tm_mon < 1 || parts.tm_mon > 12 || parts.tm_mday < 1 || parts.tm_mday > 31 || parts.tm_hour > 23 ||
        parts.tm_min > 59 || parts.tm_sec > 60 || parts.tm_year > 2261)
        return false; /* 2262 is where 64 bits of nanoseconds end */
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    int day = parts.tm_mday;
    int64_t seconds = is_local ? mktime(&parts) : timegm(&parts);
    if (parts.tm_mday != day)
        return false; /* the 31st of a month that has none */
    seconds -= east_seconds;
    *out_ns = seconds * CLOCK_NS_PER_SECOND + fraction_ns;
    return true;
}

int pfw_moment_parse(const char *text, struct pfw_moment *out_moment, struct error *err)
{
    struct cursor rest = cursor_of(text, strlen(text));
    struct pfw_moment moment = {.is_relative = cursor_accept(&rest, '+')};
    struct cursor seconds = rest;
    bool is_good = moment.is_relative ? moment_relative(rest, &moment.ns)
                                      : moment_date(rest, &moment.ns) ||
                                            (moment_seconds(&seconds, &moment.ns) && cursor_is_empty(&seconds));
    if (!is_good)
        return error_set(
            err, -EINVAL,
            "'%s' is no time; write seconds since 1970 (1796098782.5), a date (2026-12-01T04:16:14, with Z "
            "or +01:00 if it is not local), or a time from the start (+5s, +1.5min)",
            text);
    *out_moment = moment;
    return 0;
}
