/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/line.h"

#include <errno.h>
#include <string.h>

#include "util/utf8.h"

/* Where the scan is, and what stopped it. */
struct line_scan {
    const char *at;
    const char *end;
    unsigned depth;
    const char *fault; /* NULL while all is well; `at` is then where it was found */
};

enum line_byte { LINE_PLAIN, LINE_QUOTE, LINE_BACKSLASH, LINE_CONTROL, LINE_HIGH };

/* What a byte means inside a string. */
static const unsigned char line_bytes[256] = {
    [0x00 ... 0x1f] = LINE_CONTROL,
    ['"'] = LINE_QUOTE,
    ['\\'] = LINE_BACKSLASH,
    [0x80 ... 0xff] = LINE_HIGH,
};

static bool line_fault(struct line_scan *scan, const char *fault)
{
    scan->fault = fault;
    return false;
}

static bool line_is_digit(char character)
{
    return (unsigned char)(character - '0') <= 9;
}

static void line_skip_blanks(struct line_scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\r' || *scan->at == '\n'))
        scan->at++;
}

static bool line_scan_escape(struct line_scan *scan)
{
    if (scan->end - scan->at < 2)
        return line_fault(scan, "the line ends in a string");
    char kind = scan->at[1];
    if (kind == 'u') {
        if (pfw_json_hex4(scan->at + 2, scan->end) < 0)
            return line_fault(scan, "\\u needs four hex digits");
        scan->at += 6;
        return true;
    }
    if (memchr("\"\\/bfnrt", kind, 8) == NULL)
        return line_fault(scan, "no such escape in JSON");
    scan->at += 2;
    return true;
}

/*
 * Passes over plain bytes, eight at a time. The mask has the top bit of each byte that is not plain: one that is at
 * least 0x80, below 0x20, a quote or a backslash (x - 0x01 & ~x has the top bit where x is 0). A borrow can set bits
 * only above the lowest true one, and the lowest is the one that is used.
 */
static void line_skip_plain(struct line_scan *scan)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t tops = UINT64_C(0x8080808080808080);
    while (scan->end - scan->at >= 8) {
        uint64_t bytes;
        memcpy(&bytes, scan->at, sizeof bytes);
        uint64_t quotes = bytes ^ ones * '"';
        uint64_t backslashes = bytes ^ ones * '\\';
        uint64_t special = (bytes | ((bytes - ones * 0x20) & ~bytes) | ((quotes - ones) & ~quotes) |
                            ((backslashes - ones) & ~backslashes)) &
                           tops;
        if (special != 0) {
            scan->at += __builtin_ctzll(special) / 8;
            return;
        }
        scan->at += 8;
    }
#endif
    while (scan->at < scan->end && line_bytes[(unsigned char)*scan->at] == LINE_PLAIN)
        scan->at++;
}

static bool line_scan_string(struct line_scan *scan, struct pfw_json *out)
{
    scan->at++;
    out->text.at = scan->at;
    out->kind = PFW_JSON_STRING;
    out->is_escaped = false;
    while (scan->at < scan->end) {
        size_t bad;
        switch ((enum line_byte)line_bytes[(unsigned char)*scan->at]) {
        case LINE_PLAIN:
            line_skip_plain(scan);
            break;
        case LINE_QUOTE:
            out->text.end = scan->at++;
            return true;
        case LINE_BACKSLASH:
            out->is_escaped = true;
            if (!line_scan_escape(scan))
                return false;
            break;
        case LINE_CONTROL:
            return line_fault(scan, "a control character in a string must be escaped");
        case LINE_HIGH: {
            size_t length = utf8_sequence((const unsigned char *)scan->at, (size_t)(scan->end - scan->at), &bad);
            if (length == 0)
                return line_fault(scan, "not UTF-8");
            scan->at += length;
            break;
        }
        }
    }
    return line_fault(scan, "the line ends in a string");
}

static bool line_scan_digits(struct line_scan *scan)
{
    const char *first = scan->at;
    while (scan->at < scan->end && line_is_digit(*scan->at))
        scan->at++;
    return scan->at > first || line_fault(scan, "a digit is missing");
}

static bool line_scan_number(struct line_scan *scan, struct pfw_json *out)
{
    out->text.at = scan->at;
    out->kind = PFW_JSON_NUMBER;
    if (*scan->at == '-')
        scan->at++;
    const char *first = scan->at;
    if (!line_scan_digits(scan))
        return false;
    if (*first == '0' && scan->at - first > 1) {
        scan->at = first;
        return line_fault(scan, "a number may not begin with 0");
    }
    if (scan->at < scan->end && *scan->at == '.') {
        scan->at++;
        if (!line_scan_digits(scan))
            return false;
    }
    if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
        scan->at++;
        if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-'))
            scan->at++;
        if (!line_scan_digits(scan))
            return false;
    }
    out->text.end = scan->at;
    return true;
}

