/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The formats are those of "Exposition formats" in Prometheus' documentation and of the OpenMetrics 1.0 specification.
 * Where they differ in what is allowed, both are read: only the unit of a time depends on the format.
 */
#include "metric/exposition_parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Families past memory are refused; uthash would end the process. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "metric/name.h"
#include "util/buf.h"
#include "util/cursor.h"
#include "util/utf8.h"

/* What HELP and TYPE said of a name. */
struct parse_family {
    enum exposition_type type;
    bool has_type, has_doc;
    char *doc; /* NULL: none */
    UT_hash_handle hh;
    char name[]; /* without NUL */
};

struct parse {
    const struct exposition_parse_config *config;
    struct exposition_parse_report *report;
    struct parse_family *families; /* hash by name */
    size_t families_count;
    struct buf name;
    size_t line; /* from 1 */
    bool is_out_of_memory;
};

static bool parse_is_letter(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') || character == '_';
}

static bool parse_is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* Says what is wrong with a line; always false. */
static bool parse_refuse(struct parse *parse, const char *why)
{
    struct exposition_parse_report *report = parse->report;
    if (report->lines_bad++ == 0) {
        report->first_bad_line = parse->line;
        (void)error_set(&report->first_err, -EINVAL, "line %zu: %s", parse->line, why);
    }
    return false;
}

/* Takes a name, or with `has_colon` false a label's key. */
static bool parse_word(struct cursor *text, bool has_colon, struct cursor *out_word)
{
    const char *start = text->at;
    while (!cursor_is_empty(text) && (parse_is_letter(*text->at) || (has_colon && *text->at == ':') ||
                                      (text->at > start && parse_is_digit(*text->at))))
        text->at++;
    *out_word = (struct cursor){.at = start, .end = text->at};
    return text->at > start;
}

/* Takes what is up to the next blank. */
static struct cursor parse_token(struct cursor *text)
{
    cursor_skip_blanks(text);
    const char *start = text->at;
    while (!cursor_is_empty(text) && *text->at != ' ' && *text->at != '\t')
        text->at++;
    return (struct cursor){.at = start, .end = text->at};
}

static bool parse_number(struct cursor token, double *out_number)
{
    struct cursor rest = token;
    bool is_negative = !cursor_is_empty(&rest) && *rest.at == '-';
    if (is_negative || (!cursor_is_empty(&rest) && *rest.at == '+'))
        rest.at++;
    if (cursor_equals_any_case(&rest, "inf") || cursor_equals_any_case(&rest, "infinity")) {
        *out_number = is_negative ? -INFINITY : INFINITY;
        return true;
    }
    if (cursor_equals_any_case(&token, "nan")) {
        *out_number = NAN;
        return true;
    }
    return cursor_double(&token, out_number) && cursor_is_empty(&token);
}

/* A time to microseconds: 0.0.4 has whole milliseconds, OpenMetrics seconds. */
static bool parse_time(const struct parse *parse, struct cursor token, int64_t *out_wall_us)
{
    static const double limit_us = 9e18; /* below 2^63 */
    if (!parse->config->is_openmetrics) {
        int64_t wall_ms;
        return cursor_i64(&token, &wall_ms) && cursor_is_empty(&token) &&
               !__builtin_mul_overflow(wall_ms, INT64_C(1000), out_wall_us);
    }
    double seconds;
    if (!cursor_double(&token, &seconds) || !cursor_is_empty(&token) || fabs(seconds * 1e6) > limit_us)
        return false;
    *out_wall_us = (int64_t)(seconds * 1e6);
    return true;
}

/* Takes "…" with its quotes. */
static bool parse_quoted(struct cursor *text, struct cursor *out_value)
{
    if (!cursor_accept(text, '"'))
        return false;
    const char *start = text->at;
    while (!cursor_is_empty(text) && *text->at != '"')
        text->at += *text->at == '\\' && cursor_left(text) > 1 ? 2 : 1;
    *out_value = (struct cursor){.at = start, .end = text->at};
    return cursor_accept(text, '"');
}

static bool parse_has_key(const struct cursor *keys, size_t count, const struct cursor *key)
{
    size_t bytes = cursor_left(key);
    for (size_t i = 0; i < count; i++) {
        if (cursor_left(&keys[i]) == bytes && memcmp(keys[i].at, key->at, bytes) == 0)
            return true;
    }
    return false;
}

