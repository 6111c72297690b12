/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The five ways in which the kernel writes these files:
 *
 *     number     4096                                       or "max"
 *     keyed      usage_usec 1234                            a line a key
 *     devices    8:0 rbytes=1 wbytes=2 rios=3 wios=4        a line a device, to be summed
 *     blkio      8:0 Read 1                                 a line a device and key, to be summed; "Total 1" at the end
 *     pressure   some avg10=0.00 avg60=0.00 avg300=0.00 total=1
 */
#include "sample/cgroupfile.h"

#include "util/cursor.h"

enum { CGROUPFILE_KEYS_MAX = 8 };

const struct sample_column cgroupfile_columns[CGROUP_COLUMNS] = {
    [CGROUP_CPU_USAGE] = {"cpu_usage_us", "microseconds", "CPU time used", SAMPLE_COUNTER},
    [CGROUP_CPU_USER] = {"cpu_user_us", "microseconds", "CPU time in user mode", SAMPLE_COUNTER},
    [CGROUP_CPU_SYSTEM] = {"cpu_system_us", "microseconds", "CPU time in the kernel", SAMPLE_COUNTER},
    [CGROUP_CPU_THROTTLED] = {"cpu_throttled_us", "microseconds", "time held back by the CPU quota", SAMPLE_COUNTER},
    [CGROUP_CPU_THROTTLED_PERIODS] = {"cpu_throttled_periods", "", "periods cut short by the CPU quota",
                                      SAMPLE_COUNTER},
    [CGROUP_MEMORY] = {"memory_bytes", "bytes", "memory in use, with page cache", SAMPLE_INTEGER},
    [CGROUP_MEMORY_PEAK] = {"memory_peak_bytes", "bytes", "highest memory in use so far", SAMPLE_INTEGER},
    [CGROUP_MEMORY_LIMIT] = {"memory_limit_bytes", "bytes", "memory that may be used, if limited", SAMPLE_INTEGER},
    [CGROUP_MEMORY_ANON] = {"memory_anon_bytes", "bytes", "anonymous memory: heaps, stacks", SAMPLE_INTEGER},
    [CGROUP_MEMORY_FILE] = {"memory_file_bytes", "bytes", "page cache, with shared memory", SAMPLE_INTEGER},
    [CGROUP_MEMORY_SHMEM] = {"memory_shmem_bytes", "bytes", "shared memory and tmpfs", SAMPLE_INTEGER},
    [CGROUP_MEMORY_DIRTY] = {"memory_dirty_bytes", "bytes", "page cache not yet written back", SAMPLE_INTEGER},
    [CGROUP_PAGE_FAULTS] = {"page_faults", "", "page faults", SAMPLE_COUNTER},
    [CGROUP_MAJOR_PAGE_FAULTS] = {"major_page_faults", "", "page faults that read from a disk", SAMPLE_COUNTER},
    [CGROUP_MEMORY_LIMIT_HITS] = {"memory_limit_hits", "", "times that memory was at its limit", SAMPLE_COUNTER},
    [CGROUP_OOM_KILLS] = {"oom_kills", "", "processes killed for want of memory", SAMPLE_COUNTER},
    [CGROUP_IO_READ] = {"io_bytes_read", "bytes", "data read from block devices", SAMPLE_COUNTER},
    [CGROUP_IO_WRITTEN] = {"io_bytes_written", "bytes", "data written to block devices", SAMPLE_COUNTER},
    [CGROUP_IO_READS] = {"io_reads", "", "reads of block devices", SAMPLE_COUNTER},
    [CGROUP_IO_WRITES] = {"io_writes", "", "writes to block devices", SAMPLE_COUNTER},
    [CGROUP_TASKS] = {"tasks", "", "processes and threads", SAMPLE_INTEGER},
    [CGROUP_CPU_PRESSURE_SOME] = {"cpu_pressure_some_us", "microseconds", "time in which some task waited for a CPU",
                                  SAMPLE_COUNTER},
    [CGROUP_MEMORY_PRESSURE_SOME] = {"memory_pressure_some_us", "microseconds",
                                     "time in which some task waited for memory", SAMPLE_COUNTER},
    [CGROUP_MEMORY_PRESSURE_FULL] = {"memory_pressure_full_us", "microseconds",
                                     "time in which all tasks waited for memory", SAMPLE_COUNTER},
    [CGROUP_IO_PRESSURE_SOME] = {"io_pressure_some_us", "microseconds", "time in which some task waited for I/O",
                                 SAMPLE_COUNTER},
    [CGROUP_IO_PRESSURE_FULL] = {"io_pressure_full_us", "microseconds", "time in which all tasks waited for I/O",
                                 SAMPLE_COUNTER},
};

