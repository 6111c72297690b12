/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/buf.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/num.h"
#include "util/utf8.h"

enum {
    BUF_CAPACITY_FIRST = 256,
    BUF_DECIMALS_MAX = 9,
    BUF_SHORT_DECIMALS_MAX = 19, /* 1e15 / 1e-4: what buf_short_decimal() tries */
    BUF_DOUBLE_MAX_BYTES = 32,   /* sign, 17 digits, point, exponent */
};

/* Below this, a double times a power of ten is within 1/8 of the truth, so that rounding it finds the right integer. */
static const double buf_exact_limit = 1e15;

/* Below this, buf_double() has an exponent, as printf()'s %g. */
static const double buf_exponent_limit = 1e-4;

/* buf_double() and buf_fixed() count on operations that are rounded once, to double. */
_Static_assert(FLT_EVAL_METHOD == 0, "doubles are computed with more precision here than they have");

static const uint64_t buf_powers[] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
    10000000000000000,
    100000000000000000,
    1000000000000000000,
    UINT64_C(10000000000000000000),
};

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

char *buf_grow(struct buf *buf, size_t bytes)
{
    if (buf->status != 0)
        return NULL;
    size_t need;
    if (!num_add_size(buf->length, bytes, &need) || need > buf->max) {
        buf->status = -E2BIG;
        return NULL;
    }
    size_t capacity = buf->capacity != 0 ? buf->capacity : BUF_CAPACITY_FIRST;
    while (capacity < need && capacity <= buf->max / 2)
        capacity *= 2;
    if (capacity < need || capacity > buf->max)
        capacity = buf->max;
    size_t with_nul;
    char *data = num_add_size(capacity, 1, &with_nul) ? realloc(buf->data, with_nul) : NULL;
    if (data == NULL) {
        buf->status = -ENOMEM;
        return NULL;
    }
    buf->data = data;
    buf->capacity = capacity;
    return data + buf->length;
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    char small[BUF_CAPACITY_FIRST];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (length < 0) {
        if (buf->status == 0)
            buf->status = errno == ENOMEM ? -ENOMEM : -E2BIG; /* else longer than an int can say */
        return;
    }
    if ((size_t)length < sizeof small) {
        buf_bytes(buf, small, (size_t)length);
        return;
    }
    char *to = buf_reserve(buf, (size_t)length);
    if (to == NULL)
        return;
    va_start(args, format);
    (void)vsnprintf(to, (size_t)length + 1, format, args); /* its NUL goes where buf_string()'s would */
    va_end(args);
    buf_commit(buf, (size_t)length);
}

/* How many digits `number` has: 1 for 0. */
static unsigned buf_digits_count(uint64_t number)
{
    /* A number of b bits has b·log10(2) digits, or one more; log10(2) is a little more than 1233/4096. */
    unsigned bits = 64 - (unsigned)__builtin_clzll(number | 1);
    unsigned least = bits * 1233 >> 12;
    return least + (number >= buf_powers[least] || number == 0 ? 1 : 0);
}

/* Writes the last `count` digits of `number`, zeros in front included, so that they end at `end`. Two a step. */
static void buf_put_digits(char *end, uint64_t number, unsigned count)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    for (; count >= 2; count -= 2) {
        end -= 2;
        memcpy(end, pairs + number % 100 * 2, 2);
        number /= 100;
    }
    if (count == 1)
        end[-1] = (char)('0' + number % 10);
}

void buf_u64(struct buf *buf, uint64_t number)
{
    unsigned count = buf_digits_count(number);
    char *to = buf_reserve(buf, count);
    if (to == NULL)
        return;
    buf_put_digits(to + count, number, count);
    buf_commit(buf, count);
}

/* `whole` and the `decimals` digits of `fraction`. */
static void buf_decimal(struct buf *buf, bool is_negative, uint64_t whole, uint64_t fraction, unsigned decimals)
{
    unsigned sign_bytes = is_negative ? 1 : 0;
    unsigned whole_bytes = buf_digits_count(whole);
    unsigned bytes = sign_bytes + whole_bytes + (decimals > 0 ? 1 + decimals : 0);
    char *to = buf_reserve(buf, bytes);
    if (to == NULL)
        return;
    if (is_negative)
        *to = '-';
    buf_put_digits(to + sign_bytes + whole_bytes, whole, whole_bytes);
    if (decimals > 0) {
        to[sign_bytes + whole_bytes] = '.';
        buf_put_digits(to + bytes, fraction, decimals);
    }
    buf_commit(buf, bytes);
}

void buf_i64(struct buf *buf, int64_t number)
{
    buf_decimal(buf, number < 0, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, 0, 0);
}

