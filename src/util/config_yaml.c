/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/config_yaml.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <yaml.h>

#include "util/buf.h"
#include "util/cleanup.h"
#include "util/cursor.h"
#include "util/utf8.h"

/* Far more than people write, far less than what makes libyaml slow. */
enum { CONFIG_YAML_DEPTH_MAX = 100 };

/* What a walk hands down: the document, and who is asked about its keys. */
struct config_yaml_reader {
    const struct config_yaml *yaml;
    const struct config_yaml_walk *walk;
    yaml_document_t *document;
};

const char *config_yaml_type_name(enum config_yaml_type type)
{
    static const char *const names[] = {
        [CONFIG_YAML_SCALAR] = "a single value",
        [CONFIG_YAML_NULL] = "empty",
        [CONFIG_YAML_LIST] = "a list",
        [CONFIG_YAML_MAPPING] = "a mapping of keys",
    };
    return names[type];
}

static enum config_yaml_type config_yaml_type_of(const yaml_node_t *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (node->type == YAML_SEQUENCE_NODE)
        return CONFIG_YAML_LIST;
    if (node->type == YAML_MAPPING_NODE)
        return CONFIG_YAML_MAPPING;
    if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return CONFIG_YAML_SCALAR; /* a quoted null is a text */
    struct cursor text = cursor_of((const char *)node->data.scalar.value, node->data.scalar.length);
    for (size_t i = 0; i < ARRAY_LENGTH(nulls); i++) {
        if (cursor_equals(&text, nulls[i]))
            return CONFIG_YAML_NULL;
    }
    return CONFIG_YAML_SCALAR;
}

/* Writes "<path>.<key>"; false when it is too long, has a NUL, or the key is no text. */
static bool config_yaml_join(const char *path, const yaml_node_t *key, char out_path[CONFIG_KEY_MAX_BYTES])
{
    if (key->type != YAML_SCALAR_NODE)
        return false;
    const char *text = (const char *)key->data.scalar.value;
    size_t length = key->data.scalar.length;
    if (strlen(text) != length)
        return false;
    int joined = snprintf(out_path, CONFIG_KEY_MAX_BYTES, "%s%s%s", path, path[0] != '\0' ? "." : "", text);
    return joined >= 0 && joined < CONFIG_KEY_MAX_BYTES;
}

static void config_yaml_warn(const struct config_yaml_reader *reader, const yaml_node_t *key, const char *path,
                             const char *words)
{
    char printable[CONFIG_KEY_MAX_BYTES];
    (void)snprintf(printable, sizeof printable, "%s", path);
    printable[utf8_clean_line(printable, strlen(printable))] = '\0';
    reader->walk->on_warning(reader->walk->context, key->start_mark.line + 1, printable, words);
}

/* Joins the items of a list of scalars; false for anything else, and for a list that aliases have made huge. */
static bool config_yaml_join_list(const struct config_yaml_reader *reader, const yaml_node_t *node, struct buf *out)
{
    if (node->type != YAML_SEQUENCE_NODE)
        return false;
    const yaml_node_item_t *start = node->data.sequence.items.start;
    for (const yaml_node_item_t *at = start; at < node->data.sequence.items.top; at++) {
        const yaml_node_t *item = yaml_document_get_node(reader->document, *at);
        if (item->type != YAML_SCALAR_NODE)
            return false;
        if (at > start)
            buf_char(out, ',');
        buf_bytes(out, item->data.scalar.value, item->data.scalar.length);
    }
    return out->status == 0;
}

static int config_yaml_give(const struct config_yaml_reader *reader, const char *path, size_t line,
                            const yaml_node_t *node, struct error *err)
{
    struct config_yaml_value value = {.key = path, .line = line, .type = config_yaml_type_of(node)};
    CLEANUP(buf_cleanup) struct buf joined;
    buf_init(&joined, CONFIG_YAML_MAX_BYTES);
    if (node->type == YAML_SCALAR_NODE) {
        value.text = (const char *)node->data.scalar.value;
        value.length = node->data.scalar.length;
    } else if (config_yaml_join_list(reader, node, &joined)) {
        value.text = buf_string(&joined);
        value.length = joined.length;
    }
    int rc = reader->walk->on_value(reader->walk->context, &value, err);
    return rc == 0 ? 0 : error_wrap(err, rc, "%s:%zu: %s", reader->yaml->name, line, path);
}

static int config_yaml_walk_mapping(const struct config_yaml_reader *reader, const char *path,
                                    const yaml_node_t *mapping, struct error *err);

/* A key below which known ones lie. Recurses as deep as known keys have dots. */
static int config_yaml_walk_parent(const struct config_yaml_reader *reader, const char *path, size_t line,
                                   const yaml_node_t *node, struct error *err)
{
    enum config_yaml_type type = config_yaml_type_of(node);
    if (type == CONFIG_YAML_NULL)
        return 0;
    if (type != CONFIG_YAML_MAPPING)
        return error_set(err, -EINVAL, "%s:%zu: %s: must be a mapping of keys, not %s", reader->yaml->name, line, path,
                         config_yaml_type_name(type));
    return config_yaml_walk_mapping(reader, path, node, err);
}

