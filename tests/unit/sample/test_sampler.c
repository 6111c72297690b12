/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/sampler.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lookup.h"
#include "support/allocation.h"
#include "support/scratch.h"

static const struct sample_config live = {.proc_path = "/proc", .sys_path = "/sys", .mount_prefix = ""};

/* Opens collectors and writes their names into `out_names`, each followed by a blank. */
static int open_names(const struct sample_config *config, const char *names, char *out_names, size_t size,
                      struct error *err)
{
    CLEANUP(buf_cleanup) struct buf notes;
    CLEANUP(sampler_cleanup) struct sampler *sampler = NULL;
    buf_init(&notes, 10000);
    int rc = sampler_open(config, names, &notes, &sampler, err);
    if (rc < 0) {
        assert_null(sampler);
        return rc;
    }
    size_t length = 0;
    out_names[0] = '\0';
    for (size_t i = 0; i < sampler_count(sampler); i++)
        length += (size_t)snprintf(out_names + length, size - length, "%s ", sampler_ops(sampler, i)->name);
    return 0;
}

static void every_collector_is_complete_and_has_its_own_name(void **state)
{
    (void)state;
    assert_non_null(collectors[0]);
    for (size_t i = 0; collectors[i] != NULL; i++) {
        const struct collector_ops *ops = collectors[i];
        assert_true(ops->name[0] >= 'a' && ops->name[0] <= 'z');
        assert_null(strpbrk(ops->name, ", +-"));
        assert_true(strlen(ops->help) > 10 && ops->help[strlen(ops->help) - 1] != '.');
        assert_true(ops->open != NULL && ops->read != NULL && ops->table != NULL);
        if (ops->close == NULL)
            fail_msg("%s has no close", ops->name);
        else
            ops->close(NULL);
        for (size_t other = 0; other < i; other++)
            assert_string_not_equal(ops->name, collectors[other]->name);
    }
}

static void a_list_of_names_chooses_and_keeps_the_order_of_traces(void **state)
{
    (void)state;
    static const struct {
        const char *names, *opened;
    } cases[] = {
        {"cpu", "cpu "},      {"memory,cpu", "cpu memory "}, {" load , cpu,, ", "cpu load "},
        {"cpu,cpu", "cpu "},  {"cpu,+load", "cpu load "},    {"cpu,load,-cpu", "load "},
        {"-cpu,cpu", "cpu "},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char opened[1000];
        assert_int_equal(open_names(&live, cases[i].names, opened, sizeof opened, NULL), 0);
        assert_string_equal(opened, cases[i].opened);
    }
}

static void without_plain_names_it_is_all_but_the_optional_ones(void **state)
{
    (void)state;
    char all[1000], none_named[1000], without[1000];
    assert_int_equal(open_names(&live, NULL, all, sizeof all, NULL), 0);
    assert_int_equal(open_names(&live, "", none_named, sizeof none_named, NULL), 0);
    assert_string_equal(all, none_named);
    assert_int_equal(open_names(&live, "-load", without, sizeof without, NULL), 0);
    assert_non_null(strstr(all, "load "));
    assert_null(strstr(without, "load "));
    assert_int_equal(strlen(without), strlen(all) - strlen("load "));
    for (size_t i = 0; collectors[i] != NULL; i++) {
        if (collectors[i]->is_optional)
            assert_null(strstr(all, collectors[i]->name));
    }
}

static void an_unknown_name_is_told_with_those_that_there_are(void **state)
{
    (void)state;
    static const char *const wrong[] = {"cpus", "cpu,+disks", "-gpu", "CPU", "+"};
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        struct error err = {0};
        char opened[1000];
        assert_int_equal(open_names(&live, wrong[i], opened, sizeof opened, &err), -EINVAL);
        assert_non_null(strstr(err.text, "cpu, memory, "));
    }
    struct error err = {0};
    char opened[1000];
    assert_int_equal(open_names(&live, "cpu,diks", opened, sizeof opened, &err), -EINVAL);
    assert_non_null(strstr(err.text, "'diks'"));
}

static void what_a_machine_lacks_is_noted_in_a_line_each_and_left_out(void **state)
{
    (void)state;
    const struct sample_config empty = {.proc_path = RECORDED_MADE_DIR "/empty/proc",
                                        .sys_path = RECORDED_MADE_DIR "/empty/sys",
                                        .mount_prefix = RECORDED_MADE_DIR "/empty"};
    CLEANUP(buf_cleanup) struct buf notes;
    CLEANUP(sampler_cleanup) struct sampler *sampler = NULL;
    buf_init(&notes, 10000);
    assert_int_equal(sampler_open(&empty, "cpu,load", &notes, &sampler, NULL), 0);
    assert_int_equal(sampler_count(sampler), 0);
    const char *text = buf_string(&notes);
    assert_non_null(strstr(text, "cpu: no '"));
    assert_non_null(strstr(text, "\nload: no '"));
    assert_int_equal(text[strlen(text) - 1], '\n');
}

