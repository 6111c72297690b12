/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/error.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "util/utf8.h"

static const char error_gap[] = "...";

/* Kept of the words in front, however long the reason is: enough for what failed, and the start of where. */
enum { ERROR_HEAD_MIN_BYTES = ERROR_TEXT_MAX_BYTES / 4, ERROR_GAP_BYTES = sizeof error_gap - 1 };

static void error_clean(struct error *err)
{
    size_t length = utf8_clean_line(err->text, strlen(err->text));
    err->text[length] = '\0';
}

/*
 * Appends ": <reason>" to the words in `err`. When that is too long together, it is cut in the middle: a long path must
 * not push out why it failed, which stands at the end.
 */
static void error_add_reason(struct error *err, const char *reason)
{
    error_clean(err); /* first, so that a cut within a character is the only thing that can break one */
    char whole[2 * ERROR_TEXT_MAX_BYTES + 2];
    size_t head = strlen(err->text);
    size_t length = (size_t)snprintf(whole, sizeof whole, "%s: %s", err->text, reason);
    size_t room = sizeof err->text - 1;
    if (length > room) {
        size_t tail = length - head;
        if (tail > room - ERROR_GAP_BYTES - ERROR_HEAD_MIN_BYTES)
            tail = room - ERROR_GAP_BYTES - ERROR_HEAD_MIN_BYTES;
        head = utf8_clean_line(whole, room - ERROR_GAP_BYTES - tail);
        const char *tail_start = whole + length - tail;
        while (((unsigned char)*tail_start & 0xc0) == 0x80)
            tail_start++; /* the rest of a character that is cut away */
        (void)snprintf(err->text, sizeof err->text, "%.*s%s%s", (int)head, whole, error_gap, tail_start);
    } else {
        memcpy(err->text, whole, length + 1);
    }
    error_clean(err);
}

int error_set(struct error *err, int code, const char *format, ...)
{
    if (err == NULL)
        return code;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof err->text, format, args); /* cut when it is too long: still a useful text */
    va_end(args);
    error_clean(err);
    err->code = code;
    return code;
}

int error_errno(struct error *err, const char *format, ...)
{
    int number = errno;
    if (err == NULL)
        return -number;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);

    char words[128];
    error_add_reason(err, strerror_r(number, words, sizeof words)); /* the GNU one: always returns a text */
    err->code = -number;
    return -number;
}

int error_wrap(struct error *err, int code, const char *format, ...)
{
    if (err == NULL)
        return code;
    char inner[ERROR_TEXT_MAX_BYTES];
    memcpy(inner, err->text, sizeof inner);
    inner[sizeof inner - 1] = '\0';

    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    error_add_reason(err, inner);
    err->code = code;
    return code;
}
