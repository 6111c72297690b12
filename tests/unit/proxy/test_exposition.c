/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/exposition.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/comma.h"
#include "support/scratch.h"
#include "util/cleanup.h"

enum { TEXT_MAX_BYTES = 1 << 20, METRICS_MAX = 1000 };

static const char strange_value[] = "m{a=\"say \\\"hi\\\"\\\\\\n\"}";

struct fixture {
    struct registry_budget budget;
    struct registry *reg;
    struct buf text;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->budget.metrics_max = METRICS_MAX;
    fixture->reg = registry_new(METRICS_MAX, &fixture->budget);
    assert_non_null(fixture->reg);
    buf_init(&fixture->text, TEXT_MAX_BYTES);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    registry_free(fixture->reg);
    buf_fini(&fixture->text);
    free(fixture);
    return 0;
}

static void put(struct fixture *fixture, const char *name, const char *doc, struct metric_value value)
{
    struct metric *metric = NULL;
    assert_int_equal(registry_find_or_add(fixture->reg, name, strlen(name), doc, value.kind, &metric, NULL), 0);
    metric->value = value;
}

static void put_counter(struct fixture *fixture, const char *name, double value)
{
    put(fixture, name, "", metric_counter(value, 0));
}

/* All of it, in pieces of `bytes_enough`. */
static const char *told(struct fixture *fixture, enum exposition_form form, size_t bytes_enough)
{
    buf_reset(&fixture->text);
    CLEANUP(buf_cleanup) struct buf piece;
    buf_init(&piece, TEXT_MAX_BYTES);
    struct exposition exposition = {.form = form};
    for (bool has_more = true; has_more;) {
        buf_reset(&piece);
        has_more = exposition_append(&exposition, fixture->reg, bytes_enough, &piece);
        if (piece.length > 0)
            buf_bytes(&fixture->text, piece.data, piece.length);
    }
    exposition_end(form, &fixture->text);
    return buf_string(&fixture->text);
}

static void families_come_in_order_with_their_kind_and_doc(void **state)
{
    struct fixture *fixture = *state;
    put(fixture, "z_total", "last", metric_counter(3, 0));
    put(fixture, "heat{at=\"b\"}", "", metric_gauge(2.5, 0));
    put(fixture, "heat{at=\"a\"}", "how hot", metric_gauge(-1, 0));
    put(fixture, "hea", "", metric_counter(0, 0));
    assert_string_equal(told(fixture, EXPOSITION_TEXT, TEXT_MAX_BYTES), "# TYPE hea counter\n"
                                                                        "hea 0\n"
                                                                        "# HELP heat how hot\n"
                                                                        "# TYPE heat gauge\n"
                                                                        "heat{at=\"a\"} -1\n"
                                                                        "heat{at=\"b\"} 2.5\n"
                                                                        "# HELP z_total last\n"
                                                                        "# TYPE z_total counter\n"
                                                                        "z_total 3\n");
}

static void doc_is_taken_from_whichever_metric_of_the_family_has_one(void **state)
{
    struct fixture *fixture = *state;
    put(fixture, "m{a=\"1\"}", "", metric_counter(1, 0));
    put(fixture, "m{a=\"2\"}", "said later", metric_counter(1, 0));
    assert_non_null(strstr(told(fixture, EXPOSITION_TEXT, TEXT_MAX_BYTES), "# HELP m said later\n# TYPE m counter\n"));
}

static void openmetrics_counters_end_in_total(void **state)
{
    struct fixture *fixture = *state;
    put_counter(fixture, "mpi___hits___mpi_send", 1);
    put(fixture, "reads_total", "reads", metric_counter(2, 0));
    put(fixture, "level_total", "a gauge all the same", metric_gauge(1, 0));
    assert_string_equal(told(fixture, EXPOSITION_OPENMETRICS, TEXT_MAX_BYTES),
                        "# HELP level_total a gauge all the same\n"
                        "# TYPE level_total gauge\n"
                        "level_total 1\n"
                        "# TYPE mpi___hits___mpi_send unknown\n"
                        "mpi___hits___mpi_send 1\n"
                        "# HELP reads reads\n"
                        "# TYPE reads counter\n"
                        "reads_total 2\n"
                        "# EOF\n");
}

