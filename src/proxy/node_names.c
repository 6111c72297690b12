/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/node_names.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

/* A unit of a collector: what its columns call it, and what it becomes. */
struct node_unit {
    const char *unit;
    const char *suffixes[2]; /* of a column's name, taken off; NULL: none */
    const char *base;
    double scale; /* 0: ticks, which the machine knows */
};

static const struct node_unit node_units[] = {
    {"bytes", {"_bytes", NULL}, "bytes", 1},
    {"kB", {"_kb", NULL}, "bytes", 1024},
    {"ms", {"_ms", NULL}, "seconds", 1e-3},
    {"us", {"_total_us", "_us"}, "seconds", 1e-6},
    {"microseconds", {"_us", NULL}, "seconds", 1e-6},
    {"seconds", {"_seconds", NULL}, "seconds", 1},
    {"ticks", {NULL, NULL}, "seconds", 0},
    {"microjoules", {"_uj", NULL}, "joules", 1e-6},
    {"watts", {"_watts", NULL}, "watts", 1},
    {"kHz", {"_khz", NULL}, "hertz", 1e3},
    {"celsius", {"celsius", NULL}, "celsius", 1},
    {"%", {"_percent", NULL}, "ratio", 1e-2},
};

/* Which label names a collector's rows; those that are missing here have one row, or are called `name`. */
static const struct {
    const char *collector;
    const char *key;
} node_label_keys[] = {
    {"cpu", "cpu"},           {"disk", "device"},           {"network", "interface"},  {"frequency", "cpu"},
    {"pressure", "resource"}, {"filesystem", "mountpoint"}, {"temperature", "sensor"}, {"power", "sensor"},
    {"infiniband", "port"},
};

/* Parts of the kernel's names that Prometheus takes for units. */
static const struct {
    const char *name;
    const char *plain;
} node_plain_names[] = {{"SecPageTables", "SecondaryPageTables"}};

static const struct node_unit *node_unit_of(const struct sample_column *column)
{
    for (size_t i = 0; i < ARRAY_LENGTH(node_units); i++) {
        if (strcmp(node_units[i].unit, column->unit) == 0)
            return &node_units[i];
    }
    return NULL;
}

/* Length of the column's name without its unit; the unit may stand in front, too: "bytes_read". */
static size_t node_stem(const struct sample_column *column, const struct node_unit *unit, const char **out_stem)
{
    const char *stem = column->name;
    for (size_t i = 0; i < ARRAY_LENGTH(node_plain_names); i++) {
        if (strcmp(node_plain_names[i].name, stem) == 0)
            stem = node_plain_names[i].plain;
    }
    size_t bytes = strlen(stem);
    for (size_t i = 0; unit != NULL && i < ARRAY_LENGTH(unit->suffixes) && unit->suffixes[i] != NULL; i++) {
        size_t suffix_bytes = strlen(unit->suffixes[i]);
        if (bytes >= suffix_bytes && strcasecmp(stem + bytes - suffix_bytes, unit->suffixes[i]) == 0) {
            bytes -= suffix_bytes;
            break;
        }
    }
    static const char front[] = "bytes_";
    if (bytes > sizeof front - 1 && strncmp(stem, front, sizeof front - 1) == 0) {
        stem += sizeof front - 1;
        bytes -= sizeof front - 1;
    }
    *out_stem = stem;
    return bytes;
}

/* "MemTotal" becomes mem_total, "Active(anon)" active_anon, "HugePages_Total" huge_pages_total,
 * "DirectMap2M" direct_map2m. */
static void node_put_snake(const char *text, size_t bytes, struct buf *out)
{
    bool was_lower = false;
    bool was_gap = true;
    for (size_t i = 0; i < bytes; i++) {
        unsigned char character = (unsigned char)text[i];
        bool is_word = character < 0x80 && isalnum(character);
        if (!is_word) {
            was_lower = false;
            if (!was_gap && i + 1 < bytes)
                buf_char(out, '_');
            was_gap = true;
            continue;
        }
        bool is_upper = character >= 'A' && character <= 'Z';
        if (is_upper && was_lower)
            buf_char(out, '_');
        buf_char(out, (char)(is_upper ? character - 'A' + 'a' : character));
        was_lower = !is_upper && isalpha(character); /* DirectMap2M stays one word */
        was_gap = false;
    }
}

void node_names_family(const char *collector, const struct sample_column *column, struct buf *out, double *out_scale)
{
    const struct node_unit *unit = node_unit_of(column);
    const char *stem;
    size_t stem_bytes = node_stem(column, unit, &stem);
    buf_text(out, "cicada_node_");
    buf_text(out, collector);
    if (stem_bytes > 0)
        buf_char(out, '_');
    node_put_snake(stem, stem_bytes, out);
    *out_scale = 1;
    if (unit != NULL) {
        buf_char(out, '_');
        buf_text(out, unit->base);
        *out_scale = unit->scale > 0 ? unit->scale : 1.0 / (double)sysconf(_SC_CLK_TCK);
    }
    static const char total[] = "_total"; /* which only counters may end in */
    bool has_total = out->length >= sizeof total - 1 &&
                     memcmp(out->data + out->length - (sizeof total - 1), total, sizeof total - 1) == 0;
    if (column->kind == SAMPLE_COUNTER && !has_total)
        buf_text(out, total);
    if (column->kind != SAMPLE_COUNTER && has_total) {
        buf_truncate(out, out->length - (sizeof total - 1));
        buf_text(out, "_all");
    }
}

void node_names_escape(const char *text, struct buf *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            buf_text(out, "\\n");
            continue;
        }
        if (*text == '"' || *text == '\\')
            buf_char(out, '\\');
        buf_char(out, *text);
    }
}

static void node_put_label(const char *key, const char *value, bool *is_first, struct buf *out)
{
    buf_char(out, *is_first ? '{' : ',');
    *is_first = false;
    buf_text(out, key);
    buf_text(out, "=\"");
    node_names_escape(value, out);
    buf_char(out, '"');
}

void node_names_labels(const char *collector, const struct sample_row *row, const char *extra, struct buf *out)
{
    bool is_first = true;
    if (extra != NULL) {
        buf_char(out, '{');
        buf_text(out, extra);
        is_first = false;
    }
    const char *key = "name";
    for (size_t i = 0; i < ARRAY_LENGTH(node_label_keys); i++) {
        if (strcmp(node_label_keys[i].collector, collector) == 0)
            key = node_label_keys[i].key;
    }
    if (strcmp(row->name, collector) != 0)
        node_put_label(key, row->name, &is_first, out);
    if (row->group != NULL)
        node_put_label("group", row->group, &is_first, out);
    if (row->label != NULL)
        node_put_label(strcmp(collector, "filesystem") == 0 ? "device" : "label", row->label, &is_first, out);
    if (!is_first)
        buf_char(out, '}');
}