struct cgroupfile_key {
    const char *name; /* NULL: the file is one number */
    enum cgroupfile_column column;
    unsigned multiply; /* 0: by 1 */
    unsigned divide;   /* 0: by 1 */
};

typedef void cgroupfile_line(struct cursor line, const struct cgroupfile_key *keys, struct cgroupfile_values *values);

struct cgroupfile_format {
    cgroupfile_line *parse;
    bool is_summed; /* over lines: what no line names is 0, for a device appears with its first request */
    struct cgroupfile_key keys[CGROUPFILE_KEYS_MAX]; /* those in use have a name or stand first */
};

/* "No limit" of version 1 is the highest number of whole pages; nothing real is near it. */
static const uint64_t cgroupfile_number_max = UINT64_C(1) << 62;

static void cgroupfile_add(const struct cgroupfile_key *key, uint64_t number, struct cgroupfile_values *values)
{
    if (key->divide > 0)
        number /= key->divide;
    if (key->multiply > 0 && __builtin_mul_overflow(number, key->multiply, &number))
        return;
    uint64_t sum; /* of its own: the builtin stores what has wrapped, too */
    if (number >= cgroupfile_number_max || __builtin_add_overflow(values->numbers[key->column], number, &sum))
        return;
    values->numbers[key->column] = sum;
    values->is_known[key->column] = true;
}

static const struct cgroupfile_key *cgroupfile_find(const struct cgroupfile_key *keys, const struct cursor *name)
{
    for (size_t i = 0; i < CGROUPFILE_KEYS_MAX && keys[i].name != NULL; i++) {
        if (cursor_equals(name, keys[i].name))
            return &keys[i];
    }
    return NULL;
}

/* Takes a number that is followed by a blank or the end. */
static bool cgroupfile_take_number(struct cursor *text, uint64_t *out_number)
{
    return cursor_u64(text, out_number) && (cursor_is_empty(text) || *text->at == ' ');
}

static void cgroupfile_number(struct cursor line, const struct cgroupfile_key *keys, struct cgroupfile_values *values)
{
    uint64_t number;
    if (!values->is_known[keys[0].column] && cgroupfile_take_number(&line, &number))
        cgroupfile_add(&keys[0], number, values);
}

static void cgroupfile_keyed(struct cursor line, const struct cgroupfile_key *keys, struct cgroupfile_values *values)
{
    struct cursor name;
    uint64_t number;
    if (!cursor_word(&line, &name) || !cgroupfile_take_number(&line, &number))
        return;
    const struct cgroupfile_key *key = cgroupfile_find(keys, &name);
    if (key != NULL && !values->is_known[key->column])
        cgroupfile_add(key, number, values);
}

/* Takes "name=" from the front of a word. */
static bool cgroupfile_take_name(struct cursor *word, struct cursor *out_name)
{
    const char *equals = memchr(word->at, '=', cursor_left(word));
    if (equals == NULL)
        return false;
    *out_name = (struct cursor){.at = word->at, .end = equals};
    word->at = equals + 1;
    return true;
}

static void cgroupfile_devices(struct cursor line, const struct cgroupfile_key *keys, struct cgroupfile_values *values)
{
    struct cursor word;
    while (cursor_word(&line, &word)) {
        struct cursor name;
        uint64_t number;
        if (!cgroupfile_take_name(&word, &name) || !cgroupfile_take_number(&word, &number))
            continue;
        const struct cgroupfile_key *key = cgroupfile_find(keys, &name);
        if (key != NULL)
            cgroupfile_add(key, number, values);
    }
}

static void cgroupfile_blkio(struct cursor line, const struct cgroupfile_key *keys, struct cgroupfile_values *values)
{
    struct cursor device;
    struct cursor name;
    uint64_t number;
    if (!cursor_word(&line, &device) || !cursor_word(&line, &name) || !cgroupfile_take_number(&line, &number))
        return;
    const struct cgroupfile_key *key = cgroupfile_find(keys, &name);
    if (key != NULL)
        cgroupfile_add(key, number, values);
}

static void cgroupfile_pressure(struct cursor line, const struct cgroupfile_key *keys, struct cgroupfile_values *values)
{
    struct cursor name;
    struct cursor word;
    if (!cursor_word(&line, &name))
        return;
    const struct cgroupfile_key *key = cgroupfile_find(keys, &name);
    while (key != NULL && cursor_word(&line, &word)) {
        uint64_t number;
        if (cursor_accept_text(&word, "total=") && cgroupfile_take_number(&word, &number) &&
            !values->is_known[key->column])
            cgroupfile_add(key, number, values);
    }
}

