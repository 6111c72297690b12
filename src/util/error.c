/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/error.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

int error_set(struct error *err, int code, const char *format, ...)
{
    if (err == NULL)
        return code;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof err->text, format, args); /* cut when it is too long: still a useful text */
    va_end(args);
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

    size_t length = strlen(err->text);
    char words[128];
    const char *reason = strerror_r(number, words, sizeof words); /* the GNU one: always returns a text */
    (void)snprintf(err->text + length, sizeof err->text - length, ": %s", reason);
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

    size_t length = strlen(err->text);
    (void)snprintf(err->text + length, sizeof err->text - length, ": %s", inner);
    err->code = code;
    return code;
}
