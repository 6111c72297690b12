/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/config_yaml.h"
#include "util/cursor.h"
#include "util/file.h"

enum { CONFIG_SHOWN_MAX_BYTES = 80 }; /* of a wrong value in a message */

struct config_slot {
    enum config_source source;
    int64_t number;                    /* number, 0/1, index into words */
    char *text;                        /* owned; NULL: the default's */
    size_t key;                        /* which of the option's keys gave the value, if the file did */
    size_t key_lines[CONFIG_KEYS_MAX]; /* where the file has them; 0: not */
};

struct config {
    struct config_table table;
    struct config_slot slots[]; /* [table.options_count], one for each row */
};

/* While the file is read. */
struct config_reading {
    struct config *config;
    const char *name;
    struct buf *warnings; /* or NULL */
};

/* "a whole number from 1 to 5": what a value of `option` has to be. */
static void config_expectation(const struct config_option *option, struct buf *out)
{
    switch (option->kind) {
    case CONFIG_BOOL:
        buf_text(out, "0 or 1 (or false, true, no, yes, off, on)");
        break;
    case CONFIG_INT:
        buf_printf(out, "a whole number from %" PRId64 " to %" PRId64, option->min, option->max);
        break;
    case CONFIG_TEXT:
        buf_printf(out, "a text of at most %d bytes without NUL", CONFIG_TEXT_MAX_BYTES);
        break;
    case CONFIG_LIST:
        buf_printf(out, "texts separated by commas, of at most %d bytes together", CONFIG_TEXT_MAX_BYTES);
        break;
    case CONFIG_ENUM:
        buf_text(out, "one of");
        for (size_t i = 0; option->words[i] != NULL; i++)
            buf_printf(out, "%s %s", i > 0 ? "," : "", option->words[i]);
        break;
    }
}

static bool config_parse_word(const char *const *words, const struct cursor *text, int64_t *out_index)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        if (cursor_equals_any_case(text, words[i])) {
            *out_index = (int64_t)i;
            return true;
        }
    }
    return false;
}

/* What a text means for any kind but texts and lists; blanks around it don't count. */
static bool config_parse_number(const struct config_option *option, struct cursor text, int64_t *out_number)
{
    static const char *const bools[] = {"0", "1", "false", "true", "no", "yes", "off", "on", NULL};
    cursor_skip_blanks(&text);
    while (!cursor_is_empty(&text) && (text.end[-1] == ' ' || text.end[-1] == '\t'))
        text.end--;
    int64_t number = 0;
    switch (option->kind) {
    case CONFIG_BOOL:
        if (!config_parse_word(bools, &text, &number))
            return false;
        number %= 2; /* the table has each "no" before its "yes" */
        break;
    case CONFIG_INT:
        if (!cursor_i64(&text, &number) || !cursor_is_empty(&text) || number < option->min || number > option->max)
            return false;
        break;
    case CONFIG_ENUM:
        if (!config_parse_word(option->words, &text, &number))
            return false;
        break;
    case CONFIG_TEXT:
    case CONFIG_LIST:
        return false;
    }
    *out_number = number;
    return true;
}

/* Says what `option` has to be; `instead`, what it was, may be NULL. */
static int config_refuse(const struct config_option *option, const char *instead, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf expected;
    buf_init(&expected, ERROR_TEXT_MAX_BYTES);
    config_expectation(option, &expected);
    return error_set(err, -EINVAL, "must be %s%s%s", buf_string(&expected), instead != NULL ? ", not " : "",
                     instead != NULL ? instead : "");
}

/* How much of a wrong value a message shows. */
static int config_shown_bytes(struct cursor text)
{
    return cursor_left(&text) < CONFIG_SHOWN_MAX_BYTES ? (int)cursor_left(&text) : CONFIG_SHOWN_MAX_BYTES;
}

static bool config_is_text(const struct config_option *option)
{
    return option->kind == CONFIG_TEXT || option->kind == CONFIG_LIST;
}

/* Reads `text` into a slot; leaves it as it was on failure. */
static int config_slot_set(struct config_slot *slot, const struct config_option *option, struct cursor text,
                           struct error *err)
{
    size_t length = cursor_left(&text);
    bool is_text = config_is_text(option);
    if (is_text ? length > CONFIG_TEXT_MAX_BYTES || memchr(text.at, '\0', length) != NULL
                : !config_parse_number(option, text, &slot->number))
        return config_refuse(option, NULL, err);
    if (!is_text)
        return 0;
    char *copy = strndup(text.at, length);
    if (copy == NULL)
        return error_set(err, -ENOMEM, "option '%s'", option->name);
    free(slot->text);
    slot->text = copy;
    return 0;
}

/* Is `key` equal to `prefix`, or below it? */
static bool config_is_below(const char *key, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(key, prefix, length) == 0 && (key[length] == '\0' || key[length] == '.');
}

