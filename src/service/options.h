/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options: every setting of the service: one table, from which its help and its reference page are made, too.
 *
 * Knows what the settings are called, where they come from and what they mean together (three of them decide whether
 * power is measured); leaves to others what is done with them. Command line's thread, before the daemon is born.
 */
#ifndef SERVICE_OPTIONS_H
#define SERVICE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/config.h"
#include "util/error.h"
#include "util/log.h"

enum options_time { OPTIONS_TIME_US, OPTIONS_TIME_NS, OPTIONS_TIME_MS, OPTIONS_TIME_SEC };

/* How omnistat's CSV writes its instants. */
enum options_stamp { OPTIONS_STAMP_AUTO, OPTIONS_STAMP_SEC, OPTIONS_STAMP_MS, OPTIONS_STAMP_US, OPTIONS_STAMP_NS };

/* The settings as the daemon uses them. Texts are borrowed from `config` and absolute where they are paths. */
struct options {
    struct config *config;      /* owned */
    struct buf collectors_text; /* owned */
    const char *collectors;     /* what sampler_open() takes */
    char *log_file;             /* prefix of the trace, absolute; owned; NULL when none was given */
    bool is_enabled;
    int64_t interval_ms;
    int64_t flush_interval_ms;
    int64_t stop_timeout_ms;
    unsigned threads;
    bool is_compressed;
    bool is_synced;
    bool has_metadata;
    bool has_core_affinity;
    bool has_memory_percent;
    size_t write_buffer_bytes;
    unsigned keep; /* renamed traces that stay */
    enum log_level log_level;
    enum options_time time;
    unsigned frequency_per_tick;
    const char *proc_path;
    const char *sys_path;
    const char *root_path; /* put before mount points; "" for this machine's own */
    const char *cgroup;    /* NULL for none */
    struct {
        const char *input; /* NULL: off */
        const char *time_column;
        enum options_stamp stamp;
        const char *counters; /* comma-separated; "" for none named */
        bool has_all_counters;
    } omnistat;
};

/* A write buffer below this holds less than a tick of a large node. */
#define OPTIONS_WRITE_BUFFER_MIN_BYTES (64U << 10)

/*
 * Reads all settings from `environ_list` and the YAML file that DFTRACER_CONFIGURATION names. Warnings (one a line) are
 * appended to `warnings`. What `start` needs beyond the single values is options_check()'s. Freed by options_fini().
 */
MUST_CHECK int options_load(struct options *out_options, char *const *environ_list, struct buf *warnings,
                            struct error *err);
void options_fini(struct options *options);

/* Is there all that a start needs? -EINVAL says which variable is missing. */
MUST_CHECK int options_check(const struct options *options, struct error *err);

/*
 * How long `stop` waits, from the environment alone: a service must be stoppable whatever has happened to its YAML file
 * and to the variables that only `start` reads.
 */
MUST_CHECK int options_load_stop_timeout(char *const *environ_list, int64_t *out_timeout_ms, struct error *err);

/* Appends the table for a person. */
void options_help(struct buf *out);

/* "US", "NS", "MS", "SEC". */
const char *options_time_name(enum options_time time);

/* `stamp_ns` in the unit of the trace. */
int64_t options_time_of(enum options_time time, int64_t stamp_ns);

/* The table itself, for the test that the reference page names every row. */
const struct config_table *options_table(void);

#endif
