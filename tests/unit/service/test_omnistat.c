/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/omnistat.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"

enum { LINES_MAX_BYTES = 16 << 20 };

static const struct pfw_source source = {.host_hash = "0123456789abcdef", .pid = 17, .tid = 17};
static const struct omnistat_request usual = {
    .source = &source, .time_column = "timestamp", .counters = "a, b b,c", .time = OPTIONS_TIME_US};

static void omnistat_cleanup(struct omnistat **omnistat)
{
    omnistat_free(*omnistat);
}

static struct omnistat *reader_new(const struct omnistat_request *request)
{
    struct omnistat *omnistat = NULL;
    assert_int_equal(omnistat_new(request, &omnistat, NULL), 0);
    return omnistat;
}

static int give(struct omnistat *omnistat, const char *line, struct buf *out, struct error *err)
{
    return omnistat_line(omnistat, cursor_of(line, strlen(line)), out, err);
}

/* The events of one row below a header, as "name=value@ts host/device;" each. */
static void assert_row(const struct omnistat_request *request, const char *header, const char *row,
                       const char *expected)
{
    CLEANUP(omnistat_cleanup) struct omnistat *omnistat = reader_new(request);
    CLEANUP(buf_cleanup) struct buf out, short_form;
    buf_init(&out, LINES_MAX_BYTES);
    buf_init(&short_form, LINES_MAX_BYTES);
    assert_int_equal(give(omnistat, header, &out, NULL), 0);
    int events = give(omnistat, row, &out, NULL);
    assert_true(events >= 0);
    const char *line = buf_string(&out);
    for (int i = 0; i < events; i++) {
        const char *value = strstr(line, "\"value\":") + 8;
        const char *ts = strstr(line, "\"ts\":") + 5;
        buf_printf(&short_form, "%.*s=%.*s@%.*s;", (int)strcspn(line + 9, "\""), line + 9, (int)strcspn(value, ",}"),
                   value, (int)strcspn(ts, ","), ts);
        line = strchr(line, '\n') + 1;
    }
    assert_string_equal(line, ""); /* as many lines as events */
    assert_string_equal(buf_string(&short_form), expected);
}

static void row_becomes_an_event_a_metric(void **state)
{
    (void)state;
    CLEANUP(omnistat_cleanup) struct omnistat *omnistat = reader_new(&usual);
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, LINES_MAX_BYTES);
    assert_int_equal(give(omnistat, "timestamp,hostname,device_id,a,x", &out, NULL), 0);
    assert_int_equal(give(omnistat, "1710000000.5,node001,0,85.5,7", &out, NULL), 1);
    assert_string_equal(buf_string(&out),
                        "{\"name\":\"a\",\"cat\":\"omnistat\",\"type\":12,\"ts\":1710000000500000,\"ph\":2,\"pid\":17,"
                        "\"tid\":0,\"args\":{\"hhash\":\"0123456789abcdef\",\"source\":\"omnistat\",\"metric\":\"a\","
                        "\"value\":85.5,\"hostname\":\"node001\",\"device_id\":\"0\","
                        "\"original_timestamp\":\"1710000000.5\"}}\n");
}

static void columns_are_found_by_name_in_any_order(void **state)
{
    (void)state;
    assert_row(&usual, "c,timestamp,b b,unknown,a", "1,1710000000,2,3,4",
               "c=1@1710000000000000;b b=2@1710000000000000;a=4@1710000000000000;");
}

static void all_columns_are_taken_when_asked_for(void **state)
{
    (void)state;
    struct omnistat_request all = usual;
    all.counters = "";
    all.has_all_counters = true;
    assert_row(&all, "timestamp,p,q,text", "1710000000,1,2,three", "p=1@1710000000000000;q=2@1710000000000000;");
}

static void times_of_all_units_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *time;
        enum options_stamp stamp;
        const char *expected;
    } cases[] = {
        {"1710000000", OPTIONS_STAMP_AUTO, "a=1@1710000000000000000;"},
        {"1710000000.123456789", OPTIONS_STAMP_AUTO, "a=1@1710000000123456789;"},
        {"1710000000.", OPTIONS_STAMP_AUTO, "a=1@1710000000000000000;"},
        {"1710000000123", OPTIONS_STAMP_AUTO, "a=1@1710000000123000000;"},
        {"1710000000123456", OPTIONS_STAMP_AUTO, "a=1@1710000000123456000;"},
        {"1710000000123456789", OPTIONS_STAMP_AUTO, "a=1@1710000000123456789;"},
        {"1.71e9", OPTIONS_STAMP_AUTO, "a=1@1710000000000000000;"},
        {"5", OPTIONS_STAMP_MS, "a=1@5000000;"},
        {"5", OPTIONS_STAMP_US, "a=1@5000;"},
        {"5", OPTIONS_STAMP_NS, "a=1@5;"},
        {"0", OPTIONS_STAMP_SEC, "a=1@0;"},
        {"-5", OPTIONS_STAMP_AUTO, ""},
        {"", OPTIONS_STAMP_AUTO, ""},
        {"yesterday", OPTIONS_STAMP_AUTO, ""},
        {"2024-03-09 16:00:00", OPTIONS_STAMP_AUTO, ""},
        {"1e300", OPTIONS_STAMP_AUTO, ""},
        {"99999999999999999999999999", OPTIONS_STAMP_AUTO, ""},
        {"nan", OPTIONS_STAMP_AUTO, ""},
        {"9e18", OPTIONS_STAMP_SEC, ""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct omnistat_request request = usual;
        request.stamp = cases[i].stamp;
        request.time = OPTIONS_TIME_NS;
        char row[128];
        (void)snprintf(row, sizeof row, "%s,1", cases[i].time);
        assert_row(&request, "timestamp,a", row, cases[i].expected);
    }
}

