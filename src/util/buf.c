/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/buf.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"
#include "util/utf8.h"

enum { BUF_CAPACITY_FIRST = 256, BUF_DECIMALS_MAX = 9, BUF_NUMBER_MAX_BYTES = 64 };

/* Above this, a double has no exact neighbours in whole numbers left for buf_fixed()'s integer arithmetic. */
static const double buf_fixed_limit = 1e15;

void buf_init(struct buf *buf, size_t max_bytes)
{
    *buf = (struct buf){.max = max_bytes};
}

void buf_fini(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf){0};
}

void buf_reset(struct buf *buf)
{
    buf->length = 0;
    buf->status = 0;
}

void buf_truncate(struct buf *buf, size_t length)
{
    if (length < buf->length)
        buf->length = length;
}

int buf_status(const struct buf *buf, struct error *err)
{
    if (buf->status == -E2BIG)
        return error_set(err, -E2BIG, "text is larger than the limit of %zu bytes", buf->max);
    if (buf->status == -ENOMEM)
        return error_set(err, -ENOMEM, "no memory for text of more than %zu bytes", buf->length);
    return buf->status;
}

char *buf_reserve(struct buf *buf, size_t bytes)
{
    if (buf->status != 0)
        return NULL;
    size_t need;
    if (!num_add_size(buf->length, bytes, &need) || need > buf->max) {
        buf->status = -E2BIG;
        return NULL;
    }
    if (need > buf->capacity) {
        size_t capacity = buf->capacity != 0 ? buf->capacity : BUF_CAPACITY_FIRST;
        while (capacity < need)
            capacity = capacity > buf->max / 2 ? buf->max : capacity * 2;
        char *data = realloc(buf->data, capacity);
        if (data == NULL) {
            buf->status = -ENOMEM;
            return NULL;
        }
        buf->data = data;
        buf->capacity = capacity;
    }
    return buf->data + buf->length;
}

void buf_commit(struct buf *buf, size_t bytes)
{
    buf->length += bytes;
}

void buf_bytes(struct buf *buf, const void *bytes, size_t length)
{
    if (length == 0)
        return;
    char *to = buf_reserve(buf, length);
    if (to == NULL)
        return;
    memcpy(to, bytes, length);
    buf_commit(buf, length);
}

void buf_text(struct buf *buf, const char *text)
{
    buf_bytes(buf, text, strlen(text));
}

void buf_char(struct buf *buf, char character)
{
    buf_bytes(buf, &character, 1);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    char small[BUF_CAPACITY_FIRST];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length < sizeof small) {
        buf_bytes(buf, small, (size_t)length);
        return;
    }
    if (length < 0) {
        buf->status = buf->status != 0 ? buf->status : -ENOMEM;
        return;
    }
    char *to = buf_reserve(buf, (size_t)length + 1); /* vsnprintf writes a NUL, which is not committed */
    if (to == NULL)
        return;
    va_start(args, format);
    (void)vsnprintf(to, (size_t)length + 1, format, args);
    va_end(args);
    buf_commit(buf, (size_t)length);
}

/* Writes the digits of `number` so that they end at `end`; returns where they start. */
static char *buf_digits(char *end, uint64_t number)
{
    do {
        *--end = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return end;
}

void buf_u64(struct buf *buf, uint64_t number)
{
    char digits[BUF_NUMBER_MAX_BYTES];
    char *end = digits + sizeof digits;
    char *start = buf_digits(end, number);
    buf_bytes(buf, start, (size_t)(end - start));
}

void buf_i64(struct buf *buf, int64_t number)
{
    if (number < 0)
        buf_char(buf, '-');
    buf_u64(buf, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void buf_fixed(struct buf *buf, double number, unsigned decimals)
{
    static const uint64_t powers[BUF_DECIMALS_MAX + 1] = {1,      10,      100,      1000,      10000,
                                                          100000, 1000000, 10000000, 100000000, 1000000000};
    if (!isfinite(number))
        number = 0;
    if (decimals > BUF_DECIMALS_MAX)
        decimals = BUF_DECIMALS_MAX;
    double magnitude = fabs(number);
    if (magnitude >= buf_fixed_limit) {
        buf_double(buf, number);
        return;
    }
    uint64_t whole = (uint64_t)magnitude;
    uint64_t scale = powers[decimals];
    uint64_t fraction = (uint64_t)((magnitude - (double)whole) * (double)scale + 0.5);
    if (fraction >= scale) {
        fraction -= scale;
        whole++;
    }
    while (decimals > 0 && fraction % 10 == 0) {
        fraction /= 10;
        decimals--;
    }

    char text[BUF_NUMBER_MAX_BYTES];
    char *end = text + sizeof text;
    char *start = end;
    if (decimals > 0) {
        for (unsigned i = 0; i < decimals; i++, fraction /= 10)
            *--start = (char)('0' + fraction % 10);
        *--start = '.';
    }
    bool is_zero = whole == 0 && start == end;
    start = buf_digits(start, whole);
    if (number < 0 && !is_zero)
        *--start = '-';
    buf_bytes(buf, start, (size_t)(end - start));
}

void buf_double(struct buf *buf, double number)
{
    if (!isfinite(number)) {
        buf_text(buf, "null");
        return;
    }
    char text[BUF_NUMBER_MAX_BYTES];
    int length = 0;
    for (int digits = 15; digits <= 17; digits++) {
        length = snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    /* A program that hosts us may have set a locale whose point is a comma. */
    const char *point = localeconv()->decimal_point;
    char *found = point[0] != '.' ? strstr(text, point) : NULL;
    if (found != NULL) {
        size_t point_length = strlen(point);
        *found = '.';
        memmove(found + 1, found + point_length, strlen(found + point_length) + 1);
        length = (int)strlen(text);
    }
    buf_bytes(buf, text, (size_t)length);
}

static void buf_json_escape(struct buf *buf, unsigned char character)
{
    static const char hex[] = "0123456789abcdef";
    char text[6] = {'\\', 'u', '0', '0', hex[character >> 4], hex[character & 15]};
    switch (character) {
    case '"':
        buf_text(buf, "\\\"");
        return;
    case '\\':
        buf_text(buf, "\\\\");
        return;
    case '\n':
        buf_text(buf, "\\n");
        return;
    case '\t':
        buf_text(buf, "\\t");
        return;
    default:
        buf_bytes(buf, text, sizeof text);
    }
}

void buf_json_bytes(struct buf *buf, const char *bytes, size_t length)
{
    const unsigned char *all = (const unsigned char *)bytes;
    buf_char(buf, '"');
    size_t plain_start = 0;
    for (size_t at = 0; at < length;) {
        size_t bad = 0;
        size_t good = utf8_sequence(all + at, length - at, &bad);
        bool is_plain =
            good > 1 || (good == 1 && all[at] >= 0x20 && all[at] != '"' && all[at] != '\\' && all[at] != 0x7f);
        if (is_plain) {
            at += good;
            continue;
        }
        buf_bytes(buf, bytes + plain_start, at - plain_start);
        if (good == 1)
            buf_json_escape(buf, all[at]);
        else
            buf_text(buf, "\xef\xbf\xbd"); /* U+FFFD */
        at += good == 1 ? 1 : bad;
        plain_start = at;
    }
    buf_bytes(buf, bytes + plain_start, length - plain_start);
    buf_char(buf, '"');
}

void buf_json_string(struct buf *buf, const char *text)
{
    buf_json_bytes(buf, text, strlen(text));
}

const char *buf_string(struct buf *buf)
{
    char *end = buf_reserve(buf, 1);
    if (end == NULL)
        return "";
    *end = '\0';
    return buf->data;
}