static bool line_scan_word(struct line_scan *scan, const char *word, enum pfw_json_kind kind, struct pfw_json *out)
{
    size_t length = strlen(word);
    if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0)
        return line_fault(scan, "a value is missing");
    out->text = cursor_of(scan->at, length);
    out->kind = kind;
    scan->at += length;
    return true;
}

static bool line_scan_value(struct line_scan *scan, struct pfw_json *out);

static bool line_scan_colon(struct line_scan *scan)
{
    line_skip_blanks(scan);
    if (scan->at >= scan->end || *scan->at != ':')
        return line_fault(scan, "':' is missing");
    scan->at++;
    line_skip_blanks(scan);
    return true;
}

/* After a member or an element. True with `*out_is_last` when `closing` was there, else a comma was. */
static bool line_scan_separator(struct line_scan *scan, char closing, bool *out_is_last)
{
    line_skip_blanks(scan);
    if (scan->at >= scan->end)
        return line_fault(scan, "the line ends before its object does");
    *out_is_last = *scan->at == closing;
    if (!*out_is_last && *scan->at != ',')
        return line_fault(scan, closing == '}' ? "',' or '}' is missing" : "',' or ']' is missing");
    scan->at++;
    if (!*out_is_last)
        line_skip_blanks(scan);
    return true;
}

static bool line_scan_key(struct line_scan *scan, struct pfw_json *out_key)
{
    if (scan->at >= scan->end || *scan->at != '"')
        return line_fault(scan, "a key is missing");
    return line_scan_string(scan, out_key) && line_scan_colon(scan);
}

static bool line_scan_enter(struct line_scan *scan)
{
    if (scan->depth >= PFW_LINE_DEPTH_MAX)
        return line_fault(scan, "objects and arrays lie too deep in each other");
    scan->depth++;
    scan->at++;
    line_skip_blanks(scan);
    return true;
}

/* Keys hold escapes next to never: the quick look first. */
static bool line_is_key(const struct pfw_json *key, const char *name, size_t name_length)
{
    if (!key->is_escaped)
        return cursor_left(&key->text) == name_length && memcmp(key->text.at, name, name_length) == 0;
    return pfw_json_equals(key, name);
}

/* `out_hash` (or NULL) receives the last member "hhash" that is a string. */
static bool line_scan_object(struct line_scan *scan, struct pfw_json *out_hash, struct pfw_json *out)
{
    out->text.at = scan->at;
    out->kind = PFW_JSON_OBJECT;
    if (!line_scan_enter(scan))
        return false;
    bool is_last = scan->at < scan->end && *scan->at == '}';
    if (is_last)
        scan->at++;
    while (!is_last) {
        struct pfw_json key = {0};
        struct pfw_json value = {0};
        if (!line_scan_key(scan, &key) || !line_scan_value(scan, &value))
            return false;
        if (out_hash != NULL && line_is_key(&key, "hhash", 5))
            *out_hash = value.kind == PFW_JSON_STRING ? value : (struct pfw_json){0};
        if (!line_scan_separator(scan, '}', &is_last))
            return false;
    }
    scan->depth--;
    out->text.end = scan->at;
    return true;
}

static bool line_scan_array(struct line_scan *scan, struct pfw_json *out)
{
    out->text.at = scan->at;
    out->kind = PFW_JSON_ARRAY;
    if (!line_scan_enter(scan))
        return false;
    bool is_last = scan->at < scan->end && *scan->at == ']';
    if (is_last)
        scan->at++;
    while (!is_last) {
        struct pfw_json element = {0};
        if (!line_scan_value(scan, &element) || !line_scan_separator(scan, ']', &is_last))
            return false;
    }
    scan->depth--;
    out->text.end = scan->at;
    return true;
}

static bool line_scan_value(struct line_scan *scan, struct pfw_json *out)
{
    if (scan->at >= scan->end)
        return line_fault(scan, "a value is missing");
    switch (*scan->at) {
    case '"':
        return line_scan_string(scan, out);
    case '{':
        return line_scan_object(scan, NULL, out);
    case '[':
        return line_scan_array(scan, out);
    case 't':
        return line_scan_word(scan, "true", PFW_JSON_TRUE, out);
    case 'f':
        return line_scan_word(scan, "false", PFW_JSON_FALSE, out);
    case 'n':
        return line_scan_word(scan, "null", PFW_JSON_NULL, out);
    default:
        if (*scan->at != '-' && !line_is_digit(*scan->at))
            return line_fault(scan, "a value is missing");
        return line_scan_number(scan, out);
    }
}

#define LINE_FIELD(key, field, is_number)                                                                              \
    {                                                                                                                  \
        key, sizeof(key) - 1, offsetof(struct pfw_line, field), is_number                                              \
    }