static void fields_of_all_kinds_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *row, *expected;
    } cases[] = {
        {"5,1,2", "a=1@5000000;c=2@5000000;"},
        {"5,1,2\r", "a=1@5000000;c=2@5000000;"},
        {"5, 1 ,2", "a=1@5000000;c=2@5000000;"},
        {"5,,2", "c=2@5000000;"},
        {"5,nan,inf", ""},
        {"5,1", "a=1@5000000;"},
        {"5,1,2,3,4", "a=1@5000000;c=2@5000000;"},
        {"\"5\",\"1\",2", "a=1@5000000;c=2@5000000;"},
        {"5,\"1\"x,2", ""},
        {"5,\"1,2", ""},
        {"", ""},
        {",,", ""},
        {"5,-1.5e3,0.25", "a=-1500@5000000;c=0.25@5000000;"},
        {"5,1%,2", "c=2@5000000;"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        assert_row(&usual, "timestamp,a,c", cases[i].row, cases[i].expected);
}

static void quotes_and_any_bytes_are_kept_and_escaped(void **state)
{
    (void)state;
    CLEANUP(omnistat_cleanup) struct omnistat *omnistat = reader_new(&usual);
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, LINES_MAX_BYTES);
    assert_int_equal(give(omnistat, "\"timestamp\",\"hostname\",device_id,a", &out, NULL), 0);
    assert_int_equal(give(omnistat, "5,\"a \"\"b\"\", c\",\xff\x01,1", &out, NULL), 1);
    assert_non_null(strstr(buf_string(&out), "\"hostname\":\"a \\\"b\\\", c\",\"device_id\":\"\xef\xbf\xbd\\u0001\""));
}

static void header_without_what_was_asked_for_is_refused_with_words(void **state)
{
    (void)state;
    static const struct {
        const char *header, *words;
    } cases[] = {
        {"time,a", "no column 'timestamp'"},
        {"timestamp,x,y", "features.omnistat.counters"},
        {"", "no column 'timestamp'"},
        {"timestamp,\"a", "no line of column names"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(omnistat_cleanup) struct omnistat *omnistat = reader_new(&usual);
        CLEANUP(buf_cleanup) struct buf out;
        buf_init(&out, LINES_MAX_BYTES);
        struct error err = {0};
        assert_int_equal(give(omnistat, cases[i].header, &out, &err), -EINVAL);
        assert_non_null(strstr(err.text, cases[i].words));
        assert_int_equal(give(omnistat, "timestamp,a", &out, NULL), 0); /* another try is one */
        assert_int_equal(give(omnistat, "5,1", &out, NULL), 1);
    }
}

static void rows_without_sense_are_counted_and_spoil_only_themselves(void **state)
{
    (void)state;
    CLEANUP(omnistat_cleanup) struct omnistat *omnistat = reader_new(&usual);
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, LINES_MAX_BYTES);
    assert_int_equal(give(omnistat, "timestamp,a", &out, NULL), 0);
    assert_int_equal(give(omnistat, "never,1", &out, NULL), 0);
    char *huge = malloc(OMNISTAT_LINE_MAX_BYTES + 2);
    assert_non_null(huge);
    memset(huge, ',', OMNISTAT_LINE_MAX_BYTES + 1);
    huge[OMNISTAT_LINE_MAX_BYTES + 1] = '\0';
    assert_int_equal(give(omnistat, huge, &out, NULL), 0);
    huge[OMNISTAT_COLUMNS_MAX] = '\0'; /* one column too many */
    assert_int_equal(give(omnistat, huge, &out, NULL), 0);
    free(huge);
    assert_int_equal(omnistat_bad_rows(omnistat), 3);
    assert_int_equal(give(omnistat, "5,1", &out, NULL), 1);
    omnistat_restart(omnistat);
    assert_int_equal(give(omnistat, "a,timestamp", &out, NULL), 0);
    assert_int_equal(give(omnistat, "1,5", &out, NULL), 1);
}

static void without_memory_a_header_is_no_header(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct omnistat *omnistat = NULL;
        CLEANUP(buf_cleanup) struct buf out;
        buf_init(&out, LINES_MAX_BYTES);
        allocation_fail_at(n);
        int rc = omnistat_new(&usual, &omnistat, NULL);
        if (rc == 0)
            rc = give(omnistat, "timestamp,a,c", &out, NULL);
        bool has_failed = allocation_stop();
        omnistat_free(omnistat);
        assert_true(rc == 0 || has_failed);
        if (!has_failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_becomes_an_event_a_metric),
        cmocka_unit_test(columns_are_found_by_name_in_any_order),
        cmocka_unit_test(all_columns_are_taken_when_asked_for),
        cmocka_unit_test(times_of_all_units_are_understood),
        cmocka_unit_test(fields_of_all_kinds_are_read),
        cmocka_unit_test(quotes_and_any_bytes_are_kept_and_escaped),
        cmocka_unit_test(header_without_what_was_asked_for_is_refused_with_words),
        cmocka_unit_test(rows_without_sense_are_counted_and_spoil_only_themselves),
        cmocka_unit_test(without_memory_a_header_is_no_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
