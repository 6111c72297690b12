/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/cursor.h"
#include "util/utf8.h"

enum { LOG_TIME_BYTES = 80 }; /* 24, and room for any `int` in each field */

/* The sink. A thread that logs while log_open() runs may use either half of it: both are valid at any moment. */
static atomic_int log_fd = STDERR_FILENO;
static atomic_int log_max_level = LOG_LEVEL_WARN;

static const char *const log_names[] = {
    [LOG_LEVEL_ERROR] = "ERROR", [LOG_LEVEL_WARN] = "WARN", [LOG_LEVEL_INFO] = "INFO", [LOG_LEVEL_DEBUG] = "DEBUG"};

void log_open(int fd, enum log_level level)
{
    atomic_store(&log_fd, fd);
    atomic_store(&log_max_level, (int)level);
}

enum log_level log_get_level(void)
{
    return (enum log_level)atomic_load(&log_max_level);
}

bool log_level_parse(const char *text, enum log_level *out_level)
{
    struct cursor word = cursor_of(text, strlen(text));
    for (size_t i = 0; i < ARRAY_LENGTH(log_names); i++) {
        if (cursor_equals_any_case(&word, log_names[i])) {
            *out_level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

const char *log_level_name(enum log_level level)
{
    return log_names[level];
}

/* "2026-12-01T04:16:14.123Z"; the year is cut to what fits when the clock is absurd. */
static void log_time(char out_text[LOG_TIME_BYTES])
{
    int64_t now_ns = clock_wall_ns();
    time_t seconds = (time_t)(now_ns / CLOCK_NS_PER_SECOND);
    int milliseconds = (int)(now_ns % CLOCK_NS_PER_SECOND / CLOCK_NS_PER_MS);
    struct tm date;
    if (gmtime_r(&seconds, &date) == NULL)
        memset(&date, 0, sizeof date);
    (void)snprintf(out_text, LOG_TIME_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", date.tm_year + 1900,
                   date.tm_mon + 1, date.tm_mday, date.tm_hour, date.tm_min, date.tm_sec, milliseconds);
}

void log_line(enum log_level level, const char *format, ...)
{
    if ((int)level > atomic_load(&log_max_level))
        return;
    int kept_errno = errno;
    char line[LOG_LINE_MAX_BYTES];
    char time_text[LOG_TIME_BYTES];
    log_time(time_text);
    size_t head = (size_t)snprintf(line, sizeof line, "%s %s ", time_text, log_names[level]);

    va_list args;
    va_start(args, format);
    int words = vsnprintf(line + head, sizeof line - head, format, args);
    va_end(args);
    size_t room = sizeof line - head - 1; /* the newline takes the place of the NUL */
    size_t length = words < 0 ? 0 : (size_t)words;
    length = utf8_clean_line(line + head, length < room ? length : room);
    line[head + length] = '\n';

    /* A log that can't be written has nobody to tell. A line cut by a full disk is worth no second try. */
    ssize_t wrote;
    do
        wrote = write(atomic_load(&log_fd), line, head + length + 1);
    while (wrote < 0 && errno == EINTR);
    errno = kept_errno;
}

bool log_repeat_is_due(struct log_repeat *repeat, int64_t now_mono_ns, int64_t every_ns, uint64_t *out_held_back)
{
    if (repeat->has_written && now_mono_ns - repeat->last_mono_ns < every_ns) {
        repeat->held_back++;
        return false;
    }
    *out_held_back = repeat->held_back;
    *repeat = (struct log_repeat){.has_written = true, .last_mono_ns = now_mono_ns};
    return true;
}