static int config_yaml_walk_mapping(const struct config_yaml_reader *reader, const char *path,
                                    const yaml_node_t *mapping, struct error *err)
{
    const yaml_node_pair_t *end = mapping->data.mapping.pairs.top;
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < end; pair++) {
        const yaml_node_t *key = yaml_document_get_node(reader->document, pair->key);
        const yaml_node_t *node = yaml_document_get_node(reader->document, pair->value);
        size_t line = key->start_mark.line + 1; /* of the key: an alias' value stands elsewhere */
        char child[CONFIG_KEY_MAX_BYTES];
        if (!config_yaml_join(path, key, child)) {
            config_yaml_warn(reader, key, path, "a key that is no text, or too long, is ignored");
            continue;
        }
        int rc = 0;
        switch (reader->walk->classify(reader->walk->context, child)) {
        case CONFIG_YAML_VALUE:
            rc = config_yaml_give(reader, child, line, node, err);
            break;
        case CONFIG_YAML_PARENT:
            rc = config_yaml_walk_parent(reader, child, line, node, err);
            break;
        case CONFIG_YAML_UNKNOWN:
            config_yaml_warn(reader, key, child, "unknown key, ignored");
            break;
        case CONFIG_YAML_FOREIGN:
            break;
        }
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* libyaml tells where a byte can't be read by its offset alone. */
static size_t config_yaml_line_at(const struct config_yaml *yaml, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset && i < yaml->length; i++)
        line += yaml->text[i] == '\n' ? 1 : 0;
    return line;
}

static int config_yaml_syntax_error(const struct config_yaml *yaml, const yaml_parser_t *parser, struct error *err)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return error_set(err, -ENOMEM, "%s", yaml->name);
    size_t line = parser->error == YAML_READER_ERROR ? config_yaml_line_at(yaml, parser->problem_offset)
                                                     : parser->problem_mark.line + 1;
    size_t last_line = config_yaml_line_at(yaml, yaml->length > 0 ? yaml->length - 1 : 0);
    if (line > last_line)
        line = last_line; /* what is missing at the end is missing in a line that isn't there */
    const char *problem = parser->problem != NULL ? parser->problem : "unknown problem";
    if (parser->context == NULL)
        return error_set(err, -EINVAL, "%s:%zu: not YAML: %s", yaml->name, line, problem);
    return error_set(err, -EINVAL, "%s:%zu: not YAML: %s, %s from line %zu on", yaml->name, line, problem,
                     parser->context, parser->context_mark.line + 1);
}

static void config_yaml_parser_cleanup(yaml_parser_t *parser)
{
    yaml_parser_delete(parser);
}

static void config_yaml_document_cleanup(yaml_document_t *document)
{
    yaml_document_delete(document);
}

static void config_yaml_event_cleanup(yaml_event_t *event)
{
    yaml_event_delete(event);
}

/*
 * A first pass that keeps nothing. libyaml takes time by the square of the depth, half a minute for 256 KiB of
 * brackets, so that depth is bounded before a tree is made. `*out_second_line` is where a second document begins, 0:
 * nowhere.
 */
static int config_yaml_check(const struct config_yaml *yaml, size_t *out_second_line, struct error *err)
{
    CLEANUP(config_yaml_parser_cleanup) yaml_parser_t parser = {0};
    if (yaml_parser_initialize(&parser) == 0)
        return error_set(err, -ENOMEM, "%s", yaml->name);
    yaml_parser_set_input_string(&parser, (const unsigned char *)yaml->text, yaml->length);

    size_t depth = 0;
    size_t documents = 0;
    for (yaml_event_type_t type = YAML_NO_EVENT; type != YAML_STREAM_END_EVENT;) {
        CLEANUP(config_yaml_event_cleanup) yaml_event_t event = {0};
        if (yaml_parser_parse(&parser, &event) == 0)
            return config_yaml_syntax_error(yaml, &parser, err);
        type = event.type;
        if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT)
            depth++;
        else if (type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT)
            depth--;
        else if (type == YAML_DOCUMENT_START_EVENT && ++documents == 2)
            *out_second_line = event.start_mark.line + 1;
        if (depth > CONFIG_YAML_DEPTH_MAX)
            return error_set(err, -EINVAL, "%s:%zu: nested more than %d levels deep", yaml->name,
                             event.start_mark.line + 1, CONFIG_YAML_DEPTH_MAX);
    }
    return 0;
}

static int config_yaml_walk_document(const struct config_yaml *yaml, const struct config_yaml_walk *walk,
                                     struct error *err)
{
    CLEANUP(config_yaml_parser_cleanup) yaml_parser_t parser = {0};
    if (yaml_parser_initialize(&parser) == 0)
        return error_set(err, -ENOMEM, "%s", yaml->name);
    yaml_parser_set_input_string(&parser, (const unsigned char *)yaml->text, yaml->length);

    CLEANUP(config_yaml_document_cleanup) yaml_document_t document = {0};
    if (yaml_parser_load(&parser, &document) == 0)
        return config_yaml_syntax_error(yaml, &parser, err);
    const yaml_node_t *root = yaml_document_get_root_node(&document);
    if (root == NULL)
        return 0; /* nothing but comments */
    enum config_yaml_type type = config_yaml_type_of(root);
    if (type == CONFIG_YAML_NULL)
        return 0;
    if (type != CONFIG_YAML_MAPPING)
        return error_set(err, -EINVAL, "%s:%zu: the file must be a mapping of keys, not %s", yaml->name,
                         root->start_mark.line + 1, config_yaml_type_name(type));
    const struct config_yaml_reader reader = {.yaml = yaml, .walk = walk, .document = &document};
    return config_yaml_walk_mapping(&reader, "", root, err);
}

int config_yaml_read(const struct config_yaml *yaml, const struct config_yaml_walk *walk, struct error *err)
{
    size_t second_line = 0;
    int rc = config_yaml_check(yaml, &second_line, err);
    if (rc == 0)
        rc = config_yaml_walk_document(yaml, walk, err);
    if (rc == 0 && second_line != 0) /* said, since it may be a slip */
        walk->on_warning(walk->context, second_line, "---", "only the first document is read");
    return rc;
}