enum {
    CGROUPFILE_NS_PER_US = 1000,
    CGROUPFILE_US_PER_TICK = 10000, /* the kernel tells ticks of USER_HZ, 100 a second on all that we run on */
};

#define CGROUPFILE_ONE_NUMBER(column)                                                                                  \
    {                                                                                                                  \
        .parse = cgroupfile_number, .keys = { {NULL, column, 0, 0} }                                                   \
    }

static const struct cgroupfile_format v2_cpu_stat = {
    .parse = cgroupfile_keyed,
    .keys = {{"usage_usec", CGROUP_CPU_USAGE, 0, 0},
             {"user_usec", CGROUP_CPU_USER, 0, 0},
             {"system_usec", CGROUP_CPU_SYSTEM, 0, 0},
             {"throttled_usec", CGROUP_CPU_THROTTLED, 0, 0},
             {"nr_throttled", CGROUP_CPU_THROTTLED_PERIODS, 0, 0}},
};
static const struct cgroupfile_format v2_memory_stat = {
    .parse = cgroupfile_keyed,
    .keys = {{"anon", CGROUP_MEMORY_ANON, 0, 0},
             {"file", CGROUP_MEMORY_FILE, 0, 0},
             {"shmem", CGROUP_MEMORY_SHMEM, 0, 0},
             {"file_dirty", CGROUP_MEMORY_DIRTY, 0, 0},
             {"pgfault", CGROUP_PAGE_FAULTS, 0, 0},
             {"pgmajfault", CGROUP_MAJOR_PAGE_FAULTS, 0, 0}},
};
static const struct cgroupfile_format v2_memory_events = {
    .parse = cgroupfile_keyed,
    .keys = {{"max", CGROUP_MEMORY_LIMIT_HITS, 0, 0}, {"oom_kill", CGROUP_OOM_KILLS, 0, 0}},
};
static const struct cgroupfile_format v2_io_stat = {
    .parse = cgroupfile_devices,
    .is_summed = true,
    .keys = {{"rbytes", CGROUP_IO_READ, 0, 0},
             {"wbytes", CGROUP_IO_WRITTEN, 0, 0},
             {"rios", CGROUP_IO_READS, 0, 0},
             {"wios", CGROUP_IO_WRITES, 0, 0}},
};
static const struct cgroupfile_format v2_cpu_pressure = {
    .parse = cgroupfile_pressure,
    .keys = {{"some", CGROUP_CPU_PRESSURE_SOME, 0, 0}},
};
static const struct cgroupfile_format v2_memory_pressure = {
    .parse = cgroupfile_pressure,
    .keys = {{"some", CGROUP_MEMORY_PRESSURE_SOME, 0, 0}, {"full", CGROUP_MEMORY_PRESSURE_FULL, 0, 0}},
};
static const struct cgroupfile_format v2_io_pressure = {
    .parse = cgroupfile_pressure,
    .keys = {{"some", CGROUP_IO_PRESSURE_SOME, 0, 0}, {"full", CGROUP_IO_PRESSURE_FULL, 0, 0}},
};
static const struct cgroupfile_format v1_cpuacct_usage = {
    .parse = cgroupfile_number,
    .keys = {{NULL, CGROUP_CPU_USAGE, 0, CGROUPFILE_NS_PER_US}},
};
static const struct cgroupfile_format v1_cpuacct_stat = {
    .parse = cgroupfile_keyed,
    .keys = {{"user", CGROUP_CPU_USER, CGROUPFILE_US_PER_TICK, 0},
             {"system", CGROUP_CPU_SYSTEM, CGROUPFILE_US_PER_TICK, 0}},
};
static const struct cgroupfile_format v1_cpu_stat = {
    .parse = cgroupfile_keyed,
    .keys = {{"throttled_time", CGROUP_CPU_THROTTLED, 0, CGROUPFILE_NS_PER_US},
             {"nr_throttled", CGROUP_CPU_THROTTLED_PERIODS, 0, 0}},
};
static const struct cgroupfile_format v1_memory_stat = {
    .parse = cgroupfile_keyed,
    .keys = {{"total_rss", CGROUP_MEMORY_ANON, 0, 0}, /* total: with what is below, as version 2 counts */
             {"total_cache", CGROUP_MEMORY_FILE, 0, 0},
             {"total_shmem", CGROUP_MEMORY_SHMEM, 0, 0},
             {"total_dirty", CGROUP_MEMORY_DIRTY, 0, 0},
             {"total_pgfault", CGROUP_PAGE_FAULTS, 0, 0},
             {"total_pgmajfault", CGROUP_MAJOR_PAGE_FAULTS, 0, 0}},
};
static const struct cgroupfile_format v1_memory_oom_control = {
    .parse = cgroupfile_keyed,
    .keys = {{"oom_kill", CGROUP_OOM_KILLS, 0, 0}},
};
static const struct cgroupfile_format v1_blkio_bytes = {
    .parse = cgroupfile_blkio,
    .is_summed = true,
    .keys = {{"Read", CGROUP_IO_READ, 0, 0}, {"Write", CGROUP_IO_WRITTEN, 0, 0}},
};
static const struct cgroupfile_format v1_blkio_requests = {
    .parse = cgroupfile_blkio,
    .is_summed = true,
    .keys = {{"Read", CGROUP_IO_READS, 0, 0}, {"Write", CGROUP_IO_WRITES, 0, 0}},
};
static const struct cgroupfile_format memory_now = CGROUPFILE_ONE_NUMBER(CGROUP_MEMORY);
static const struct cgroupfile_format memory_peak = CGROUPFILE_ONE_NUMBER(CGROUP_MEMORY_PEAK);
static const struct cgroupfile_format memory_limit = CGROUPFILE_ONE_NUMBER(CGROUP_MEMORY_LIMIT);
static const struct cgroupfile_format memory_limit_hits = CGROUPFILE_ONE_NUMBER(CGROUP_MEMORY_LIMIT_HITS);
static const struct cgroupfile_format tasks = CGROUPFILE_ONE_NUMBER(CGROUP_TASKS);

