/* SPDX-License-Identifier: BSD-3-Clause */
#include "metric/exposition_parse.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/random.h"
#include "util/buf.h"

enum { TEXT_MAX_BYTES = 1 << 20, SAMPLES_MAX = 1000, ROUNDS = 2000, PICKS = 8 };

/* One line for each sample: name kind type value@time "doc". */
static void put(void *context, const struct exposition_sample *sample)
{
    struct buf *out = context;
    assert_int_equal(strlen(sample->name), sample->name_bytes);
    buf_bytes(out, sample->name, sample->name_bytes);
    buf_printf(out, " %c%d ", sample->kind == METRIC_COUNTER ? 'c' : 'g', sample->type);
    if (isfinite(sample->value))
        buf_double(out, sample->value);
    else
        buf_text(out, isnan(sample->value) ? "NaN" : sample->value > 0 ? "+Inf" : "-Inf");
    if (sample->wall_us != 0)
        buf_printf(out, "@%" PRId64, sample->wall_us);
    buf_printf(out, "%s%s;", sample->doc[0] != '\0' ? " " : "", sample->doc);
}

static int parse(const char *text, size_t length, bool is_openmetrics, struct buf *out,
                 struct exposition_parse_report *report)
{
    const struct exposition_parse_config config = {
        .is_openmetrics = is_openmetrics, .samples_max = SAMPLES_MAX, .on_sample = put, .context = out};
    return exposition_parse_text(text, length, &config, report);
}

struct text_case {
    const char *text;
    const char *samples;
    size_t lines_bad;
};

static void check(const struct text_case *cases, size_t count, bool is_openmetrics)
{
    for (size_t i = 0; i < count; i++) {
        CLEANUP(buf_cleanup) struct buf out;
        buf_init(&out, TEXT_MAX_BYTES);
        struct exposition_parse_report report;
        assert_int_equal(parse(cases[i].text, strlen(cases[i].text), is_openmetrics, &out, &report), 0);
        if (strcmp(buf_string(&out), cases[i].samples) != 0 || report.lines_bad != cases[i].lines_bad)
            fail_msg("'%s': '%s', %zu bad lines (%s)", cases[i].text, buf_string(&out), report.lines_bad,
                     report.first_err.text);
    }
}

static void samples_are_read_as_the_format_has_them(void **state)
{
    (void)state;
    static const struct text_case cases[] = {
        {"", "", 0},
        {"up 1\n", "up g0 1;", 0},
        {"up 1", "up g0 1;", 0},
        {"up 1\r\ndown 2\r\n", "up g0 1;down g0 2;", 0},
        {"\n \n\t\n# a comment\n#\n", "", 0},
        {"  up\t1  \n", "up g0 1;", 0},
        {"a:b_1 -1.5e-3\n", "a:b_1 g0 -0.0015;", 0},
        {"a +Inf\nb -inf\nc NaN\nd Inf\ne 0x10\n", "a g0 +Inf;b g0 -Inf;c g0 NaN;d g0 +Inf;", 1},
        {"a 1 1395066363000\n", "a g0 1@1395066363000000;", 0},
        {"a 1 -1\n", "a g0 1@-1000;", 0},
        {"a{} 1\nb{x=\"\"} 2\n", "a g0 1;b{x=\"\"} g0 2;", 0},
        {"a {x = \"1\" , y=\"2\",} 3\n", "a{x=\"1\",y=\"2\"} g0 3;", 0},
        {"a{x=\"}{,= # \"} 3\n", "a{x=\"}{,= # \"} g0 3;", 0},
        {"a{x=\"C:\\\\D\\\"\\n\"}3\n", "a{x=\"C:\\\\D\\\"\\n\"} g0 3;", 0},
        {"# HELP a What \\\\ it\\nis.\n# TYPE a counter\na 3\n", "a c1 3 What \\ it is.;", 0},
        {"# TYPE a counter\n# HELP a x\na_total 3\n", "a_total c1 3 x;", 0},
        {"b_total 3\n# TYPE c_total gauge\nc_total 1\n", "b_total c0 3;c_total g2 1;", 0},
        {"# TYPE h histogram\nh_bucket{le=\"0.5\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 0.75\nh_count 2\n",
         "h_bucket{le=\"0.5\"} c3 1;h_bucket{le=\"+Inf\"} c3 2;h_sum c3 0.75;h_count c3 2;", 0},
        {"# TYPE s summary\ns{quantile=\"0.9\"} 1\ns_sum 3\ns_count 2\n",
         "s{quantile=\"0.9\"} g4 1;s_sum c4 3;s_count c4 2;", 0},
        {"# TYPE g gauge\ng 1\n# TYPE g_count untyped\ng_count 2\n", "g g2 1;g_count g0 2;", 0},
        {"#HELPa x\n# HELP\n# HELP  a x\na 1\n", "a g0 1 x;", 1},
        {"# EOF\na 1\n", "a g0 1;", 0},
    };
    check(cases, ARRAY_LENGTH(cases), false);
}

