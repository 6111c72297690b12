/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of a CSV file: each event is a line of JSON that our own strict reader of lines takes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "pfw/line.h"
#include "service/omnistat.h"

enum { OUT_MAX_BYTES = 64 << 20 };

static void check_lines(const struct buf *out, size_t expected)
{
    struct cursor all = cursor_of(out->data, out->length);
    struct cursor line;
    size_t lines = 0;
    while (cursor_line(&all, &line)) {
        struct pfw_line parsed;
        int rc = pfw_line_parse(line.at, cursor_left(&line), &parsed, NULL);
        assert(rc == 0);
        lines++;
    }
    assert(lines == expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct pfw_source source = {.host_hash = "0123456789abcdef", .pid = 17, .tid = 17};
    const struct omnistat_request request = {.source = &source,
                                             .time_column = "timestamp",
                                             .counters = "a,b b",
                                             .has_all_counters = size % 2 == 0,
                                             .time = OPTIONS_TIME_NS};
    struct omnistat *omnistat = NULL;
    if (omnistat_new(&request, &omnistat, NULL) < 0)
        return 0;
    struct buf out;
    buf_init(&out, OUT_MAX_BYTES);
    size_t events = 0;
    struct cursor all = cursor_of((const char *)data, size);
    struct cursor line;
    while (out.status == 0 && cursor_line(&all, &line)) {
        struct error err = {0};
        int rc = omnistat_line(omnistat, line, &out, &err);
        assert(rc >= 0 || err.text[0] != '\0');
        events += rc > 0 ? (size_t)rc : 0;
    }
    if (out.status == 0)
        check_lines(&out, events);
    buf_fini(&out);
    omnistat_free(omnistat);
    return 0;
}
