/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config: options as a table: one row each, from which parsing, checks, help and the reference page are made.
 *
 * A value comes from the environment, else from a YAML file, else it is the row's default. Errors name where the value
 * came from: "DFTRACER_TRACE_INTERVAL_MS='abc': …", "/etc/x.yaml:12: features.interval: …". An unknown key of the file
 * is a warning with its line. Pure but for the one file that config_load() reads. One thread.
 */
#ifndef UTIL_CONFIG_H
#define UTIL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/error.h"

enum config_kind {
    CONFIG_BOOL, /* 0, 1, true, false, yes, no, on, off; any case */
    CONFIG_INT,  /* decimal, within min..max */
    CONFIG_TEXT, /* any text without NUL, at most CONFIG_TEXT_MAX_BYTES */
    CONFIG_ENUM, /* one of `words`, any case; the value is its index */
    CONFIG_LIST, /* texts separated by commas, as CONFIG_TEXT; in the file a list of them will do, too */
};

#define CONFIG_TEXT_MAX_BYTES 4096
#define CONFIG_KEYS_MAX       4
#define CONFIG_KEY_MAX_BYTES  256           /* of a dotted key */
#define CONFIG_YAML_MAX_BYTES (256U * 1024) /* of a file; larger is refused */

struct config_option {
    const char *name;                  /* how the program asks for it: "interval_ms" */
    const char *env;                   /* environment variable, or NULL */
    const char *keys[CONFIG_KEYS_MAX]; /* dotted YAML keys, the last that is present wins; unused ones are NULL */
    enum config_kind kind;
    int64_t min;
    int64_t max;
    int64_t initial;          /* number, 0/1, or index into words */
    const char *initial_text; /* of CONFIG_TEXT and CONFIG_LIST; NULL is "" */
    const char *const *words; /* of CONFIG_ENUM, NULL-terminated */
    const char *help;         /* one line, no full stop */
};

/* The options of a program. Static data: borrowed for the life of every config made from it. */
struct config_table {
    const struct config_option *options; /* [options_count] */
    size_t options_count;
    /*
     * Keys of the file that other programs read, NULL-terminated, or NULL: such a key and all below it are skipped
     * without a warning: "features" means features and features.x, not featuresque; an option's own key is never
     * skipped.
     */
    const char *const *foreign_keys;
};

/* Where a value came from; decides which of two wins. */
enum config_source { CONFIG_SOURCE_DEFAULT, CONFIG_SOURCE_FILE, CONFIG_SOURCE_ENVIRONMENT };

struct config; /* the values; opaque */

/*
 * Reads the file `yaml_path` (NULL: none) and the environment `environ_list` ("NAME=value", NULL-terminated; usually
 * `environ`). An empty environment variable counts as not set, and so does a YAML null. Every value of the file is
 * checked, also one that another wins over. Unknown keys append a line each to `warnings` (which may be NULL), and so
 * do keys given twice (the later counts) and documents after the first. Returns owned through `*out_config`, freed by
 * config_free(). Fails with -EINVAL (a value, the syntax), -E2BIG and other errnos (the file), -ENOMEM.
 */
MUST_CHECK int config_load(const struct config_table *table, const char *yaml_path, char *const *environ_list,
                           struct buf *warnings, struct config **out_config, struct error *err);

/* A YAML text and what messages call it; `text` needs no NUL. */
struct config_yaml {
    const char *name;
    const char *text;
    size_t length;
};

/* The pure part of config_load(): the same from a text (NULL: none). */
MUST_CHECK int config_parse(const struct config_table *table, const struct config_yaml *yaml, char *const *environ_list,
                            struct buf *warnings, struct config **out_config, struct error *err);

void config_free(struct config *config);
DEFINE_CLEANUP(config, config_free);

/* The value of option `name`, which must be in the table and of that kind (a fault of ours otherwise: asserted). */
bool config_bool(const struct config *config, const char *name);
int64_t config_int(const struct config *config, const char *name);
const char *config_text(const struct config *config, const char *name); /* or a list; borrowed from config */
size_t config_enum(const struct config *config, const char *name);
enum config_source config_source_of(const struct config *config, const char *name);

/* Appends the table as help: variable, keys, range or words, default. */
void config_help(const struct config_table *table, struct buf *out);

/* Appends the values as a JSON object {"interval_ms":1000,…}, in the table's order. */
void config_json(const struct config *config, struct buf *out);

#endif
