/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/error.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "util/utf8.h"

/* Kept of the words in front when they and the reason don't fit together: enough for what, and the start of where. */
enum { ERROR_WORDS_KEPT_BYTES = ERROR_TEXT_MAX_BYTES / 4 };

static const char error_gap[] = "...";

static void error_clean(struct error *err)
{
    size_t length = utf8_clean_line(err->text, strlen(err->text));
    err->text[length] = '\0';
}

/*
 * Appends ": <reason>" to the words in `err`. When both are too long together, the words are cut first, then the
 * reason: a long path must not push out why it failed.
 */
static void error_add_reason(struct error *err, const char *reason)
{
    size_t words_length = strlen(err->text);
    size_t needed = strlen(": ") + strlen(reason) + 1;
    if (words_length + needed > sizeof err->text && words_length > ERROR_WORDS_KEPT_BYTES) {
        size_t room = needed < sizeof err->text ? sizeof err->text - needed : 0;
        room = room > strlen(error_gap) ? room - strlen(error_gap) : 0;
        words_length = room > ERROR_WORDS_KEPT_BYTES ? room : ERROR_WORDS_KEPT_BYTES;
        words_length = utf8_clean_line(err->text, words_length); /* the cut may have split a character */
        memcpy(err->text + words_length, error_gap, sizeof error_gap);
        words_length += strlen(error_gap);
    }
    (void)snprintf(err->text + words_length, sizeof err->text - words_length, ": %s", reason);
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
