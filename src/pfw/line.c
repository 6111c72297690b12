/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/line.h"

#include <errno.h>
#include <math.h>
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

/* What a byte means inside a string: most of them nothing, and those are passed over by one look-up each. */
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

/* Value of a hex digit, or -1. */
static int line_hex(char character)
{
    if (line_is_digit(character))
        return character - '0';
    char lower = (char)(character | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The four digits of \uXXXX at `at`, or -1. */
static int32_t line_hex4(const char *at, const char *end)
{
    if (end - at < 4)
        return -1;
    int32_t code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = line_hex(at[i]);
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

static bool line_scan_escape(struct line_scan *scan)
{
    if (scan->end - scan->at < 2)
        return line_fault(scan, "the line ends in a string");
    char kind = scan->at[1];
    if (kind == 'u') {
        if (line_hex4(scan->at + 2, scan->end) < 0)
            return line_fault(scan, "\\u needs four hex digits");
        scan->at += 6;
        return true;
    }
    if (memchr("\"\\/bfnrt", kind, 8) == NULL)
        return line_fault(scan, "no such escape in JSON");
    scan->at += 2;
    return true;
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
            scan->at++;
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

/* Called once for each member of the object that it is given to. */
typedef void line_on_member(struct pfw_line *line, const struct pfw_json *key, const struct pfw_json *value);

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
    line_skip_blanks(scan);
    return true;
}

static bool line_scan_member(struct line_scan *scan, struct pfw_json *out_key, struct pfw_json *out_value)
{
    if (scan->at >= scan->end || *scan->at != '"')
        return line_fault(scan, "a key is missing");
    return line_scan_string(scan, out_key) && line_scan_colon(scan) && line_scan_value(scan, out_value);
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

static bool line_scan_object(struct line_scan *scan, struct pfw_line *line, line_on_member *on_member,
                             struct pfw_json *out)
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
        if (!line_scan_member(scan, &key, &value))
            return false;
        if (on_member != NULL)
            on_member(line, &key, &value);
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
        return line_scan_object(scan, NULL, NULL, out);
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

/* The trailing blanks of an object's text are part of no slice: scanning skips them after the closing brace. */