static void openmetrics_has_no_family_twice(void **state)
{
    struct fixture *fixture = *state;
    put_counter(fixture, "reads{disk=\"a\"}", 1);
    put_counter(fixture, "reads_more", 1);
    put_counter(fixture, "reads_total", 1);
    const char *text = told(fixture, EXPOSITION_OPENMETRICS, TEXT_MAX_BYTES);
    assert_non_null(strstr(text, "# TYPE reads unknown\nreads{disk=\"a\"} 1\n"));
    assert_non_null(strstr(text, "# TYPE reads_total unknown\nreads_total 1\n"));
}

static void family_of_both_kinds_has_no_type(void **state)
{
    struct fixture *fixture = *state;
    put(fixture, "m_total{a=\"1\"}", "", metric_counter(1, 0));
    put(fixture, "m_total{a=\"2\"}", "", metric_gauge(1, 0));
    assert_non_null(strstr(told(fixture, EXPOSITION_TEXT, TEXT_MAX_BYTES), "# TYPE m_total untyped\n"));
    assert_non_null(strstr(told(fixture, EXPOSITION_OPENMETRICS, TEXT_MAX_BYTES), "# TYPE m_total unknown\n"));
}

static void docs_are_escaped_as_each_form_wants_it(void **state)
{
    struct fixture *fixture = *state;
    put(fixture, "m", "a \"b\"\nc\\d", metric_gauge(1, 0));
    assert_non_null(strstr(told(fixture, EXPOSITION_TEXT, TEXT_MAX_BYTES), "# HELP m a \"b\"\\nc\\\\d\n"));
    assert_non_null(strstr(told(fixture, EXPOSITION_OPENMETRICS, TEXT_MAX_BYTES), "# HELP m a \\\"b\\\"\\nc\\\\d\n"));
}

static void labels_stay_escaped(void **state)
{
    struct fixture *fixture = *state;
    put_counter(fixture, strange_value, 1);
    assert_string_equal(told(fixture, EXPOSITION_TEXT, TEXT_MAX_BYTES),
                        "# TYPE m counter\nm{a=\"say \\\"hi\\\"\\\\\\n\"} 1\n");
}

static void every_size_of_piece_gives_the_same_text(void **state)
{
    struct fixture *fixture = *state;
    for (unsigned i = 0; i < 200; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "family_%u%s{i=\"%u\"}", i / 7, i % 3 == 0 ? "_total" : "", i);
        put(fixture, name, "doc", i / 7 % 2 == 0 ? metric_counter(i, 0) : metric_gauge(i, 0));
    }
    for (int form = EXPOSITION_TEXT; form <= EXPOSITION_OPENMETRICS; form++) {
        char *whole = strdup(told(fixture, (enum exposition_form)form, TEXT_MAX_BYTES));
        assert_non_null(whole);
        for (size_t enough = 1; enough < 3000; enough = enough * 2 + 1)
            assert_string_equal(told(fixture, (enum exposition_form)form, enough), whole);
        free(whole);
    }
}

static void metrics_that_come_between_two_pieces_break_nothing(void **state)
{
    struct fixture *fixture = *state;
    put_counter(fixture, "b{i=\"1\"}", 1);
    put_counter(fixture, "b{i=\"3\"}", 3);
    struct exposition exposition = {.form = EXPOSITION_TEXT};
    assert_true(exposition_append(&exposition, fixture->reg, 1, &fixture->text));
    put_counter(fixture, "a", 0);
    put_counter(fixture, "b{i=\"2\"}", 2);
    put_counter(fixture, "c", 4);
    while (exposition_append(&exposition, fixture->reg, fixture->text.length + 1, &fixture->text))
        ;
    assert_string_equal(buf_string(&fixture->text),
                        "# TYPE b counter\nb{i=\"1\"} 1\nb{i=\"2\"} 2\nb{i=\"3\"} 3\n# TYPE c counter\nc 4\n");
}