/* Takes {key="value",…}; what it says is appended to `out`, without blanks. NULL, or what is wrong. */
static const char *parse_labels(struct cursor *text, struct buf *out)
{
    struct cursor keys[METRIC_LABELS_MAX];
    size_t count = 0;
    text->at++; /* the brace */
    for (;; count++) {
        struct cursor value;
        cursor_skip_blanks(text);
        if (cursor_accept(text, '}'))
            break;
        if (count == METRIC_LABELS_MAX)
            return "too many labels";
        if (!parse_word(text, false, &keys[count]))
            return "a label's name is missing or has characters that are not allowed";
        cursor_skip_blanks(text);
        bool has_equals = cursor_accept(text, '=');
        cursor_skip_blanks(text);
        if (!has_equals || !parse_quoted(text, &value))
            return "a label without a quoted value";
        if (parse_has_key(keys, count, &keys[count]))
            return "two labels of one name";
        buf_char(out, count == 0 ? '{' : ',');
        buf_bytes(out, keys[count].at, cursor_left(&keys[count]));
        buf_text(out, "=\"");
        buf_bytes(out, value.at, cursor_left(&value));
        buf_char(out, '"');
        cursor_skip_blanks(text);
        if (!cursor_accept(text, ',') && (cursor_is_empty(text) || *text->at != '}'))
            return "labels without a comma between them, or without an end";
    }
    if (count > 0)
        buf_char(out, '}');
    return NULL;
}

static struct parse_family *parse_find_family(const struct parse *parse, const char *name, size_t bytes)
{
    struct parse_family *family;
    HASH_FIND(hh, parse->families, name, bytes, family);
    return family;
}

/* The family, new if it isn't there; NULL past the limit or without memory. */
static struct parse_family *parse_add_family(struct parse *parse, const struct cursor *name)
{
    size_t bytes = cursor_left(name);
    struct parse_family *family = parse_find_family(parse, name->at, bytes);
    if (family != NULL || parse->families_count == EXPOSITION_PARSE_FAMILIES_MAX)
        return family;
    family = calloc(1, sizeof *family + bytes);
    if (family != NULL) {
        memcpy(family->name, name->at, bytes);
        HASH_ADD_KEYPTR(hh, parse->families, family->name, bytes, family);
    }
    if (family == NULL || family->hh.tbl == NULL) {
        parse->is_out_of_memory = true;
        free(family);
        return NULL;
    }
    parse->families_count++;
    return family;
}

static const struct {
    const char *word;
    enum exposition_type type;
} parse_types[] = {
    {"counter", EXPOSITION_COUNTER}, {"gauge", EXPOSITION_GAUGE},       {"histogram", EXPOSITION_HISTOGRAM},
    {"summary", EXPOSITION_SUMMARY}, {"untyped", EXPOSITION_UNKNOWN},   {"unknown", EXPOSITION_UNKNOWN},
    {"info", EXPOSITION_INFO},       {"stateset", EXPOSITION_STATESET}, {"gaugehistogram", EXPOSITION_GAUGE_HISTOGRAM},
};

static bool parse_type(struct parse *parse, struct parse_family *family, struct cursor rest)
{
    struct cursor word = parse_token(&rest);
    cursor_skip_blanks(&rest);
    if (!cursor_is_empty(&rest))
        return parse_refuse(parse, "a TYPE with more than one word");
    for (size_t i = 0; i < ARRAY_LENGTH(parse_types); i++) {
        if (!cursor_equals(&word, parse_types[i].word))
            continue;
        if (family != NULL && family->has_type && family->type != parse_types[i].type)
            return parse_refuse(parse, "a second TYPE of one name");
        if (family != NULL) {
            family->has_type = true;
            family->type = parse_types[i].type;
        }
        return true;
    }
    return parse_refuse(parse, "a TYPE that is not known");
}

/* The text of a HELP, its escapes taken off. */
static bool parse_help(struct parse *parse, struct parse_family *family, struct cursor rest)
{
    if (family == NULL)
        return true;
    if (family->has_doc)
        return parse_refuse(parse, "a second HELP of one name");
    CLEANUP(buf_cleanup) struct buf doc;
    buf_init(&doc, EXPOSITION_PARSE_DOC_MAX_BYTES);
    for (; !cursor_is_empty(&rest) && doc.length < EXPOSITION_PARSE_DOC_MAX_BYTES; rest.at++) {
        if (*rest.at == '\\' && cursor_left(&rest) > 1)
            buf_char(&doc, *++rest.at == 'n' ? '\n' : *rest.at);
        else
            buf_char(&doc, *rest.at);
    }
    family->doc = strdup(buf_string(&doc));
    family->has_doc = true;
    if (family->doc == NULL || buf_status(&doc, NULL) < 0)
        parse->is_out_of_memory = true;
    else
        family->doc[utf8_clean_line(family->doc, strlen(family->doc))] = '\0';
    return true;
}