static enum config_yaml_key config_classify(void *context, const char *key)
{
    const struct config_reading *reading = context;
    const struct config_table *table = &reading->config->table;
    enum config_yaml_key found = CONFIG_YAML_UNKNOWN;
    for (size_t i = 0; i < table->options_count; i++) {
        for (size_t k = 0; k < CONFIG_KEYS_MAX && table->options[i].keys[k] != NULL; k++) {
            const char *ours = table->options[i].keys[k];
            if (strcmp(ours, key) == 0)
                return CONFIG_YAML_VALUE;
            if (config_is_below(ours, key))
                found = CONFIG_YAML_PARENT;
        }
    }
    for (size_t i = 0; found == CONFIG_YAML_UNKNOWN && table->foreign_keys != NULL && table->foreign_keys[i] != NULL;
         i++) {
        if (config_is_below(key, table->foreign_keys[i]))
            found = CONFIG_YAML_FOREIGN;
    }
    return found;
}

static void config_on_warning(void *context, size_t line, const char *key, const char *words)
{
    const struct config_reading *reading = context;
    if (reading->warnings != NULL)
        buf_printf(reading->warnings, "%s:%zu: %s: %s\n", reading->name, line, key, words);
}

static void config_warn_twice(const struct config_reading *reading, const struct config_yaml_value *value,
                              size_t first_line)
{
    if (reading->warnings != NULL)
        buf_printf(reading->warnings, "%s:%zu: %s: given a second time (first in line %zu), this one counts\n",
                   reading->name, value->line, value->key, first_line);
}

/* The file gives key number `key` of an option. */
static int config_slot_set_from_file(const struct config_reading *reading, size_t index, size_t key,
                                     const struct config_yaml_value *value, struct error *err)
{
    const struct config_option *option = &reading->config->table.options[index];
    struct config_slot *slot = &reading->config->slots[index];
    if (slot->key_lines[key] != 0)
        config_warn_twice(reading, value, slot->key_lines[key]);
    slot->key_lines[key] = value->line;
    bool is_list = option->kind == CONFIG_LIST && value->type == CONFIG_YAML_LIST && value->text != NULL;
    if (value->type != CONFIG_YAML_SCALAR && !is_list)
        return config_refuse(option, config_yaml_type_name(value->type), err);

    /* A value that another key overrules is read, too: a mistake in it is a mistake all the same. */
    bool is_overruled = slot->source == CONFIG_SOURCE_FILE && slot->key > key;
    struct config_slot unused = {0};
    struct cursor text = cursor_of(value->text, value->length);
    int rc = config_slot_set(is_overruled ? &unused : slot, option, text, err);
    free(unused.text);
    if (rc != 0)
        return error_wrap(err, rc, "'%.*s'", config_shown_bytes(text), text.at);
    if (!is_overruled) {
        slot->source = CONFIG_SOURCE_FILE;
        slot->key = key;
    }
    return 0;
}

static int config_on_value(void *context, const struct config_yaml_value *value, struct error *err)
{
    const struct config_reading *reading = context;
    const struct config_table *table = &reading->config->table;
    if (value->type == CONFIG_YAML_NULL)
        return 0;
    for (size_t i = 0; i < table->options_count; i++) {
        const struct config_option *option = &table->options[i];
        for (size_t k = 0; k < CONFIG_KEYS_MAX && option->keys[k] != NULL; k++) {
            if (strcmp(option->keys[k], value->key) != 0)
                continue;
            int rc = config_slot_set_from_file(reading, i, k, value, err);
            if (rc != 0)
                return rc;
        }
    }
    return 0;
}

/* The value of variable `name` in `list`; NULL when it isn't there or empty. */
static const char *config_environment(char *const *list, const char *name)
{
    size_t length = strlen(name);
    for (; *list != NULL; list++) {
        if (strncmp(*list, name, length) == 0 && (*list)[length] == '=')
            return (*list)[length + 1] != '\0' ? *list + length + 1 : NULL;
    }
    return NULL;
}

static int config_read_environment(struct config *config, char *const *environ_list, struct error *err)
{
    for (size_t i = 0; i < config->table.options_count; i++) {
        const struct config_option *option = &config->table.options[i];
        const char *text = option->env != NULL ? config_environment(environ_list, option->env) : NULL;
        if (text == NULL)
            continue;
        struct cursor value = cursor_of(text, strlen(text));
        int rc = config_slot_set(&config->slots[i], option, value, err);
        if (rc != 0)
            return error_wrap(err, rc, "%s='%.*s'", option->env, config_shown_bytes(value), text);
        config->slots[i].source = CONFIG_SOURCE_ENVIRONMENT;
    }
    return 0;
}

int config_parse(const struct config_table *table, const struct config_yaml *yaml, char *const *environ_list,
                 struct buf *warnings, struct config **out_config, struct error *err)
{
    CLEANUP(config_cleanup)
    struct config *config = calloc(1, sizeof *config + table->options_count * sizeof config->slots[0]);
    if (config == NULL)
        return error_set(err, -ENOMEM, "configuration");
    config->table = *table;
    for (size_t i = 0; i < table->options_count; i++)
        config->slots[i].number = table->options[i].initial;

