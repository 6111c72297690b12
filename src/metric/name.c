/* SPDX-License-Identifier: BSD-3-Clause */
#include "metric/name.h"

#include <errno.h>
#include <string.h>

#include "util/cursor.h"
#include "util/utf8.h"

/* A label as it stands in the text; the value still has its escapes. */
struct name_label {
    struct cursor key;
    struct cursor value;
};

/* What is being made of one text. */
struct name_parse {
    struct cursor family;
    struct name_label labels[METRIC_LABELS_MAX];
    size_t labels_count;
    bool was_legal;
};

static bool name_is_letter(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') || character == '_';
}

static bool name_is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* A name or key with what is not allowed mapped to '_'. `has_colon`: names may hold colons, keys may not. */
static void name_put_word(struct buf *out, const struct cursor *word, bool has_colon, bool *was_legal)
{
    if (cursor_is_empty(word) || name_is_digit(*word->at)) {
        buf_char(out, '_');
        *was_legal = false;
    }
    for (const char *at = word->at; at < word->end; at++) {
        bool is_allowed = name_is_letter(*at) || name_is_digit(*at) || (has_colon && *at == ':');
        buf_char(out, is_allowed ? *at : '_');
        *was_legal = *was_legal && is_allowed;
    }
}

/* Takes "value" up to its closing quote; the text in between, with its escapes, is `*out_value`. */
static bool name_take_value(struct cursor *text, struct cursor *out_value)
{
    if (!cursor_accept(text, '"'))
        return false;
    const char *start = text->at;
    while (!cursor_is_empty(text) && *text->at != '"')
        text->at += *text->at == '\\' && cursor_left(text) > 1 ? 2 : 1;
    *out_value = (struct cursor){.at = start, .end = text->at};
    return cursor_accept(text, '"');
}

static void name_skip_blanks(struct cursor *text)
{
    while (!cursor_is_empty(text) && (*text->at == ' ' || *text->at == '\t'))
        text->at++;
}

/* Takes key="value" with blanks around its parts, as Prometheus allows them. */
static bool name_take_label(struct cursor *text, struct name_label *out_label)
{
    name_skip_blanks(text);
    const char *start = text->at;
    while (!cursor_is_empty(text) && *text->at != '=' && *text->at != ' ' && *text->at != '"' && *text->at != ',')
        text->at++;
    out_label->key = (struct cursor){.at = start, .end = text->at};
    name_skip_blanks(text);
    if (cursor_is_empty(&out_label->key) || !cursor_accept(text, '='))
        return false;
    name_skip_blanks(text);
    if (!name_take_value(text, &out_label->value))
        return false;
    name_skip_blanks(text);
    return true;
}

static int name_compare(const struct cursor *a, const struct cursor *b)
{
    size_t a_bytes = cursor_left(a);
    size_t b_bytes = cursor_left(b);
    int order = memcmp(a->at, b->at, a_bytes < b_bytes ? a_bytes : b_bytes);
    if (order != 0)
        return order;
    return a_bytes < b_bytes ? -1 : a_bytes > b_bytes;
}

/* Puts the label where its key belongs; one with the same key is replaced. False when there are too many. */
static bool name_insert_label(struct name_parse *parse, const struct name_label *label)
{
    size_t at = 0;
    while (at < parse->labels_count && name_compare(&parse->labels[at].key, &label->key) < 0)
        at++;
    if (at < parse->labels_count && name_compare(&parse->labels[at].key, &label->key) == 0) {
        parse->labels[at] = *label;
        parse->was_legal = false;
        return true;
    }
    if (parse->labels_count == METRIC_LABELS_MAX)
        return false;
    memmove(&parse->labels[at + 1], &parse->labels[at], (parse->labels_count - at) * sizeof parse->labels[0]);
    parse->labels[at] = *label;
    parse->labels_count++;
    return true;
}