const struct cgroupfile cgroupfiles[] = {
    {NULL, "cpu.stat", &v2_cpu_stat},
    {NULL, "memory.current", &memory_now},
    {NULL, "memory.peak", &memory_peak},
    {NULL, "memory.max", &memory_limit},
    {NULL, "memory.stat", &v2_memory_stat},
    {NULL, "memory.events", &v2_memory_events},
    {NULL, "io.stat", &v2_io_stat},
    {NULL, "pids.current", &tasks},
    {NULL, "cpu.pressure", &v2_cpu_pressure},
    {NULL, "memory.pressure", &v2_memory_pressure},
    {NULL, "io.pressure", &v2_io_pressure},
    {"cpuacct", "cpuacct.usage", &v1_cpuacct_usage},
    {"cpuacct", "cpuacct.stat", &v1_cpuacct_stat},
    {"cpu", "cpu.stat", &v1_cpu_stat},
    {"memory", "memory.usage_in_bytes", &memory_now},
    {"memory", "memory.max_usage_in_bytes", &memory_peak},
    {"memory", "memory.limit_in_bytes", &memory_limit},
    {"memory", "memory.failcnt", &memory_limit_hits},
    {"memory", "memory.stat", &v1_memory_stat},
    {"memory", "memory.oom_control", &v1_memory_oom_control},
    {"blkio", "blkio.throttle.io_service_bytes_recursive", &v1_blkio_bytes},
    {"blkio", "blkio.throttle.io_serviced_recursive", &v1_blkio_requests},
    {"blkio", "blkio.throttle.io_service_bytes", &v1_blkio_bytes}, /* older kernels: this cgroup alone */
    {"blkio", "blkio.throttle.io_serviced", &v1_blkio_requests},
    {"pids", "pids.current", &tasks},
};
const size_t cgroupfiles_count = ARRAY_LENGTH(cgroupfiles);

void cgroupfile_parse(const struct cgroupfile *file, const char *text, size_t length, struct cgroupfile_values *values)
{
    const struct cgroupfile_format *format = file->format;
    struct cgroupfile_values own = {0};
    for (size_t i = 0; format->is_summed && i < CGROUPFILE_KEYS_MAX && format->keys[i].name != NULL; i++)
        own.is_known[format->keys[i].column] = true;
    struct cursor all = cursor_of(text, length);
    struct cursor line;
    while (cursor_line(&all, &line))
        format->parse(line, format->keys, &own);
    for (size_t i = 0; i < CGROUP_COLUMNS; i++) {
        if (!own.is_known[i] || values->is_known[i])
            continue; /* another file has said it better */
        values->is_known[i] = true;
        values->numbers[i] = own.numbers[i];
    }
}