/* Where a member of the event goes. */
static const struct {
    const char *key;
    size_t length;
    size_t offset;
    bool is_number;
} line_fields[] = {
    LINE_FIELD("name", name, false), LINE_FIELD("cat", category, false), LINE_FIELD("type", type, true),
    LINE_FIELD("ts", ts, true),      LINE_FIELD("dur", dur, true),       LINE_FIELD("ph", phase_text, false),
    LINE_FIELD("pid", pid, true),    LINE_FIELD("tid", tid, true),       LINE_FIELD("args", args, false),
};

static bool line_store(struct line_scan *scan, struct pfw_line *line, const struct pfw_json *key,
                       const struct pfw_json *value)
{
    for (size_t i = 0; i < ARRAY_LENGTH(line_fields); i++) {
        if (!line_is_key(key, line_fields[i].key, line_fields[i].length))
            continue;
        void *field = (char *)line + line_fields[i].offset;
        if (!line_fields[i].is_number) {
            *(struct pfw_json *)field = *value;
            return true;
        }
        struct pfw_line_number number = {.is_present = value->kind == PFW_JSON_NUMBER};
        if (number.is_present && !pfw_json_i64(value, &number.value)) {
            scan->at = value->text.at;
            return line_fault(scan, "the number doesn't fit into 64 bits");
        }
        *(struct pfw_line_number *)field = number;
        return true;
    }
    return true;
}

static bool line_scan_event(struct line_scan *scan, struct pfw_line *line)
{
    if (scan->at >= scan->end || *scan->at != '{')
        return line_fault(scan, "no object begins here");
    if (!line_scan_enter(scan))
        return false;
    bool is_last = scan->at < scan->end && *scan->at == '}';
    if (is_last)
        scan->at++;
    while (!is_last) {
        struct pfw_json key = {0};
        struct pfw_json value = {0};
        if (!line_scan_key(scan, &key))
            return false;
        bool is_args = scan->at < scan->end && *scan->at == '{' && line_is_key(&key, "args", 4);
        if (is_args)
            line->host_hash = (struct pfw_json){0};
        if (is_args ? !line_scan_object(scan, &line->host_hash, &value) : !line_scan_value(scan, &value))
            return false;
        if (!line_store(scan, line, &key, &value) || !line_scan_separator(scan, '}', &is_last))
            return false;
    }
    line_skip_blanks(scan);
    return scan->at == scan->end || line_fault(scan, "there is more after the object");
}

/* Numbers as DFTracer 2 writes them, and the letters of older traces and of Chrome's format. */
static enum pfw_phase line_phase(const struct pfw_json *text)
{
    static const struct {
        const char *letter;
        enum pfw_phase phase;
    } letters[] = {{"X", PFW_COMPLETE}, {"C", PFW_COUNTER}, {"A", PFW_AGGREGATED}, {"M", PFW_METADATA}};

    int64_t number;
    if (pfw_json_i64(text, &number))
        return number >= PFW_COMPLETE && number <= PFW_METADATA ? (enum pfw_phase)number : 0;
    for (size_t i = 0; i < ARRAY_LENGTH(letters); i++) {
        if (pfw_json_equals(text, letters[i].letter))
            return letters[i].phase;
    }
    return 0;
}

int pfw_line_parse(const char *text, size_t length, struct pfw_line *out_line, struct error *err)
{
    struct line_scan scan = {.at = text, .end = text + length};
    struct pfw_line line = {0};
    line_skip_blanks(&scan);
    if (!line_scan_event(&scan, &line))
        return error_set(err, -EBADMSG, "byte %zu: %s", (size_t)(scan.at - text) + 1, scan.fault);
    if (line.args.kind != PFW_JSON_OBJECT) {
        line.args = (struct pfw_json){0};
        line.host_hash = (struct pfw_json){0};
    }
    line.phase = line_phase(&line.phase_text);
    *out_line = line;
    return 0;
}

struct cursor pfw_members(const struct pfw_json *object)
{
    if (object->kind != PFW_JSON_OBJECT)
        return (struct cursor){0};
    return (struct cursor){.at = object->text.at + 1, .end = object->text.end - 1};
}

bool pfw_members_next(struct cursor *members, struct pfw_json *out_key, struct pfw_json *out_value)
{
    struct line_scan scan = {.at = members->at, .end = members->end};
    line_skip_blanks(&scan);
    if (scan.at < scan.end && *scan.at == ',') {
        scan.at++;
        line_skip_blanks(&scan);
    }
    struct pfw_json key = {0};
    struct pfw_json value = {0};
    if (scan.at >= scan.end || !line_scan_key(&scan, &key) || !line_scan_value(&scan, &value))
        return false;
    members->at = scan.at;
    *out_key = key;
    *out_value = value;
    return true;
}

struct pfw_json pfw_member(const struct pfw_json *object, const char *key)
{
    struct pfw_json found = {0};
    struct pfw_json member_key;
    struct pfw_json value;
    for (struct cursor members = pfw_members(object); pfw_members_next(&members, &member_key, &value);) {
        if (pfw_json_equals(&member_key, key))
            found = value;
    }
    return found;
}
