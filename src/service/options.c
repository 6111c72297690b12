/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

enum {
    OPTIONS_DAY_MS = 86400000,
    OPTIONS_THREADS_MAX = 1024,
    OPTIONS_COLLECTORS_MAX_BYTES = 2 * CONFIG_TEXT_MAX_BYTES
};

static const char *const options_levels[] = {"ERROR", "WARN", "INFO", "DEBUG", NULL};
static const char *const options_times[] = {"US", "NS", "MS", "SEC", NULL};
static const char *const options_stamps[] = {"AUTO", "SEC", "MS", "US", "NS", NULL};

static const struct config_option options_rows[] = {
    {.name = "enable",
     .env = "DFTRACER_ENABLE",
     .keys = {"enable"},
     .kind = CONFIG_BOOL,
     .help = "without it start and run do nothing"},
    {.name = "log_file",
     .env = "DFTRACER_LOG_FILE",
     .keys = {"tracer.log_file", "profiler.log_file"},
     .kind = CONFIG_TEXT,
     .help = "prefix of the trace, which is <prefix>_<host>.pfw.gz; needed"},
    {.name = "trace_interval_ms",
     .env = "DFTRACER_TRACE_INTERVAL_MS",
     .keys = {"tracer.interval", "features.interval"},
     .kind = CONFIG_INT,
     .min = 1,
     .max = OPTIONS_DAY_MS,
     .initial = 1000,
     .help = "time between samples in milliseconds"},
    {.name = "libuv_thread_count",
     .env = "DFTRACER_LIBUV_THREADS",
     .keys = {"tracer.libuv_threads", "profiler.libuv_threads"},
     .kind = CONFIG_INT,
     .min = 1,
     .max = OPTIONS_THREADS_MAX,
     .initial = 1,
     .help = "threads that run the collectors"},
    {.name = "compression",
     .env = "DFTRACER_TRACE_COMPRESSION",
     .keys = {"profiler.compression", "tracer.compression"},
     .kind = CONFIG_BOOL,
     .initial = 1,
     .help = "gzip (.pfw.gz) or plain text (.pfw)"},
    {.name = "write_buffer_size",
     .env = "DFTRACER_WRITE_BUFFER_SIZE",
     .keys = {"internal.write_buffer_size"},
     .kind = CONFIG_INT,
     .min = 0,
     .max = INT64_C(1) << 32,
     .initial = 16 << 20,
     .help = "bytes of events held while the file system doesn't take them; less than 65536 counts as 65536"},
    {.name = "log_level",
     .env = "DFTRACER_LOG_LEVEL",
     .keys = {"profiler.log_level", "tracer.log_level"},
     .kind = CONFIG_ENUM,
     .words = options_levels,
     .initial = LOG_LEVEL_ERROR,
     .help = "what goes to the .err file"},
    {.name = "time_metric",
     .env = "DFTRACER_TIME_METRIC",
     .keys = {"profiler.time_metric", "tracer.time_metric"},
     .kind = CONFIG_ENUM,
     .words = options_times,
     .initial = OPTIONS_TIME_US,
     .help = "unit of the time stamps"},
    {.name = "metadata",
     .env = "DFTRACER_INC_METADATA",
     .keys = {"features.metadata"},
     .kind = CONFIG_BOOL,
     .initial = 1,
     .help = "settings, build and costs in the start and end events"},
    {.name = "core_affinity",
     .env = "DFTRACER_SET_CORE_AFFINITY",
     .keys = {"features.core_affinity"},
     .kind = CONFIG_BOOL,
     .help = "write down on which CPUs the service may run (needs the metadata)"},
    {.name = "variorum_disabled",
     .env = "DFTRACER_DISABLE_VARIORUM_POWER",
     .kind = CONFIG_BOOL,
     .help = "measure no power"},
    {.name = "variorum_power",
     .keys = {"features.variorum.enable"},
     .kind = CONFIG_BOOL,
     .initial = 1,
     .help = "the same in the file, the other way round"},
    {.name = "memory_pct",
     .env = "DFTRACER_MEMORY_PCT",
     .keys = {"service.memory_pct"},
     .kind = CONFIG_BOOL,
     .help = "memory as percentages of MemAvailable, for readers of old traces, instead of kB"},
    {.name = "collectors",
     .env = "DFTRACER_COLLECTORS",
     .keys = {"service.collectors"},
     .kind = CONFIG_LIST,
     .help = "names of collectors; +name and -name add to and take from the usual ones"},
    {.name = "frequency_per_tick",
     .env = "DFTRACER_FREQUENCY_PER_TICK",
     .keys = {"service.frequency_per_tick"},
     .kind = CONFIG_INT,
     .min = 1,
     .max = 65536,
     .initial = 16,
     .help = "CPUs whose frequency is asked in one tick, in turn (with +frequency)"},
    {.name = "cgroup",
     .env = "DFTRACER_CGROUP",
     .keys = {"service.cgroup"},
     .kind = CONFIG_TEXT,
     .help = "cgroup to watch: a pid, 'self', or a path"},
    {.name = "flush_interval_ms",
     .env = "DFTRACER_FLUSH_INTERVAL_MS",
     .keys = {"service.flush_interval_ms"},
     .kind = CONFIG_INT,
     .min = 10,
     .max = 3600000,
     .initial = 1000,
     .help = "what a SIGKILL can cost at most, in milliseconds"},
    {.name = "fsync",
     .env = "DFTRACER_FSYNC",
     .keys = {"service.fsync"},
     .kind = CONFIG_BOOL,
     .help = "wait for the disk at each flush: a power cut then costs no more than a SIGKILL"},
    {.name = "keep",
     .env = "DFTRACER_KEEP",
     .keys = {"service.keep"},
     .kind = CONFIG_INT,
     .min = 0,
     .max = 1000000,
     .initial = 10,
     .help = "older traces of the same prefix and host that stay, as <prefix>_<host>.<n>.pfw.gz"},
    {.name = "stop_timeout_ms",
     .env = "DFTRACER_STOP_TIMEOUT_MS",
     .keys = {"service.stop_timeout_ms"},
     .kind = CONFIG_INT,
     .min = 100,
     .max = OPTIONS_DAY_MS,
     .initial = 30000,
     .help = "how long stop waits for the trace to be closed, in milliseconds"},
    {.name = "proc_path",
     .env = "DFTRACER_PROC_PATH",
     .keys = {"service.proc_path"},
     .kind = CONFIG_TEXT,
     .initial_text = "/proc",
     .help = "where the proc file system of the node is mounted"},
    {.name = "sys_path",
     .env = "DFTRACER_SYS_PATH",
     .keys = {"service.sys_path"},
     .kind = CONFIG_TEXT,
     .initial_text = "/sys",
     .help = "where the sys file system of the node is mounted"},
    {.name = "root_path",
     .env = "DFTRACER_ROOT_PATH",
     .keys = {"service.root_path"},
     .kind = CONFIG_TEXT,
     .help = "where the root of the node is mounted, in a container that measures its host's file systems"},
    {.name = "omnistat",
     .keys = {"features.omnistat.enable"},
     .kind = CONFIG_BOOL,
     .help = "take events out of a CSV file of omnistat"},
    {.name = "omnistat_input",
     .keys = {"features.omnistat.input"},
     .kind = CONFIG_TEXT,
     .help = "the CSV file; what is appended to it while the service runs is taken too"},
    {.name = "omnistat_format",
     .keys = {"features.omnistat.format"},
     .kind = CONFIG_TEXT,
     .initial_text = "csv",
     .help = "csv"},
    {.name = "omnistat_timestamp_column",
     .keys = {"features.omnistat.timestamp_column"},
     .kind = CONFIG_TEXT,
     .initial_text = "timestamp",
     .help = "the column with the time since 1970"},
    {.name = "omnistat_timestamp_format",
     .keys = {"features.omnistat.timestamp_format"},
     .kind = CONFIG_ENUM,
     .words = options_stamps,
     .initial = OPTIONS_STAMP_AUTO,
     .help = "its unit; AUTO tells it from the size of the number"},
    {.name = "omnistat_counters",
     .keys = {"features.omnistat.counters"},
     .kind = CONFIG_LIST,
     .help = "the columns to take"},
    {.name = "omnistat_all_counters",
     .keys = {"features.omnistat.include_all_counters"},
     .kind = CONFIG_BOOL,
     .help = "take all columns that hold numbers"},
};

