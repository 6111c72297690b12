/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/cgroupfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "util/cleanup.h"

static const struct cgroupfile *find(const char *controller, const char *name)
{
    for (size_t i = 0; i < cgroupfiles_count; i++) {
        const char *its = cgroupfiles[i].controller;
        bool is_same = controller == NULL || its == NULL ? controller == its : strcmp(controller, its) == 0;
        if (is_same && strcmp(cgroupfiles[i].name, name) == 0)
            return &cgroupfiles[i];
    }
    fail_msg("no file '%s'", name);
    return NULL;
}

static const uint64_t unknown = UINT64_MAX;

struct reading {
    const char *name;
    const char *controller, *file;
    const char *text;
    enum cgroupfile_column column;
    uint64_t number;
};

static const struct reading readings[] = {
    {"number", NULL, "memory.current", "4096\n", CGROUP_MEMORY, 4096},
    {"number without newline", NULL, "pids.current", "3", CGROUP_TASKS, 3},
    {"no limit in version 2", NULL, "memory.max", "max\n", CGROUP_MEMORY_LIMIT, unknown},
    {"no limit in version 1", "memory", "memory.limit_in_bytes", "9223372036854771712\n", CGROUP_MEMORY_LIMIT, unknown},
    {"limit in version 1", "memory", "memory.limit_in_bytes", "1073741824\n", CGROUP_MEMORY_LIMIT, 1073741824},
    {"nothing", NULL, "memory.current", "", CGROUP_MEMORY, unknown},
    {"rubbish", NULL, "memory.current", "12x\n", CGROUP_MEMORY, unknown},
    {"negative", NULL, "memory.current", "-1\n", CGROUP_MEMORY, unknown},
    {"keys in any order", NULL, "cpu.stat", "a 1\nsystem_usec 7\nusage_usec 9\n", CGROUP_CPU_USAGE, 9},
    {"key twice: the first counts", NULL, "cpu.stat", "usage_usec 9\nusage_usec 10\n", CGROUP_CPU_USAGE, 9},
    {"key that only starts like it", NULL, "cpu.stat", "usage_usec_x 9\nusage 8\n", CGROUP_CPU_USAGE, unknown},
    {"key without number", NULL, "cpu.stat", "usage_usec\nusage_usec x\n", CGROUP_CPU_USAGE, unknown},
    {"nanoseconds", "cpuacct", "cpuacct.usage", "12345678\n", CGROUP_CPU_USAGE, 12345},
    {"ticks", "cpuacct", "cpuacct.stat", "user 3\nsystem 4\n", CGROUP_CPU_SYSTEM, 40000},
    {"ticks past all numbers", "cpuacct", "cpuacct.stat", "user 18446744073709551615\n", CGROUP_CPU_USER, unknown},
    {"devices", NULL, "io.stat", "8:0 rbytes=1 wbytes=2\n8:1 wbytes=20 rbytes=10\n", CGROUP_IO_WRITTEN, 22},
    {"no device yet", NULL, "io.stat", "", CGROUP_IO_READ, 0},
    {"device without numbers", NULL, "io.stat", "8:0 \n8:1 rbytes= wbytes\n", CGROUP_IO_READ, 0},
    {"devices that sum up to too much", NULL, "io.stat",
     "8:0 rbytes=4611686018427387903\n8:1 rbytes=4611686018427387903\n8:2 rbytes=4611686018427387903\n8:3 "
     "rbytes=4611686018427387903\n8:4 rbytes=4611686018427387903\n",
     CGROUP_IO_READ, UINT64_C(4611686018427387903) * 4},
    {"blkio", "blkio", "blkio.throttle.io_serviced", "8:0 Read 1\n8:0 Write 2\n8:1 Read 3\nTotal 9\n", CGROUP_IO_READS,
     4},
    {"blkio without requests", "blkio", "blkio.throttle.io_serviced", "Total 0\n", CGROUP_IO_WRITES, 0},
    {"pressure", NULL, "io.pressure", "some avg10=0.00 total=5\nfull avg10=0.00 avg60=0.00 total=4\n",
     CGROUP_IO_PRESSURE_FULL, 4},
    {"pressure of a kernel that keeps none", NULL, "cpu.pressure", "", CGROUP_CPU_PRESSURE_SOME, unknown},
    {"cut in the middle", NULL, "io.pressure", "some avg10=0.00 tot", CGROUP_IO_PRESSURE_SOME, unknown},
    {"events", NULL, "memory.events", "low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\n", CGROUP_OOM_KILLS, 4},
    {"version 1 counts with what is below", "memory", "memory.stat", "rss 1\ntotal_rss 2\n", CGROUP_MEMORY_ANON, 2},
};

static void files_say_what_they_mean(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(readings); i++) {
        struct cgroupfile_values values = {0};
        cgroupfile_parse(find(readings[i].controller, readings[i].file), readings[i].text, strlen(readings[i].text),
                         &values);
        uint64_t number = values.is_known[readings[i].column] ? values.numbers[readings[i].column] : unknown;
        if (number != readings[i].number)
            fail_msg("%s: %llu, expected %llu", readings[i].name, (unsigned long long)number,
                     (unsigned long long)readings[i].number);
    }
}

static void what_is_known_stays(void **state)
{
    (void)state;
    struct cgroupfile_values values = {0};
    static const char first[] = "8:0 Read 5\n";
    static const char second[] = "8:0 Read 7\n8:0 Write 1\n";
    cgroupfile_parse(find("blkio", "blkio.throttle.io_service_bytes_recursive"), first, sizeof first - 1, &values);
    cgroupfile_parse(find("blkio", "blkio.throttle.io_service_bytes"), second, sizeof second - 1, &values);
    assert_int_equal(values.numbers[CGROUP_IO_READ], 5);
    assert_int_equal(values.numbers[CGROUP_IO_WRITTEN], 0);
    cgroupfile_parse(find(NULL, "pids.current"), "1", 1, &values);
    cgroupfile_parse(find("pids", "pids.current"), "2", 1, &values);
    assert_int_equal(values.numbers[CGROUP_TASKS], 1);
}

static void every_column_is_described_and_comes_from_some_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < CGROUP_COLUMNS; i++) {
        const struct sample_column *column = &cgroupfile_columns[i];
        if (column->name == NULL || column->unit == NULL || column->help == NULL)
            fail_msg("column %zu has no name, unit or help", i);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(column->name, cgroupfile_columns[j].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_say_what_they_mean),
        cmocka_unit_test(what_is_known_stays),
        cmocka_unit_test(every_column_is_described_and_comes_from_some_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