static void numbers_have_a_point_in_every_locale(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    if (!comma_enter(&scratch))
        skip();
    put(fixture, "m", "", metric_gauge(1234567.125, 0));
    const char *text = told(fixture, EXPOSITION_TEXT, TEXT_MAX_BYTES);
    comma_leave();
    assert_string_equal(text, "# TYPE m gauge\nm 1234567.125\n");
}

static void what_is_not_finite_never_comes_out(void **state)
{
    struct fixture *fixture = *state;
    put(fixture, "a", "", metric_gauge((double)NAN, 0));
    put(fixture, "b", "", metric_gauge_of((struct metric_gauge){.hits = 0, .total = 5}, 0));
    put(fixture, "c", "", metric_counter((double)INFINITY, 0));
    struct metric_value large = metric_counter(1.7e308, 0);
    assert_true(metric_merge(&large, &large));
    put(fixture, "d", "", large);
    assert_string_equal(told(fixture, EXPOSITION_TEXT, TEXT_MAX_BYTES),
                        "# TYPE a gauge\na 0\n# TYPE b gauge\nb 0\n# TYPE c counter\nc 0\n# TYPE d counter\n"
                        "d 1.7976931348623157e+308\n");
}

static void registry_without_metrics_is_an_empty_text(void **state)
{
    struct fixture *fixture = *state;
    assert_string_equal(told(fixture, EXPOSITION_TEXT, TEXT_MAX_BYTES), "");
    assert_string_equal(told(fixture, EXPOSITION_OPENMETRICS, TEXT_MAX_BYTES), "# EOF\n");
}

static void one_metric_alone_has_a_head_too(void **state)
{
    struct fixture *fixture = *state;
    exposition_one(EXPOSITION_OPENMETRICS, "x_total", METRIC_COUNTER, "of x", 1, &fixture->text);
    exposition_one(EXPOSITION_TEXT, "y{z=\"1\"}", METRIC_GAUGE, "of y", 0.5, &fixture->text);
    assert_string_equal(buf_string(&fixture->text), "# HELP x of x\n# TYPE x counter\nx_total 1\n"
                                                    "# HELP y of y\n# TYPE y gauge\ny{z=\"1\"} 0.5\n");
}

static void form_is_what_accept_prefers(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        enum exposition_form form;
    } cases[] = {
        {NULL, EXPOSITION_TEXT},
        {"", EXPOSITION_TEXT},
        {"*/*", EXPOSITION_TEXT},
        {"application/json", EXPOSITION_TEXT},
        {"application/openmetrics-text", EXPOSITION_OPENMETRICS},
        {"APPLICATION/OPENMETRICS-TEXT; VERSION=1.0.0", EXPOSITION_OPENMETRICS},
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         EXPOSITION_OPENMETRICS},
        {"text/plain;version=0.0.4,application/openmetrics-text;q=0.9", EXPOSITION_TEXT},
        {"application/openmetrics-text;q=0", EXPOSITION_TEXT},
        {"application/openmetrics-text;q=", EXPOSITION_TEXT},
        {"application/openmetrics-text;q=nan", EXPOSITION_TEXT},
        {" , ;q=1,,;", EXPOSITION_TEXT},
        {"text/plainapplication/openmetrics-text", EXPOSITION_TEXT},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        if (exposition_choose(cases[i].accept) != cases[i].form)
            fail_msg("case %zu: '%s'", i, cases[i].accept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(families_come_in_order_with_their_kind_and_doc, set_up, tear_down),
        cmocka_unit_test_setup_teardown(doc_is_taken_from_whichever_metric_of_the_family_has_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(openmetrics_counters_end_in_total, set_up, tear_down),
        cmocka_unit_test_setup_teardown(openmetrics_has_no_family_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(family_of_both_kinds_has_no_type, set_up, tear_down),
        cmocka_unit_test_setup_teardown(docs_are_escaped_as_each_form_wants_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(labels_stay_escaped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_size_of_piece_gives_the_same_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(metrics_that_come_between_two_pieces_break_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(numbers_have_a_point_in_every_locale, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_finite_never_comes_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(registry_without_metrics_is_an_empty_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_metric_alone_has_a_head_too, set_up, tear_down),
        cmocka_unit_test(form_is_what_accept_prefers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
