/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_yaml: walks a YAML text along the dotted keys that its user knows, and tells the line of each.
 *
 * Knows YAML (through libyaml, with its anchors and aliases), nothing of options. It goes down only where a known key
 * lies, so neither deep nesting nor aliases that multiply can make it work more than the file is long. One thread.
 */
#ifndef UTIL_CONFIG_YAML_H
#define UTIL_CONFIG_YAML_H

#include <stddef.h>

#include "util/config.h"
#include "util/error.h"

/* What the user makes of a dotted key. */
enum config_yaml_key {
    CONFIG_YAML_UNKNOWN, /* warn and skip */
    CONFIG_YAML_FOREIGN, /* skip */
    CONFIG_YAML_PARENT,  /* known keys lie below: must be a mapping */
    CONFIG_YAML_VALUE,   /* is given to on_value() */
};

enum config_yaml_type { CONFIG_YAML_SCALAR, CONFIG_YAML_NULL, CONFIG_YAML_LIST, CONFIG_YAML_MAPPING };

/* One known key of the file. Borrowed until the callback returns. */
struct config_yaml_value {
    const char *key; /* dotted */
    size_t line;     /* from 1 */
    enum config_yaml_type type;
    const char
        *text; /* of a scalar: any bytes, and a NUL after them; of a list of scalars: all, joined by ','; or NULL */
    size_t length;
};

struct config_yaml_walk {
    void *context;
    enum config_yaml_key (*classify)(void *context, const char *key);
    /* A failure ends the walk; "<name>:<line>: <key>: " is put before its words. */
    int (*on_value)(void *context, const struct config_yaml_value *value, struct error *err);
    void (*on_warning)(void *context, size_t line, const char *key, const char *words); /* `key` is printable */
};

/*
 * Walks the first document of `yaml`. Fails with -EINVAL (syntax, a top or parent that is no mapping), -ENOMEM, or what
 * on_value() failed with; the text names the file and the line.
 */
MUST_CHECK int config_yaml_read(const struct config_yaml *yaml, const struct config_yaml_walk *walk, struct error *err);

/* "a list", for messages. */
const char *config_yaml_type_name(enum config_yaml_type type);

#endif
