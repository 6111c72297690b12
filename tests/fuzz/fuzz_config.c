/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * YAML from anywhere: config_parse() takes it with values in their ranges, or refuses it with a printable reason that
 * names file and line.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "fuzz.h"
#include "util/buf.h"
#include "util/config.h"
#include "util/cursor.h"
#include "util/utf8.h"

enum { TEXT_MAX_BYTES = 1 << 20 };

static const char *const units[] = {"US", "NS", "MS", "SEC", NULL};

static const struct config_option options[] = {
    {.name = "interval_ms",
     .keys = {"tracer.interval", "features.interval"},
     .kind = CONFIG_INT,
     .min = 1,
     .max = 3600000,
     .initial = 1000,
     .help = "period"},
    {.name = "threads",
     .keys = {"tracer.libuv_threads", "profiler.libuv_threads"},
     .kind = CONFIG_INT,
     .min = 1,
     .max = 128,
     .initial = 1,
     .help = "threads"},
    {.name = "enable", .keys = {"enable"}, .kind = CONFIG_BOOL, .help = "run at all"},
    {.name = "time", .keys = {"tracer.time_metric"}, .kind = CONFIG_ENUM, .words = units, .help = "unit"},
    {.name = "file", .keys = {"tracer.log_file", "profiler.log_file"}, .kind = CONFIG_TEXT, .help = "prefix"},
};
static const char *const foreign_keys[] = {"profiler", "features.omnistat", NULL};
static const struct config_table table = {options, ARRAY_LENGTH(options), foreign_keys};

/* One line of UTF-8 without control characters? */
static bool is_printable(const char *text, size_t length)
{
    char copy[2 * ERROR_TEXT_MAX_BYTES];
    assert(length < sizeof copy);
    memcpy(copy, text, length);
    return utf8_clean_line(copy, length) == length && memcmp(copy, text, length) == 0;
}

/* Takes "fuzz.yaml:<line>: " and checks the line. */
static bool accept_place(struct cursor *text, size_t lines)
{
    uint64_t line;
    return cursor_accept_text(text, "fuzz.yaml:") && cursor_u64(text, &line) && line >= 1 && line <= lines &&
           cursor_accept_text(text, ": ");
}

static void check_values(const struct config *config)
{
    int64_t interval_ms = config_int(config, "interval_ms");
    int64_t threads = config_int(config, "threads");
    assert(interval_ms >= 1 && interval_ms <= 3600000);
    assert(threads >= 1 && threads <= 128);
    assert(config_enum(config, "time") < ARRAY_LENGTH(units) - 1);
    assert(strlen(config_text(config, "file")) <= CONFIG_TEXT_MAX_BYTES);
    (void)config_bool(config, "enable");

    CLEANUP(buf_cleanup) struct buf json;
    buf_init(&json, TEXT_MAX_BYTES);
    config_json(config, &json);
    assert(buf_status(&json, NULL) == 0);
}

static void check_warnings(const struct buf *warnings, size_t lines)
{
    struct cursor rest = cursor_of(warnings->data, warnings->length);
    struct cursor line;
    while (cursor_line(&rest, &line)) {
        assert(is_printable(line.at, cursor_left(&line)));
        assert(accept_place(&line, lines));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const environ_list[] = {NULL};
    const struct config_yaml yaml = {.name = "fuzz.yaml", .text = (const char *)data, .length = size};
    size_t lines = 2; /* YAML has more kinds of line ends than one: this counts too many rather than too few */
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n' || data[i] == '\r' || data[i] >= 0x80 ? 1 : 0;

    CLEANUP(config_cleanup) struct config *config = NULL;
    CLEANUP(buf_cleanup) struct buf warnings;
    struct error err = {0};
    buf_init(&warnings, TEXT_MAX_BYTES);
    int rc = config_parse(&table, &yaml, environ_list, &warnings, &config, &err);
    check_warnings(&warnings, lines);
    if (rc == 0) {
        check_values(config);
        return 0;
    }
    assert(rc == -EINVAL && config == NULL);
    struct cursor text = cursor_of(err.text, strlen(err.text));
    assert(is_printable(err.text, cursor_left(&text)));
    assert(accept_place(&text, lines));
    return 0;
}