void buf_fixed(struct buf *buf, double number, unsigned decimals)
{
    if (!isfinite(number))
        number = 0;
    if (decimals > BUF_DECIMALS_MAX)
        decimals = BUF_DECIMALS_MAX;
    double magnitude = fabs(number);
    if (magnitude >= buf_exact_limit) {
        buf_double(buf, number);
        return;
    }
    uint64_t whole = (uint64_t)magnitude;
    uint64_t scale = buf_powers[decimals];
    uint64_t fraction = (uint64_t)((magnitude - (double)whole) * (double)scale + 0.5);
    if (fraction >= scale) {
        fraction -= scale;
        whole++;
    }
    if (fraction == 0)
        decimals = 0;
    while (decimals > 0 && fraction % 10 == 0) {
        fraction /= 10;
        decimals--;
    }
    buf_decimal(buf, number < 0 && (whole | fraction) != 0, whole, fraction, decimals);
}

/*
 * Most numbers that people meet are short: n / 10^d with a small n. n is below 2^53 and 10^d below 2^64 with all its
 * low bits zero, both are exact doubles, so their quotient, rounded once, is the very double that reading the decimal
 * yields. The first d that gives `number` back has the fewest digits.
 */
static bool buf_short_decimal(struct buf *buf, double number)
{
    double magnitude = fabs(number);
    if (magnitude < buf_exponent_limit && magnitude != 0)
        return false;
    for (unsigned decimals = 0; decimals <= BUF_SHORT_DECIMALS_MAX; decimals++) {
        double scale = (double)buf_powers[decimals];
        double scaled = magnitude * scale;
        if (scaled >= buf_exact_limit)
            return false;
        uint64_t digits = (uint64_t)(scaled + 0.5);
        if ((double)digits / scale == magnitude) {
            uint64_t whole = digits / buf_powers[decimals];
            buf_decimal(buf, signbit(number) != 0, whole, digits - whole * buf_powers[decimals], decimals);
            return true;
        }
    }
    return false;
}

/* Writes `number` with the fewest digits that read back as it under `locale`, which is set; returns their length. */
static size_t buf_round_trip(double number, locale_t locale, char out_text[BUF_DOUBLE_MAX_BYTES])
{
    /* A normal double keeps any 15 digits, so that fewer need not be tried: %g takes the zeros away. */
    int digits = fabs(number) < DBL_MIN ? 1 : DBL_DIG;
    int length;
    do
        length = snprintf(out_text, BUF_DOUBLE_MAX_BYTES, "%.*g", digits, number);
    while (strtod_l(out_text, NULL, locale) != number && digits++ < DBL_DECIMAL_DIG);
    return (size_t)length;
}

void buf_double(struct buf *buf, double number)
{
    if (!isfinite(number)) {
        buf_text(buf, "null");
        return;
    }
    if (buf_short_decimal(buf, number))
        return;
    /* A program that hosts us may have set a locale whose point is a comma. "C" is always there and costs no memory. */
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t host_locale = uselocale(c_locale);
    char text[BUF_DOUBLE_MAX_BYTES];
    size_t length = buf_round_trip(number, c_locale, text);
    (void)uselocale(host_locale);
    buf_bytes(buf, text, length);
}

static bool buf_json_is_plain(unsigned char character)
{
    return character >= 0x20 && character < 0x7f && character != '"' && character != '\\';
}

static void buf_json_escape(struct buf *buf, unsigned char character)
{
    static const char hex[] = "0123456789abcdef";
    static const char short_escapes[] = "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu"; /* of the control characters */
    char letter = character < 0x20 ? short_escapes[character] : character == 0x7f ? 'u' : (char)character;
    const char text[] = {'\\', letter, '0', '0', hex[character >> 4], hex[character & 15]};
    buf_bytes(buf, text, letter == 'u' ? sizeof text : 2);
}

void buf_json_bytes(struct buf *buf, const char *bytes, size_t length)
{
    const unsigned char *all = (const unsigned char *)bytes;
    size_t before = buf->length;
    buf_char(buf, '"');
    size_t plain_start = 0;
    for (size_t at = 0; at < length;) {
        if (buf_json_is_plain(all[at])) {
            at++;
            continue;
        }
        size_t bad = 0;
        size_t good = utf8_sequence(all + at, length - at, &bad);
        if (good > 1) {
            at += good;
            continue;
        }
        buf_bytes(buf, all + plain_start, at - plain_start);
        if (good == 1)
            buf_json_escape(buf, all[at]);
        else
            buf_text(buf, "\xef\xbf\xbd"); /* U+FFFD */
        at += good == 1 ? 1 : bad;
        plain_start = at;
    }
    if (plain_start < length)
        buf_bytes(buf, all + plain_start, length - plain_start);
    buf_char(buf, '"');
    if (buf->status != 0)
        buf_truncate(buf, before); /* all of it or nothing */
}

void buf_json_string(struct buf *buf, const char *text)
{
    buf_json_bytes(buf, text, strlen(text));
}

const char *buf_string(struct buf *buf)
{
    if (buf->status != 0 || buf->data == NULL)
        return "";
    buf->data[buf->length] = '\0';
    return buf->data;
}
