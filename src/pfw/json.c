/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/json.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Value of a hex digit, or -1. */
static int json_hex(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    char lower = (char)(character | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

int32_t pfw_json_hex4(const char *at, const char *end)
{
    if (end - at < 4)
        return -1;
    int32_t code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = json_hex(at[i]);
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

static size_t json_put_utf8(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* Takes \uXXXX, and its second half when it is a surrogate pair. */
static uint32_t json_take_unicode(struct cursor *text)
{
    int32_t code = pfw_json_hex4(text->at + 2, text->end);
    text->at += 6;
    if (code < 0xd800 || code > 0xdfff)
        return code < 0 ? 0xfffd : (uint32_t)code;
    if (code <= 0xdbff && cursor_left(text) >= 6 && text->at[0] == '\\' && text->at[1] == 'u') {
        int32_t low = pfw_json_hex4(text->at + 2, text->end);
        if (low >= 0xdc00 && low <= 0xdfff) {
            text->at += 6;
            return 0x10000 + ((uint32_t)(code - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
        }
    }
    return 0xfffd;
}

/* Takes the next character of a scanned string, unescaped; never more bytes than it took. Returns their number. */
static size_t json_take_character(struct cursor *text, char out[4])
{
    if (*text->at != '\\') {
        out[0] = *text->at++;
        return 1;
    }
    char kind = text->at[1];
    if (kind == 'u')
        return json_put_utf8(json_take_unicode(text), out);
    static const char names[] = "bfnrt";
    static const char meanings[] = "\b\f\n\r\t";
    const char *name = memchr(names, kind, sizeof names - 1);
    out[0] = name != NULL ? meanings[name - names] : kind;
    text->at += 2;
    return 1;
}

bool pfw_json_equals(const struct pfw_json *string, const char *text)
{
    if (string->kind != PFW_JSON_STRING)
        return false;
    if (!string->is_escaped)
        return cursor_equals(&string->text, text);
    struct cursor rest = string->text;
    while (!cursor_is_empty(&rest)) {
        char bytes[4];
        size_t length = json_take_character(&rest, bytes);
        if (strncmp(text, bytes, length) != 0 || memchr(bytes, '\0', length) != NULL)
            return false;
        text += length;
    }
    return *text == '\0';
}

void pfw_json_unescape(const struct pfw_json *string, struct buf *out)
{
    size_t length = cursor_left(&string->text);
    if (!string->is_escaped) {
        buf_bytes(out, string->text.at, length);
        return;
    }
    char *to = buf_reserve(out, length);
    if (to == NULL)
        return;
    size_t taken = 0;
    for (struct cursor rest = string->text; !cursor_is_empty(&rest);) {
        char bytes[4];
        size_t count = json_take_character(&rest, bytes);
        memcpy(to + taken, bytes, count);
        taken += count;
    }
    buf_commit(out, taken);
}

bool pfw_json_i64(const struct pfw_json *number, int64_t *out_value)
{
    if (number->kind != PFW_JSON_NUMBER)
        return false;
    struct cursor rest = number->text;
    int64_t value;
    if (cursor_i64(&rest, &value) && cursor_is_empty(&rest)) {
        *out_value = value;
        return true;
    }
    double real;
    rest = number->text;
    if (!cursor_double(&rest, &real) || real < -0x1p62 || real > 0x1p62)
        return false;
    *out_value = llround(real);
    return true;
}