/* One file configures the whole DFTracer family; these keys are read by its other members. */
static const char *const options_foreign_keys[] = {
    "tracer.init",
    "tracer.data_dirs",
    "tracer.preload",
    "profiler.init",
    "profiler.data_dirs",
    "profiler.preload",
    "gotcha",
    "features.io",
    "features.tid",
    "features.aggregation",
    "features.papi",
    "features.omnistat.attach_to_trace",
    "features.omnistat.export_raw",
    "features.omnistat.time_sync",
    "internal.bind_signals",
    "internal.throw_error",
    "aggregation",
    "python",
    NULL,
};

static const struct config_table options_all = {
    .options = options_rows, .options_count = ARRAY_LENGTH(options_rows), .foreign_keys = options_foreign_keys};

static const char *options_environment(char *const *environ_list, const char *name)
{
    size_t length = strlen(name);
    for (char *const *entry = environ_list; *entry != NULL; entry++) {
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=' && (*entry)[length + 1] != '\0')
            return *entry + length + 1;
    }
    return NULL;
}

/* The daemon's working directory is '/', so a path is made absolute while it still means what the user meant. */
static int options_absolute(const char *path, char **out_path, struct error *err)
{
    char *absolute = NULL;
    if (path[0] == '/') {
        absolute = strdup(path);
    } else {
        CLEANUP(memory_cleanup) char *here = getcwd(NULL, 0);
        if (here == NULL)
            return error_errno(err, "finding the current directory, to which '%s' is relative", path);
        if (asprintf(&absolute, "%s/%s", here, path) < 0)
            absolute = NULL;
    }
    if (absolute == NULL)
        return error_set(err, -ENOMEM, "no memory for a path");
    *out_path = absolute;
    return 0;
}

