/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log: lines with a level and a time, written to one descriptor with one write each.
 *
 * Only the level of a program that ends an operation logs (see docs/architecture): libraries return a struct error, and
 * log at debug only. A line that would repeat for ever is counted through a struct log_repeat and summed up.
 * The sink is the process's one mutable global: a line must be possible from anywhere. Any thread.
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Longer lines are cut. A pipe takes this many bytes at once, so lines of two processes never mix in one. */
#define LOG_LINE_MAX_BYTES 4096

/* From now on lines up to `level` go to `fd` (borrowed: stays open as long as lines may be written). Default: 2, WARN.
 */
void log_open(int fd, enum log_level level);
enum log_level log_get_level(void);

/* "ERROR", "warn", …; false, output untouched, when `text` names no level. */
bool log_level_parse(const char *text, enum log_level *out_level);
const char *log_level_name(enum log_level level);

/*
 * One line: "2026-12-01T04:16:14.123Z ERROR <words>\n". Newlines and control characters inside become blanks, bytes
 * that are not UTF-8 '?'. errno is kept.
 */
void log_line(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Counts one kind of line. Zero-initialised; belongs to one thread. */
struct log_repeat {
    bool has_written;
    int64_t last_mono_ns; /* when the last line was written */
    uint64_t held_back;   /* lines since then */
};

/*
 * May the line be written now? True the first time and then once in `every_ns`; `*out_held_back` is the number of lines
 * held back since the last one, to be named in it.
 */
MUST_CHECK bool log_repeat_is_due(struct log_repeat *repeat, int64_t now_mono_ns, int64_t every_ns,
                                  uint64_t *out_held_back);

#endif