/* Takes {…} up to the end of the text. 0, -EINVAL for what is no label block, -E2BIG for too many labels. */
static int name_take_labels(struct cursor text, struct name_parse *parse)
{
    if (!cursor_accept(&text, '{'))
        return -EINVAL;
    name_skip_blanks(&text);
    while (!cursor_accept(&text, '}')) {
        struct name_label label;
        if (!name_take_label(&text, &label))
            return -EINVAL;
        if (!name_insert_label(parse, &label))
            return -E2BIG;
        bool is_more = cursor_accept(&text, ',');
        name_skip_blanks(&text);
        if (!is_more && (cursor_is_empty(&text) || *text.at != '}'))
            return -EINVAL;
    }
    return cursor_is_empty(&text) ? 0 : -EINVAL;
}

/* One character of a value: its escape taken off, put on again where it is needed, bad UTF-8 replaced. */
static void name_put_character(struct buf *out, struct cursor *value, bool *was_legal)
{
    if (*value->at == '\\' && cursor_left(value) > 1) {
        char escaped = value->at[1];
        if (escaped == 'n' || escaped == '\\' || escaped == '"') {
            buf_bytes(out, value->at, 2);
            value->at += 2;
            return;
        }
    }
    if (*value->at == '\\') { /* of an escape that nobody knows the backslash is meant */
        buf_text(out, "\\\\");
        value->at++;
        *was_legal = false;
        return;
    }
    if (*value->at == '\n') {
        buf_text(out, "\\n");
        value->at++;
        *was_legal = false;
        return;
    }
    size_t bad = 0;
    size_t good = utf8_sequence((const unsigned char *)value->at, cursor_left(value), &bad);
    if (good > 0 && *value->at != '\0') {
        buf_bytes(out, value->at, good);
        value->at += good;
        return;
    }
    buf_text(out, "\xef\xbf\xbd"); /* U+FFFD */
    value->at += good > 0 ? good : bad;
    *was_legal = false;
}

static void name_put_labels(struct buf *out, struct name_parse *parse)
{
    for (size_t i = 0; i < parse->labels_count; i++) {
        struct name_label *label = &parse->labels[i];
        buf_char(out, i == 0 ? '{' : ',');
        name_put_word(out, &label->key, false, &parse->was_legal);
        buf_text(out, "=\"");
        while (!cursor_is_empty(&label->value))
            name_put_character(out, &label->value, &parse->was_legal);
        buf_char(out, '"');
    }
    if (parse->labels_count > 0)
        buf_char(out, '}');
}

int metric_name_parse(const char *text, size_t length, struct buf *out, bool *out_was_legal, struct error *err)
{
    if (length == 0)
        return error_set(err, -EINVAL, "a metric without a name");
    struct cursor whole = cursor_of(text, length);
    const char *brace = memchr(text, '{', length);
    struct name_parse parse = {.family = whole, .was_legal = true};
    if (brace != NULL) {
        int rc = name_take_labels((struct cursor){.at = brace, .end = whole.end}, &parse);
        if (rc == -E2BIG)
            return error_set(err, -EINVAL, "metric '%.*s': more than %d labels", (int)(brace - text), text,
                             METRIC_LABELS_MAX);
        if (rc == 0)
            parse.family.end = brace;
        else
            parse.labels_count = 0; /* no label block after all: part of the name */
    }

    size_t start = out->length;
    name_put_word(out, &parse.family, true, &parse.was_legal);
    name_put_labels(out, &parse);
    int rc = buf_status(out, err);
    if (rc == 0 && out->length - start > METRIC_NAME_MAX_BYTES)
        rc = error_set(err, -EINVAL, "metric '%.*s…': a name may have %d bytes, labels included", 64, text,
                       METRIC_NAME_MAX_BYTES);
    if (rc != 0) {
        buf_truncate(out, start);
        return rc;
    }
    *out_was_legal = parse.was_legal;
    return 0;
}

size_t metric_name_family_bytes(const char *name)
{
    return strcspn(name, "{");
}

const char *metric_name_labels(const char *name, size_t *out_bytes)
{
    size_t family_bytes = metric_name_family_bytes(name);
    const char *labels = name + family_bytes;
    size_t bytes = strlen(labels);
    *out_bytes = bytes >= 2 ? bytes - 2 : 0;
    return bytes >= 2 ? labels + 1 : labels;
}