static void openmetrics_is_read_as_its_specification_has_it(void **state)
{
    (void)state;
    static const struct text_case cases[] = {
        {"# TYPE a counter\n# UNIT a seconds\na_total 1 2.5\na_created 1.5\n# EOF\n",
         "a_total c1 1@2500000;a_created g1 1.5;", 0},
        {"# TYPE h histogram\nh_bucket{le=\"1.0\"} 11 # {trace_id=\"K\"} 0.67 1520879607.789\n# EOF",
         "h_bucket{le=\"1.0\"} c3 11;", 0},
        {"a_total 11 1520879607.5 # {} 0.67\n# EOF\n", "a_total c0 11@1520879607500000;", 0},
        {"# TYPE i info\ni_info{v=\"1\"} 1\n# TYPE st stateset\nst{st=\"on\"} 1\n# EOF\n",
         "i_info{v=\"1\"} g5 1;st{st=\"on\"} g6 1;", 0},
        {"# TYPE g gaugehistogram\ng_bucket{le=\"1\"} 2\ng_gcount 2\ng_gsum -3\n# EOF\n",
         "g_bucket{le=\"1\"} g7 2;g_gcount g7 2;g_gsum g7 -3;", 0},
        {"a 1\n# EOF\nb 2\n", "a g0 1;", 1},
        {"a 1 # {x=\"1\"}\nb 1 # {x=} 2\nc 1 # 2\nd 1 # {x=\"1\"} 2 3 4\ne 1e400\nf 1 1e300\n", "", 6},
    };
    check(cases, ARRAY_LENGTH(cases), true);
}

static void a_bad_line_spoils_itself_alone(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "1a 1",
        "a-b 1",
        "a",
        "a ",
        "a x",
        "a 1 x",
        "a 1 2 3",
        "a 1 1.5",
        "a{x} 1",
        "a{x=} 1",
        "a{x=1} 1",
        "a{x=\"1\" 1",
        "a{x=\"1} 1",
        "a{=\"1\"} 1",
        "a{1=\"1\"} 1",
        "a{x=\"1\"y=\"2\"} 1",
        "a{x=\"1\",x=\"2\"} 1",
        "a{,} 1",
        "{x=\"1\"} 1",
        "a{x=\"1\"}",
        "a 1e999",
        "a 1 99999999999999999999",
        "# TYPE a what",
        "# TYPE a",
        "# TYPE a b c",
        "# TYPE 1 gauge",
        "# HELP a-b x",
        "a{x=\"\\",
        "a{x:y=\"1\"} 1",
        "\357\273\277a 1",
        "a 1 # x",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        CLEANUP(buf_cleanup) struct buf text;
        CLEANUP(buf_cleanup) struct buf out;
        buf_init(&text, TEXT_MAX_BYTES);
        buf_init(&out, TEXT_MAX_BYTES);
        buf_printf(&text, "before 1\n%s\nafter 2\n", bad[i]);
        struct exposition_parse_report report;
        assert_int_equal(parse(text.data, text.length, false, &out, &report), 0);
        if (strcmp(buf_string(&out), "before g0 1;after g0 2;") != 0 || report.lines_bad != 1 ||
            report.first_bad_line != 2)
            fail_msg("'%s': '%s', %zu bad lines", bad[i], buf_string(&out), report.lines_bad);
    }
}

static void limits_hold(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&text, TEXT_MAX_BYTES);
    buf_init(&out, TEXT_MAX_BYTES);
    buf_text(&text, "a{x=\"");
    for (size_t i = 0; i < EXPOSITION_PARSE_LINE_MAX_BYTES; i++)
        buf_char(&text, 'x');
    buf_text(&text, "\"} 1\n# HELP b ");
    for (size_t i = 0; i < 2 * EXPOSITION_PARSE_DOC_MAX_BYTES; i++)
        buf_text(&text, "é");
    buf_text(&text, "\nc{");
    for (unsigned i = 0; i <= 32; i++)
        buf_printf(&text, "l%u=\"\",", i);
    buf_text(&text, "} 1\nn");
    buf_char(&text, '\0');
    buf_text(&text, " 1\n");
    for (unsigned i = 0; i < SAMPLES_MAX + 5; i++)
        buf_text(&text, "b 1\n");
    struct exposition_parse_report report;
    assert_int_equal(parse(text.data, text.length, false, &out, &report), 0);
    assert_int_equal(report.lines_bad, 3);
    assert_int_equal(report.samples, SAMPLES_MAX);
    assert_int_equal(report.samples_refused, 5);
    const char *first = buf_string(&out);
    assert_int_equal(strcspn(first, ";"), strlen("b g0 1 ") + EXPOSITION_PARSE_DOC_MAX_BYTES);
}

