/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a JSON string: what comes out is strict UTF-8 (as iconv() judges it), JSON, and reads back as what went
 * in, or as that with U+FFFD for what was not UTF-8. The first byte of the input chooses a limit, beyond which nothing
 * may have been written.
 */
#include <assert.h>
#include <errno.h>
#include <iconv.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "util/buf.h"

enum { TEXT_MAX_BYTES = 1 << 24, STEP_BYTES = 256 };

static bool is_strict_utf8(const char *text, size_t length)
{
    iconv_t converter = iconv_open("UTF-32LE", "UTF-8");
    assert(converter != (iconv_t)-1);
    char *in = (char *)(uintptr_t)text; /* iconv() doesn't write there, though its type says that it may */
    bool is_good = true;
    while (length > 0 && is_good) {
        char points[STEP_BYTES];
        char *out = points;
        size_t out_left = sizeof points;
        is_good = iconv(converter, &in, &length, &out, &out_left) != (size_t)-1 || errno == E2BIG;
    }
    assert(iconv_close(converter) == 0);
    return is_good;
}

static unsigned hex_digit(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = memchr(digits, digit, sizeof digits - 1);
    assert(found != NULL);
    return (unsigned)(found - digits);
}

/* Takes one escape behind its backslash; returns the bytes taken. */
static size_t decode_escape(const char *at, size_t left, struct buf *out)
{
    static const char letters[] = "\"\\bfnrt";
    static const char meanings[] = "\"\\\b\f\n\r\t";
    assert(left >= 1);
    const char *letter = memchr(letters, *at, sizeof letters - 1);
    if (letter != NULL) {
        buf_char(out, meanings[letter - letters]);
        return 1;
    }
    assert(*at == 'u' && left >= 5 && at[1] == '0' && at[2] == '0'); /* only control characters are written so */
    buf_char(out, (char)(hex_digit(at[3]) << 4 | hex_digit(at[4])));
    return 5;
}

static void decode_string(const struct buf *json, struct buf *out)
{
    assert(json->length >= 2 && json->data[0] == '"' && json->data[json->length - 1] == '"');
    const char *end = json->data + json->length - 1;
    for (const char *at = json->data + 1; at < end; at++) {
        assert((unsigned char)*at >= 0x20 && *at != '"');
        if (*at == '\\')
            at += decode_escape(at + 1, (size_t)(end - at - 1), out);
        else
            buf_char(out, *at);
    }
    assert(buf_status(out, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    size_t limit = data[0];
    const char *text = (const char *)data + 1;
    size_t length = size - 1;

    CLEANUP(buf_cleanup) struct buf json;
    CLEANUP(buf_cleanup) struct buf decoded;
    CLEANUP(buf_cleanup) struct buf again;
    CLEANUP(buf_cleanup) struct buf limited;
    buf_init(&json, TEXT_MAX_BYTES);
    buf_init(&decoded, TEXT_MAX_BYTES);
    buf_init(&again, TEXT_MAX_BYTES);
    buf_init(&limited, limit);
    buf_json_bytes(&json, text, length);
    assert(buf_status(&json, NULL) == 0);
    assert(is_strict_utf8(json.data, json.length));

    decode_string(&json, &decoded);
    if (is_strict_utf8(text, length))
        assert(decoded.length == length && (length == 0 || memcmp(decoded.data, text, length) == 0));
    buf_json_bytes(&again, decoded.data, decoded.length);
    assert(again.length == json.length && memcmp(again.data, json.data, json.length) == 0);

    buf_json_bytes(&limited, text, length);
    assert(limited.length == (json.length <= limit ? json.length : 0));
    return 0;
}