static const char *options_text_or_null(const struct config *config, const char *name)
{
    const char *text = config_text(config, name);
    return text[0] != '\0' ? text : NULL;
}

/* The environment's word against power wins over the file's for it. */
static bool options_has_power(const struct config *config)
{
    if (config_source_of(config, "variorum_disabled") == CONFIG_SOURCE_ENVIRONMENT)
        return !config_bool(config, "variorum_disabled");
    return config_bool(config, "variorum_power");
}

static void options_resolve_collectors(struct options *options)
{
    struct buf *text = &options->collectors_text;
    buf_init(text, OPTIONS_COLLECTORS_MAX_BYTES);
    buf_text(text, config_text(options->config, "collectors"));
    if (!options_has_power(options->config))
        buf_text(text, text->length > 0 ? ",-power" : "-power");
    options->collectors = buf_string(text);
}

static int options_omnistat(struct options *options, struct error *err)
{
    const struct config *config = options->config;
    if (!config_bool(config, "omnistat"))
        return 0;
    const char *format = config_text(config, "omnistat_format");
    if (strcmp(format, "csv") != 0)
        return error_set(err, -EINVAL, "features.omnistat.format: '%s' can't be read; use 'csv'", format);
    options->omnistat.input = options_text_or_null(config, "omnistat_input");
    if (options->omnistat.input == NULL)
        return error_set(err, -EINVAL, "features.omnistat.enable is true, but features.omnistat.input names no file");
    options->omnistat.time_column = config_text(config, "omnistat_timestamp_column");
    options->omnistat.stamp = (enum options_stamp)config_enum(config, "omnistat_timestamp_format");
    options->omnistat.counters = config_text(config, "omnistat_counters");
    options->omnistat.has_all_counters = config_bool(config, "omnistat_all_counters");
    return 0;
}

