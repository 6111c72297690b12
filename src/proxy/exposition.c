/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/exposition.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "util/cursor.h"

static const char exposition_total[] = "_total";
static const char exposition_openmetrics_type[] = "application/openmetrics-text";
static const char exposition_text_type[] = "text/plain";

/* ---- which form ---- */

/* The q of one item of an Accept header: 1 when it has none, 0 when it makes no sense. */
static double exposition_quality(struct cursor item)
{
    double quality = 1;
    while (!cursor_is_empty(&item)) {
        if (!cursor_accept(&item, ';')) {
            item.at++;
            continue;
        }
        cursor_skip_blanks(&item);
        if (cursor_accept_text(&item, "q=") && !cursor_double(&item, &quality))
            return 0;
    }
    return quality;
}

enum exposition_form exposition_choose(const char *accept)
{
    double openmetrics = 0;
    double text = 0;
    struct cursor rest = cursor_of(accept, accept != NULL ? strlen(accept) : 0);
    while (!cursor_is_empty(&rest)) {
        const char *comma = memchr(rest.at, ',', cursor_left(&rest));
        struct cursor item = {.at = rest.at, .end = comma != NULL ? comma : rest.end};
        rest.at = comma != NULL ? comma + 1 : rest.end;
        cursor_skip_blanks(&item);
        size_t left = cursor_left(&item);
        double quality = exposition_quality(item);
        if (left >= strlen(exposition_openmetrics_type) &&
            strncasecmp(item.at, exposition_openmetrics_type, strlen(exposition_openmetrics_type)) == 0)
            openmetrics = quality > openmetrics ? quality : openmetrics;
        else if (left >= strlen(exposition_text_type) &&
                 strncasecmp(item.at, exposition_text_type, strlen(exposition_text_type)) == 0)
            text = quality > text ? quality : text;
    }
    return openmetrics > 0 && openmetrics >= text ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT;
}

