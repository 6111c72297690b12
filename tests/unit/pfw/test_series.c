/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct pfw_line parsed(const char *text)
{
    struct pfw_line line;
    struct error err = {0};
    if (pfw_line_parse(text, strlen(text), &line, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return line;
}

static uint32_t series_of(struct pfw_series *series, uint32_t host, const char *event)
{
    struct pfw_line line = parsed(event);
    uint32_t number;
    assert_int_equal(pfw_series_of(series, host, &line, &number, NULL), 0);
    return number;
}

static void host_category_and_name_together_make_a_series(void **state)
{
    (void)state;
    struct pfw_series series;
    pfw_series_init(&series);
    assert_int_equal(series_of(&series, 0, "{\"name\":\"cpu\",\"cat\":\"sys\"}"), 0);
    assert_int_equal(series_of(&series, 1, "{\"name\":\"cpu\",\"cat\":\"sys\"}"), 1);
    assert_int_equal(series_of(&series, 0, "{\"name\":\"cpu\",\"cat\":\"gpu\"}"), 2);
    assert_int_equal(series_of(&series, 0, "{\"name\":\"pu\",\"cat\":\"sysc\"}"), 3);
    assert_int_equal(series_of(&series, 0, "{\"name\":\"\\u0063pu\",\"cat\":\"s\\u0079s\"}"), 0);
    assert_int_equal(series_of(&series, 0, "{}"), 4);
    assert_int_equal(series_of(&series, 0, "{\"name\":7,\"cat\":null}"), 4);

    struct pfw_series_id id = pfw_series_id(&series, 3);
    assert_int_equal(id.host, 0);
    assert_true(cursor_equals(&id.category, "sysc"));
    assert_true(cursor_equals(&id.name, "pu"));
    assert_string_equal(id.category.at, "sysc");
    assert_string_equal(id.name.at, "pu");
    assert_int_equal(pfw_series_id(&series, 1).host, 1);
    pfw_series_fini(&series);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_category_and_name_together_make_a_series),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