static void options_resolve(struct options *options)
{
    const struct config *config = options->config;
    options->is_enabled = config_bool(config, "enable");
    options->interval_ms = config_int(config, "trace_interval_ms");
    options->flush_interval_ms = config_int(config, "flush_interval_ms");
    options->stop_timeout_ms = config_int(config, "stop_timeout_ms");
    options->threads = (unsigned)config_int(config, "libuv_thread_count");
    options->is_compressed = config_bool(config, "compression");
    options->is_synced = config_bool(config, "fsync");
    options->has_metadata = config_bool(config, "metadata");
    options->has_core_affinity = config_bool(config, "core_affinity");
    options->has_memory_percent = config_bool(config, "memory_pct");
    options->write_buffer_bytes = (size_t)config_int(config, "write_buffer_size");
    if (options->write_buffer_bytes < OPTIONS_WRITE_BUFFER_MIN_BYTES)
        options->write_buffer_bytes = OPTIONS_WRITE_BUFFER_MIN_BYTES;
    options->keep = (unsigned)config_int(config, "keep");
    options->log_level = (enum log_level)config_enum(config, "log_level");
    options->time = (enum options_time)config_enum(config, "time_metric");
    options->frequency_per_tick = (unsigned)config_int(config, "frequency_per_tick");
    options->proc_path = config_text(config, "proc_path");
    options->sys_path = config_text(config, "sys_path");
    options->root_path = config_text(config, "root_path");
    options->cgroup = options_text_or_null(config, "cgroup");
    options_resolve_collectors(options);
}

int options_load(struct options *out_options, char *const *environ_list, struct buf *warnings, struct error *err)
{
    struct options options = {0};
    const char *yaml_path = options_environment(environ_list, "DFTRACER_CONFIGURATION");
    int rc = config_load(&options_all, yaml_path, environ_list, warnings, &options.config, err);
    if (rc < 0)
        return rc;
    options_resolve(&options);
    rc = buf_status(&options.collectors_text, err);
    if (rc == 0)
        rc = options_omnistat(&options, err);
    const char *log_file = config_text(options.config, "log_file");
    if (rc == 0 && log_file[0] != '\0')
        rc = options_absolute(log_file, &options.log_file, err);
    if (rc < 0) {
        options_fini(&options);
        return rc;
    }
    *out_options = options;
    return 0;
}

void options_fini(struct options *options)
{
    config_free(options->config);
    buf_fini(&options->collectors_text);
    free(options->log_file);
    *options = (struct options){0};
}

int options_check(const struct options *options, struct error *err)
{
    if (options->log_file == NULL)
        return error_set(err, -EINVAL,
                         "DFTRACER_LOG_FILE is not set: set it to the prefix of the trace, as in "
                         "DFTRACER_LOG_FILE=/scratch/me/trace (which makes /scratch/me/trace_<host>.pfw.gz)");
    size_t length = strlen(options->log_file);
    if (options->log_file[length - 1] == '/')
        return error_set(err, -EINVAL,
                         "DFTRACER_LOG_FILE='%s' names a directory: a prefix of file names is needed, as in '%strace'",
                         options->log_file, options->log_file);
    return 0;
}

int options_load_stop_timeout(char *const *environ_list, int64_t *out_timeout_ms, struct error *err)
{
    struct config_option row = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(options_rows); i++) {
        if (strcmp(options_rows[i].name, "stop_timeout_ms") == 0)
            row = options_rows[i];
    }
    CLEANUP(config_cleanup) struct config *config = NULL;
    const struct config_table table = {.options = &row, .options_count = 1};
    int rc = config_load(&table, NULL, environ_list, NULL, &config, err);
    if (rc < 0)
        return rc;
    *out_timeout_ms = config_int(config, row.name);
    return 0;
}

void options_help(struct buf *out)
{
    config_help(&options_all, out);
}

const char *options_time_name(enum options_time time)
{
    return options_times[time];
}

int64_t options_time_of(enum options_time time, int64_t stamp_ns)
{
    static const int64_t units_ns[] = {[OPTIONS_TIME_US] = CLOCK_NS_PER_US,
                                       [OPTIONS_TIME_NS] = 1,
                                       [OPTIONS_TIME_MS] = CLOCK_NS_PER_MS,
                                       [OPTIONS_TIME_SEC] = CLOCK_NS_PER_SECOND};
    return stamp_ns / units_ns[time];
}

const struct config_table *options_table(void)
{
    return &options_all;
}