const char *exposition_content_type(enum exposition_form form)
{
    return form == EXPOSITION_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                          : "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- families ---- */

struct exposition_family {
    const char *name; /* not NUL-terminated */
    size_t bytes;
    const char *type;
    bool is_total; /* OpenMetrics: a counter, whose family is the name without _total */
};

static bool exposition_is_same_family(const char *name, const char *family, size_t bytes)
{
    return strncmp(name, family, bytes) == 0 && (name[bytes] == '\0' || name[bytes] == '{');
}

static bool exposition_ends_in_total(const char *name, size_t bytes)
{
    size_t total = strlen(exposition_total);
    return bytes > total && memcmp(name + bytes - total, exposition_total, total) == 0;
}

/* Is there another family of that name? */
static bool exposition_has_family(struct registry *reg, const char *name, size_t bytes)
{
    char family[METRIC_NAME_MAX_BYTES + 1];
    (void)snprintf(family, sizeof family, "%.*s", (int)bytes, name); /* names are no longer */
    struct metric *const *sorted = registry_sorted(reg);
    if (registry_find(reg, family, bytes) != NULL)
        return true;
    size_t index = registry_sorted_after(reg, family);
    return sorted != NULL && index < registry_count(reg) &&
           exposition_is_same_family(sorted[index]->name, family, bytes);
}

static struct exposition_family exposition_family_of(enum exposition_form form, const char *name, enum metric_kind kind,
                                                     bool is_mixed)
{
    struct exposition_family family = {.name = name, .bytes = metric_name_family_bytes(name)};
    family.is_total = form == EXPOSITION_OPENMETRICS && kind == METRIC_COUNTER && !is_mixed &&
                      exposition_ends_in_total(name, family.bytes);
    if (is_mixed || (form == EXPOSITION_OPENMETRICS && kind == METRIC_COUNTER && !family.is_total))
        family.type = form == EXPOSITION_OPENMETRICS ? "unknown" : "untyped";
    else
        family.type = kind == METRIC_COUNTER ? "counter" : "gauge";
    return family;
}

static void exposition_put_doc(enum exposition_form form, const char *doc, struct buf *out)
{
    for (; *doc != '\0'; doc++) {
        if (*doc == '\\')
            buf_text(out, "\\\\");
        else if (*doc == '\n')
            buf_text(out, "\\n");
        else if (*doc == '"' && form == EXPOSITION_OPENMETRICS)
            buf_text(out, "\\\"");
        else
            buf_char(out, *doc);
    }
}

static void exposition_put_head(enum exposition_form form, const struct exposition_family *family, const char *doc,
                                struct buf *out)
{
    size_t bytes = family->is_total ? family->bytes - strlen(exposition_total) : family->bytes;
    if (doc[0] != '\0') {
        buf_text(out, "# HELP ");
        buf_bytes(out, family->name, bytes);
        buf_char(out, ' ');
        exposition_put_doc(form, doc, out);
        buf_char(out, '\n');
    }
    buf_text(out, "# TYPE ");
    buf_bytes(out, family->name, bytes);
    buf_printf(out, " %s\n", family->type);
}

static void exposition_put_value(const char *name, double value, struct buf *out)
{
    buf_text(out, name);
    buf_char(out, ' ');
    buf_double(out, value);
    buf_char(out, '\n');
}

/* Begins the family of sorted[index]: its type is that of all its metrics. */
static void exposition_begin_family(enum exposition_form form, struct registry *reg, size_t index, struct buf *out)
{
    struct metric *const *sorted = registry_sorted(reg);
    const char *name = sorted[index]->name;
    enum metric_kind kind = sorted[index]->value.kind;
    const char *doc = sorted[index]->doc;
    size_t bytes = metric_name_family_bytes(name);
    bool is_mixed = false;
    for (size_t i = index + 1; i < registry_count(reg); i++) {
        if (!exposition_is_same_family(sorted[i]->name, name, bytes))
            break;
        is_mixed = is_mixed || sorted[i]->value.kind != kind;
        if (doc[0] == '\0')
            doc = sorted[i]->doc;
    }
    struct exposition_family family = exposition_family_of(form, name, kind, is_mixed);
    if (family.is_total && exposition_has_family(reg, name, bytes - strlen(exposition_total))) {
        family.is_total = false;
        family.type = "unknown";
    }
    exposition_put_head(form, &family, doc, out);
}

bool exposition_append(struct exposition *exposition, struct registry *reg, size_t bytes_enough, struct buf *out)
{
    struct metric *const *sorted = registry_sorted(reg);
    if (sorted == NULL)
        return false;
    size_t index = registry_sorted_after(reg, exposition->last);
    const char *before = exposition->last;
    for (; index < registry_count(reg) && out->length < bytes_enough && out->status == 0; index++) {
        const struct metric *metric = sorted[index];
        size_t bytes = metric_name_family_bytes(metric->name);
        bool is_same = metric_name_family_bytes(before) == bytes && memcmp(before, metric->name, bytes) == 0;
        if (!is_same)
            exposition_begin_family(exposition->form, reg, index, out);
        exposition_put_value(metric->name, metric_shown(&metric->value), out);
        before = metric->name;
    }
    if (before != exposition->last)
        (void)snprintf(exposition->last, sizeof exposition->last, "%s", before); /* names are no longer */
    return index < registry_count(reg) && out->status == 0;
}

void exposition_one(enum exposition_form form, const char *name, enum metric_kind kind, const char *doc, double value,
                    struct buf *out)
{
    struct exposition_family family = exposition_family_of(form, name, kind, false);
    exposition_put_head(form, &family, doc, out);
    exposition_put_value(name, value, out);
}

void exposition_end(enum exposition_form form, struct buf *out)
{
    if (form == EXPOSITION_OPENMETRICS)
        buf_text(out, "# EOF\n");
}