static void a_run_is_counted_and_a_failed_one_keeps_the_table(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    CLEANUP(buf_cleanup) struct buf notes;
    CLEANUP(sampler_cleanup) struct sampler *sampler = NULL;
    buf_init(&notes, 10000);
    scratch_write(&scratch, "loadavg", "1.5 0 0 2/30 17\n", 16);
    const struct sample_config config = {.proc_path = scratch.path, .sys_path = scratch.path};
    assert_int_equal(sampler_open(&config, "load", &notes, &sampler, NULL), 0);
    assert_int_equal(sampler_count(sampler), 1);
    assert_false(sampler_is_fresh(sampler, 0));

    struct error err = {0};
    assert_int_equal(sampler_run(sampler, 0, 0, &err), 0);
    assert_true(sampler_is_fresh(sampler, 0));
    scratch_write(&scratch, "loadavg", "rubbish\n", 8);
    assert_int_equal(sampler_run(sampler, 0, 0, &err), -EBADMSG);
    assert_int_equal(strncmp(err.text, "load: '", 7), 0);
    assert_false(sampler_is_fresh(sampler, 0));
    assert_int_equal(lookup_value(sampler_table(sampler, 0), "load", "running").integer, 2);
    scratch_write(&scratch, "loadavg", "1.5 0 0 3/30 17\n", 16);
    assert_int_equal(sampler_run(sampler, 0, 0, &err), 0);
    assert_true(sampler_is_fresh(sampler, 0));

    struct sampler_stats stats = sampler_stats(sampler, 0);
    assert_int_equal(stats.runs, 3);
    assert_int_equal(stats.failures, 1);
    assert_true(stats.cpu_ns > 0 && stats.last_ns > 0);
}

static void bad_lines_are_told_once_and_not_in_each_tick(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    CLEANUP(buf_cleanup) struct buf notes;
    CLEANUP(sampler_cleanup) struct sampler *sampler = NULL;
    buf_init(&notes, 10000);
    static const char good[] = "8 0 sda 5 0 8 1 2 0 16 1 0 2 2\n";
    static const char bad[] = "8 0 sda 5 0 8 1 2 0 16 1 0 2 2\n\0\0\0\0";
    scratch_write(&scratch, "diskstats", good, sizeof good - 1);
    const struct sample_config config = {.proc_path = scratch.path, .sys_path = scratch.path};
    assert_int_equal(sampler_open(&config, "disk", &notes, &sampler, NULL), 0);
    assert_int_equal(sampler_run(sampler, 0, 0, NULL), 0);
    sampler_take_notes(sampler, 0, &notes);
    assert_int_equal(notes.length, 0);
    scratch_write(&scratch, "diskstats", bad, sizeof bad - 1);
    for (int tick = 0; tick < 3; tick++) {
        assert_int_equal(sampler_run(sampler, 0, 0, NULL), 0);
        sampler_take_notes(sampler, 0, &notes);
        assert_string_equal(buf_string(&notes), "disk: the kernel's text has lines without sense: they are left out\n");
    }
}

static void all_collectors_run_on_this_machine(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf notes;
    CLEANUP(sampler_cleanup) struct sampler *sampler = NULL;
    buf_init(&notes, 10000);
    assert_int_equal(sampler_open(&live, NULL, &notes, &sampler, NULL), 0);
    assert_true(sampler_count(sampler) >= 5);
    for (int tick = 0; tick < 3; tick++) {
        for (size_t i = 0; i < sampler_count(sampler); i++) {
            struct error err = {0};
            if (sampler_run(sampler, i, tick, &err) < 0)
                fail_msg("%s", err.text);
            assert_int_equal(sampler_table(sampler, i)->lines_bad, 0);
        }
    }
}

static void without_memory_nothing_is_opened_and_nothing_leaks(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        CLEANUP(buf_cleanup) struct buf notes;
        CLEANUP(sampler_cleanup) struct sampler *sampler = NULL;
        buf_init(&notes, 10000);
        allocation_fail_at(n);
        int rc = sampler_open(&live, "cpu,memory,disk,network", &notes, &sampler, NULL);
        bool has_failed = allocation_stop();
        assert_int_equal(rc, has_failed ? -ENOMEM : 0);
        assert_int_equal(sampler == NULL, has_failed);
        if (!has_failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collector_is_complete_and_has_its_own_name),
        cmocka_unit_test(a_list_of_names_chooses_and_keeps_the_order_of_traces),
        cmocka_unit_test(without_plain_names_it_is_all_but_the_optional_ones),
        cmocka_unit_test(an_unknown_name_is_told_with_those_that_there_are),
        cmocka_unit_test(what_a_machine_lacks_is_noted_in_a_line_each_and_left_out),
        cmocka_unit_test(a_run_is_counted_and_a_failed_one_keeps_the_table),
        cmocka_unit_test(bad_lines_are_told_once_and_not_in_each_tick),
        cmocka_unit_test(all_collectors_run_on_this_machine),
        cmocka_unit_test(without_memory_nothing_is_opened_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
