/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/config_yaml.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "util/buf.h"

enum { STORY_MAX_BYTES = 4096 };

/* What the walk said, in its order, and when a value is to be refused. */
struct story {
    struct buf text;
    const char *refused_key;
};

static enum config_yaml_key classify(void *context, const char *key)
{
    (void)context;
    static const struct {
        const char *key;
        enum config_yaml_key is;
    } known[] = {{"p", CONFIG_YAML_PARENT},    {"p.q", CONFIG_YAML_PARENT}, {"p.v", CONFIG_YAML_VALUE},
                 {"p.q.v", CONFIG_YAML_VALUE}, {"v", CONFIG_YAML_VALUE},    {"w", CONFIG_YAML_VALUE},
                 {"f", CONFIG_YAML_FOREIGN},   {"p.f", CONFIG_YAML_FOREIGN}};
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
        if (strcmp(known[i].key, key) == 0)
            return known[i].is;
    }
    return CONFIG_YAML_UNKNOWN;
}

static int on_value(void *context, const struct config_yaml_value *value, struct error *err)
{
    struct story *story = context;
    if (story->refused_key != NULL && strcmp(story->refused_key, value->key) == 0)
        return error_set(err, -ERANGE, "refused");
    buf_printf(&story->text, "%zu %s is %s", value->line, value->key, config_yaml_type_name(value->type));
    if (value->type == CONFIG_YAML_SCALAR)
        buf_printf(&story->text, " '%.*s'", (int)value->length, value->text);
    buf_text(&story->text, "; ");
    return 0;
}

static void on_warning(void *context, size_t line, const char *key, const char *words)
{
    struct story *story = context;
    buf_printf(&story->text, "%zu %s? %s; ", line, key, words);
}

static int read_story(const char *text, struct story *story, struct error *err)
{
    const struct config_yaml yaml = {.name = "f", .text = text, .length = strlen(text)};
    const struct config_yaml_walk walk = {
        .context = story, .classify = classify, .on_value = on_value, .on_warning = on_warning};
    buf_init(&story->text, STORY_MAX_BYTES);
    return config_yaml_read(&yaml, &walk, err);
}

static void walk_tells_known_keys_in_the_order_of_the_file(void **state)
{
    (void)state;
    static const struct {
        const char *text, *story;
    } cases[] = {
        {"v: 1\np:\n  v: two\n  q: {v: 'three'}\n",
         "1 v is a single value '1'; 3 p.v is a single value 'two'; 4 p.q.v is a single value 'three'; "},
        {"w: [1]\nv: {a: 1}\np: {v: ~}\n", "1 w is a list; 2 v is a mapping of keys; 3 p.v is empty; "},
        {"f: {v: 1}\np:\n  f: [1, 2]\n  x: 1\ny: [v]\n", "4 p.x? unknown key, ignored; 5 y? unknown key, ignored; "},
        {"v: |\n  a\n  b\nw: 1\n", "1 v is a single value 'a\nb\n'; 4 w is a single value '1'; "},
        {"v: &a 1\nw: *a\n", "1 v is a single value '1'; 2 w is a single value '1'; "},
        {"v: 1\n---\nv: 2\n---\nv: 3\n", "1 v is a single value '1'; 2 ---? only the first document is read; "},
        {"p:\np: {q: }\n", ""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct error err = {0};
        struct story story = {0};
        int rc = read_story(cases[i].text, &story, &err);
        if (rc != 0 || strcmp(buf_string(&story.text), cases[i].story) != 0)
            fail_msg("'%s': %d %s, %s", cases[i].text, rc, err.text, buf_string(&story.text));
        buf_fini(&story.text);
    }
}

static void refused_value_ends_the_walk(void **state)
{
    (void)state;
    struct error err = {0};
    struct story story = {.refused_key = "p.v"};
    assert_int_equal(read_story("v: 1\np:\n  v: 2\nw: 3\n", &story, &err), -ERANGE);
    assert_string_equal(err.text, "f:3: p.v: refused");
    assert_string_equal(buf_string(&story.text), "1 v is a single value '1'; ");
    buf_fini(&story.text);
}

static void text_that_is_no_mapping_tells_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"[v]", "v", "p: 1", "v: [", "p: [v]", "\"open"};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        struct error err = {0};
        struct story story = {0};
        assert_int_equal(read_story(texts[i], &story, &err), -EINVAL);
        assert_memory_equal(err.text, "f:1: ", 5);
        assert_int_equal(story.text.length, 0);
        buf_fini(&story.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walk_tells_known_keys_in_the_order_of_the_file),
        cmocka_unit_test(refused_value_ends_the_walk),
        cmocka_unit_test(text_that_is_no_mapping_tells_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