/* A line that begins with '#', which is taken already. */
static bool parse_comment(struct parse *parse, struct cursor line)
{
    cursor_skip_blanks(&line);
    struct cursor word = parse_token(&line);
    bool is_help = cursor_equals(&word, "HELP");
    bool is_unit = cursor_equals(&word, "UNIT");
    if (cursor_equals(&word, "EOF")) {
        cursor_skip_blanks(&line);
        parse->report->has_eof = cursor_is_empty(&line);
        return true;
    }
    if (!is_help && !is_unit && !cursor_equals(&word, "TYPE"))
        return true;
    struct cursor name;
    cursor_skip_blanks(&line);
    if (!parse_word(&line, true, &name) || (!cursor_is_empty(&line) && *line.at != ' ' && *line.at != '\t'))
        return parse_refuse(parse, "a HELP, TYPE or UNIT of no legal name");
    if (is_unit)
        return true; /* the unit is part of the name */
    struct parse_family *family = parse_add_family(parse, &name);
    if (!is_help)
        return parse_type(parse, family, line);
    if (!cursor_is_empty(&line))
        line.at++; /* one blank; more belong to the text */
    return parse_help(parse, family, line);
}

/* The endings that the samples of a family may have, and whether such a sample only grows. */
static const struct {
    const char *ending;
    enum exposition_type type;
    enum metric_kind kind;
} parse_endings[] = {
    {"", EXPOSITION_COUNTER, METRIC_COUNTER},
    {"_total", EXPOSITION_COUNTER, METRIC_COUNTER},
    {"_created", EXPOSITION_COUNTER, METRIC_GAUGE},
    {"_bucket", EXPOSITION_HISTOGRAM, METRIC_COUNTER},
    {"_count", EXPOSITION_HISTOGRAM, METRIC_COUNTER},
    {"_sum", EXPOSITION_HISTOGRAM, METRIC_COUNTER},
    {"_created", EXPOSITION_HISTOGRAM, METRIC_GAUGE},
    {"", EXPOSITION_SUMMARY, METRIC_GAUGE},
    {"_count", EXPOSITION_SUMMARY, METRIC_COUNTER},
    {"_sum", EXPOSITION_SUMMARY, METRIC_COUNTER},
    {"_created", EXPOSITION_SUMMARY, METRIC_GAUGE},
    {"", EXPOSITION_GAUGE, METRIC_GAUGE},
    {"", EXPOSITION_STATESET, METRIC_GAUGE},
    {"_info", EXPOSITION_INFO, METRIC_GAUGE},
    {"_bucket", EXPOSITION_GAUGE_HISTOGRAM, METRIC_GAUGE},
    {"_gcount", EXPOSITION_GAUGE_HISTOGRAM, METRIC_GAUGE},
    {"_gsum", EXPOSITION_GAUGE_HISTOGRAM, METRIC_GAUGE},
};

static bool parse_ends_with(const struct cursor *name, const char *ending)
{
    size_t bytes = strlen(ending);
    return cursor_left(name) > bytes && memcmp(name->end - bytes, ending, bytes) == 0;
}

/* Finds the family that a sample is of, by its name without one of the endings that the family's type has. */
static const struct parse_family *parse_family_of(const struct parse *parse, const struct cursor *name,
                                                  enum metric_kind *out_kind)
{
    const struct parse_family *exact = parse_find_family(parse, name->at, cursor_left(name));
    *out_kind = METRIC_GAUGE;
    for (size_t i = 0; i < ARRAY_LENGTH(parse_endings); i++) {
        if (!parse_ends_with(name, parse_endings[i].ending))
            continue;
        size_t bytes = cursor_left(name) - strlen(parse_endings[i].ending);
        const struct parse_family *family =
            bytes == cursor_left(name) ? exact : parse_find_family(parse, name->at, bytes);
        if (family == NULL || !family->has_type || family->type != parse_endings[i].type)
            continue;
        *out_kind = parse_endings[i].kind;
        return family;
    }
    if ((exact == NULL || !exact->has_type) && parse_ends_with(name, "_total"))
        *out_kind = METRIC_COUNTER; /* nobody says so, but its name does */
    return exact;
}