/* A text of random good lines, in one of the ways in which each may be written, and what it says. */
static void write_line(struct random *random, struct buf *text, struct buf *samples)
{
    static const char *const blanks[] = {" ", "  ", "\t", " \t "};
    static const char *const values[] = {"x", "\\\\", "\\\"", "\\n", "{", "}", ",", "="};
    size_t labels = random_below(random, 4);
    CLEANUP(buf_cleanup) struct buf name;
    buf_init(&name, TEXT_MAX_BYTES);
    buf_printf(&name, "m%zu", random_below(random, 5));
    buf_bytes(text, name.data, name.length);
    if (labels > 0)
        buf_text(text, random_below(random, 2) == 0 ? "{" : " { ");
    for (size_t i = 0; i < labels; i++) {
        const char *value = values[random_below(random, PICKS)];
        buf_printf(&name, "%cl%zu=\"%s\"", i == 0 ? '{' : ',', i, value);
        buf_printf(text, random_below(random, 2) == 0 ? "l%zu=\"%s\"" : " l%zu = \"%s\" ", i, value);
        if (i + 1 < labels || random_below(random, 2) == 0)
            buf_char(text, ',');
    }
    if (labels > 0) {
        buf_char(text, '}');
        buf_char(&name, '}');
    }
    double number = (double)(int64_t)random_u64(random) / 1024;
    buf_text(text, blanks[random_below(random, 4)]);
    buf_double(text, number);
    buf_bytes(samples, name.data, name.length);
    buf_text(samples, " g0 ");
    buf_double(samples, number);
    if (random_below(random, 2) == 0) {
        int64_t wall_ms = (int64_t)random_below(random, 1000000) + 1;
        buf_printf(text, "%s%" PRId64, blanks[random_below(random, 4)], wall_ms);
        buf_printf(samples, "@%" PRId64, wall_ms * 1000);
    }
    buf_text(text, random_below(random, 2) == 0 ? "\n" : " \r\n");
    buf_char(samples, ';');
}

static void whatever_is_written_is_read_whatever_lies_between(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (unsigned round = 0; round < ROUNDS; round++) {
        CLEANUP(buf_cleanup) struct buf text;
        CLEANUP(buf_cleanup) struct buf samples;
        CLEANUP(buf_cleanup) struct buf out;
        buf_init(&text, TEXT_MAX_BYTES);
        buf_init(&samples, TEXT_MAX_BYTES);
        buf_init(&out, TEXT_MAX_BYTES);
        size_t lines = random_below(&random, 20);
        size_t bad = 0;
        for (size_t i = 0; i < lines; i++) {
            write_line(&random, &text, &samples);
            if (random_below(&random, 3) > 0)
                continue;
            bad++;
            buf_char(&text, '!'); /* no line begins so */
            for (size_t bytes = random_below(&random, 30); bytes > 0; bytes--) {
                char byte = (char)random_below(&random, 256);
                buf_char(&text, byte == '\n' ? ' ' : byte);
            }
            buf_char(&text, '\n');
        }
        struct exposition_parse_report report;
        assert_int_equal(parse(text.length > 0 ? text.data : "", text.length, false, &out, &report), 0);
        assert_string_equal(buf_string(&out), buf_string(&samples));
        assert_int_equal(report.lines_bad, bad);
    }
}

static void without_memory_it_says_so(void **state)
{
    (void)state;
    static const char text[] = "# HELP a x\n# TYPE a counter\na{x=\"1\"} 1 2\nb 1\n";
    bool has_failed = true;
    for (size_t n = 0; has_failed; n++) {
        CLEANUP(buf_cleanup) struct buf out;
        buf_init(&out, TEXT_MAX_BYTES);
        (void)buf_reserve(&out, TEXT_MAX_BYTES / 2); /* not what is to fail */
        struct exposition_parse_report report;
        allocation_fail_at(n);
        int rc = parse(text, sizeof text - 1, false, &out, &report);
        has_failed = allocation_stop();
        assert_int_equal(rc, has_failed ? -ENOMEM : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_read_as_the_format_has_them),
        cmocka_unit_test(openmetrics_is_read_as_its_specification_has_it),
        cmocka_unit_test(a_bad_line_spoils_itself_alone),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(whatever_is_written_is_read_whatever_lies_between),
        cmocka_unit_test(without_memory_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