    if (yaml != NULL) {
        struct config_reading reading = {.config = config, .name = yaml->name, .warnings = warnings};
        const struct config_yaml_walk walk = {.context = &reading,
                                              .classify = config_classify,
                                              .on_value = config_on_value,
                                              .on_warning = config_on_warning};
        int rc = config_yaml_read(yaml, &walk, err);
        if (rc != 0)
            return rc;
    }
    int rc = config_read_environment(config, environ_list, err);
    if (rc != 0)
        return rc;
    *out_config = TAKE(config);
    return 0;
}

int config_load(const struct config_table *table, const char *yaml_path, char *const *environ_list,
                struct buf *warnings, struct config **out_config, struct error *err)
{
    if (yaml_path == NULL)
        return config_parse(table, NULL, environ_list, warnings, out_config, err);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, CONFIG_YAML_MAX_BYTES);
    int rc = file_read(AT_FDCWD, yaml_path, &text, err);
    if (rc != 0)
        return rc;
    const struct config_yaml yaml = {
        .name = yaml_path, .text = text.data != NULL ? text.data : "", .length = text.length};
    return config_parse(table, &yaml, environ_list, warnings, out_config, err);
}

void config_free(struct config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < config->table.options_count; i++)
        free(config->slots[i].text);
    free(config);
}

/* Index of option `name`, which must be there. */
static size_t config_index(const struct config *config, const char *name)
{
    size_t i = 0;
    while (i < config->table.options_count && strcmp(config->table.options[i].name, name) != 0)
        i++;
    assert(i < config->table.options_count);
    return i;
}

static const struct config_slot *config_slot_of(const struct config *config, const char *name, enum config_kind kind)
{
    size_t index = config_index(config, name);
    assert(config->table.options[index].kind == kind);
    return &config->slots[index];
}

bool config_bool(const struct config *config, const char *name)
{
    return config_slot_of(config, name, CONFIG_BOOL)->number != 0;
}

int64_t config_int(const struct config *config, const char *name)
{
    return config_slot_of(config, name, CONFIG_INT)->number;
}

static const char *config_text_at(const struct config *config, size_t index)
{
    const char *text = config->slots[index].text;
    if (text == NULL)
        text = config->table.options[index].initial_text;
    return text != NULL ? text : "";
}

const char *config_text(const struct config *config, const char *name)
{
    size_t index = config_index(config, name);
    assert(config_is_text(&config->table.options[index]));
    return config_text_at(config, index);
}

size_t config_enum(const struct config *config, const char *name)
{
    return (size_t)config_slot_of(config, name, CONFIG_ENUM)->number;
}

enum config_source config_source_of(const struct config *config, const char *name)
{
    return config->slots[config_index(config, name)].source;
}

static void config_help_default(const struct config_option *option, struct buf *out)
{
    switch (option->kind) {
    case CONFIG_BOOL:
    case CONFIG_INT:
        buf_printf(out, "; default %" PRId64, option->initial);
        break;
    case CONFIG_TEXT:
    case CONFIG_LIST:
        if (option->initial_text != NULL && option->initial_text[0] != '\0')
            buf_printf(out, "; default '%s'", option->initial_text);
        break;
    case CONFIG_ENUM:
        buf_printf(out, "; default %s", option->words[option->initial]);
        break;
    }
}

void config_help(const struct config_table *table, struct buf *out)
{
    for (size_t i = 0; i < table->options_count; i++) {
        const struct config_option *option = &table->options[i];
        buf_printf(out, "  %s\n      %s\n      ", option->env != NULL ? option->env : option->name, option->help);
        config_expectation(option, out);
        config_help_default(option, out);
        for (size_t k = 0; k < CONFIG_KEYS_MAX && option->keys[k] != NULL; k++)
            buf_printf(out, "%s%s", k == 0 ? "\n      YAML: " : ", ", option->keys[k]);
        buf_char(out, '\n');
    }
}

void config_json(const struct config *config, struct buf *out)
{
    buf_char(out, '{');
    for (size_t i = 0; i < config->table.options_count; i++) {
        const struct config_option *option = &config->table.options[i];
        const struct config_slot *slot = &config->slots[i];
        if (i > 0)
            buf_char(out, ',');
        buf_json_string(out, option->name);
        buf_char(out, ':');
        switch (option->kind) {
        case CONFIG_BOOL:
            buf_text(out, slot->number != 0 ? "true" : "false");
            break;
        case CONFIG_INT:
            buf_i64(out, slot->number);
            break;
        case CONFIG_TEXT:
        case CONFIG_LIST:
            buf_json_string(out, config_text_at(config, i));
            break;
        case CONFIG_ENUM:
            buf_json_string(out, option->words[slot->number]);
            break;
        }
    }
    buf_char(out, '}');
}