static void parse_emit(struct parse *parse, const struct cursor *name, double value, int64_t wall_us)
{
    if (parse->report->samples == parse->config->samples_max) {
        parse->report->samples_refused++;
        return;
    }
    struct exposition_sample sample = {.value = value, .wall_us = wall_us};
    const struct parse_family *family = parse_family_of(parse, name, &sample.kind);
    sample.type = family != NULL ? family->type : EXPOSITION_UNKNOWN;
    sample.doc = family != NULL && family->doc != NULL ? family->doc : "";
    sample.name = buf_string(&parse->name);
    sample.name_bytes = parse->name.length;
    parse->report->samples++;
    parse->config->on_sample(parse->config->context, &sample);
}

/* What may follow a value: a time, an exemplar. Exemplars are checked and passed over. NULL, or what is wrong. */
static const char *parse_tail(const struct parse *parse, struct cursor *line, int64_t *out_wall_us)
{
    cursor_skip_blanks(line);
    if (!cursor_is_empty(line) && *line->at != '#' && !parse_time(parse, parse_token(line), out_wall_us))
        return "a time that is none";
    cursor_skip_blanks(line);
    if (cursor_is_empty(line))
        return NULL;
    if (!cursor_accept(line, '#'))
        return "more after the time";
    cursor_skip_blanks(line);
    if (cursor_is_empty(line) || *line->at != '{')
        return "an exemplar without labels";
    CLEANUP(buf_cleanup) struct buf labels;
    buf_init(&labels, EXPOSITION_PARSE_LINE_MAX_BYTES);
    const char *fault = parse_labels(line, &labels);
    double number;
    if (fault != NULL || !parse_number(parse_token(line), &number))
        return fault != NULL ? fault : "an exemplar without a value";
    struct cursor time = parse_token(line);
    cursor_skip_blanks(line);
    bool is_good = cursor_is_empty(line) && (cursor_is_empty(&time) || parse_number(time, &number));
    return is_good ? NULL : "an exemplar with a time that is none";
}

static bool parse_sample(struct parse *parse, struct cursor line)
{
    struct cursor name;
    if (!parse_word(&line, true, &name))
        return parse_refuse(parse, "no legal name at its beginning");
    buf_reset(&parse->name);
    buf_bytes(&parse->name, name.at, cursor_left(&name));
    const char *after_name = line.at;
    cursor_skip_blanks(&line);
    bool has_labels = !cursor_is_empty(&line) && *line.at == '{';
    const char *fault = has_labels ? parse_labels(&line, &parse->name) : NULL;
    if (fault != NULL)
        return parse_refuse(parse, fault);
    double value;
    int64_t wall_us = 0;
    if ((!has_labels && line.at == after_name) || !parse_number(parse_token(&line), &value))
        return parse_refuse(parse, "no number after the name");
    fault = parse_tail(parse, &line, &wall_us);
    if (fault != NULL)
        return parse_refuse(parse, fault);
    if (buf_status(&parse->name, NULL) < 0) {
        parse->is_out_of_memory = true;
        return false;
    }
    parse_emit(parse, &name, value, wall_us);
    return true;
}

static void parse_line(struct parse *parse, struct cursor line)
{
    if (!cursor_is_empty(&line) && line.end[-1] == '\r')
        line.end--;
    cursor_skip_blanks(&line);
    if (cursor_is_empty(&line))
        return;
    if (parse->config->is_openmetrics && parse->report->has_eof)
        (void)parse_refuse(parse, "more after '# EOF'");
    else if (cursor_left(&line) > EXPOSITION_PARSE_LINE_MAX_BYTES)
        (void)parse_refuse(parse, "too long");
    else if (memchr(line.at, '\0', cursor_left(&line)) != NULL)
        (void)parse_refuse(parse, "a NUL");
    else if (cursor_accept(&line, '#'))
        (void)parse_comment(parse, line);
    else
        (void)parse_sample(parse, line);
}

static void parse_free_families(struct parse *parse)
{
    struct parse_family *family;
    struct parse_family *next;
    HASH_ITER(hh, parse->families, family, next)
    {
        HASH_DEL(parse->families, family);
        free(family->doc);
        free(family);
    }
}

int exposition_parse_text(const char *text, size_t length, const struct exposition_parse_config *config,
                          struct exposition_parse_report *out_report)
{
    *out_report = (struct exposition_parse_report){0};
    struct parse parse = {.config = config, .report = out_report};
    buf_init(&parse.name, EXPOSITION_PARSE_LINE_MAX_BYTES);
    struct cursor rest = cursor_of(text, length);
    struct cursor line;
    while (!parse.is_out_of_memory && cursor_line(&rest, &line)) {
        parse.line++;
        parse_line(&parse, line);
    }
    buf_fini(&parse.name);
    parse_free_families(&parse);
    return parse.is_out_of_memory ? -ENOMEM : 0;
}
