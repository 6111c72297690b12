/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/costs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void costs_name_the_ticks_and_each_collector(void **state)
{
    (void)state;
    const struct sample_config config = {
        .proc_path = "/proc", .sys_path = "/sys", .mount_prefix = "", .frequency_per_tick = 1};
    CLEANUP(buf_cleanup) struct buf notes, out;
    buf_init(&notes, 65536);
    buf_init(&out, 65536);
    CLEANUP(sampler_cleanup) struct sampler *sampler = NULL;
    assert_int_equal(sampler_open(&config, "cpu,memory", &notes, &sampler, NULL), 0);
    assert_int_equal(sampler_run(sampler, 0, 1, NULL), 0);
    const struct ticker ticker = {.taken = 11, .skipped = 22, .overruns = 33};
    costs_json(&ticker, sampler, &out);
    const char *text = buf_string(&out);
    assert_non_null(strstr(text, "{\"PSUTIL\":1,\"user_seconds\":"));
    assert_non_null(strstr(text, "\"ticks\":11,\"ticks_skipped\":22,\"ticks_overrun\":33"));
    assert_non_null(strstr(text, "\"collectors\":{\"cpu\":{\"runs\":1,\"failures\":0,\"cpu_seconds\":"));
    assert_non_null(strstr(text, ",\"memory\":{\"runs\":0,\"failures\":0,\"cpu_seconds\":0}}}"));
}

static void costs_without_collectors_are_whole_too(void **state)
{
    (void)state;
    const struct ticker ticker = {.taken = 1};
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, 65536);
    costs_json(&ticker, NULL, &out);
    const char *text = buf_string(&out);
    assert_null(strstr(text, "collectors"));
    assert_int_equal(text[strlen(text) - 1], '}');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_name_the_ticks_and_each_collector),
        cmocka_unit_test(costs_without_collectors_are_whole_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
