/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "support/scratch.h"

enum { WARNINGS_MAX_BYTES = 65536 };

static const char *const units[] = {"US", "NS", "MS", "SEC", NULL};

static const struct config_option options[] = {
    {.name = "interval_ms",
     .env = "T_INTERVAL",
     .keys = {"tracer.interval", "features.interval"},
     .kind = CONFIG_INT,
     .min = 1,
     .max = 3600000,
     .initial = 1000,
     .help = "time between samples"},
    {.name = "offset",
     .env = "T_OFFSET",
     .keys = {"offset"},
     .kind = CONFIG_INT,
     .min = INT64_MIN,
     .max = INT64_MAX,
     .initial = -5,
     .help = "any number"},
    {.name = "enable", .env = "T_ENABLE", .keys = {"enable"}, .kind = CONFIG_BOOL, .initial = 0, .help = "run at all"},
    {.name = "time",
     .env = "T_TIME",
     .keys = {"tracer.time"},
     .kind = CONFIG_ENUM,
     .words = units,
     .initial = 2,
     .help = "unit of time"},
    {.name = "prefix",
     .env = "T_PREFIX",
     .keys = {"tracer.file", "profiler.file"},
     .kind = CONFIG_TEXT,
     .initial_text = "trace",
     .help = "where"},
    {.name = "note", .keys = {"a.b.c.note"}, .kind = CONFIG_TEXT, .help = "file only"},
    {.name = "names", .env = "T_NAMES", .keys = {"names"}, .kind = CONFIG_LIST, .initial_text = "x,y", .help = "many"},
    {.name = "secret", .env = "T_SECRET", .kind = CONFIG_BOOL, .initial = 1, .help = "environment only"},
};
static const char *const foreign_keys[] = {"features", "profiler.hooks", "mpi", NULL};
static const struct config_table table = {options, ARRAY_LENGTH(options), foreign_keys};

/* What became of a text and an environment. */
struct outcome {
    struct config *config;
    struct buf warnings;
    struct error err;
    int rc;
};

static void outcome_cleanup(struct outcome *outcome)
{
    config_free(outcome->config);
    buf_fini(&outcome->warnings);
}

static struct outcome parse(const char *text, const char *const *environment)
{
    static const char *const none[] = {NULL};
    struct outcome outcome = {0};
    buf_init(&outcome.warnings, WARNINGS_MAX_BYTES);
    const struct config_yaml yaml = {.name = "x.yaml", .text = text, .length = text != NULL ? strlen(text) : 0};
    char *environ_list[8] = {NULL};
    size_t count = 0;
    for (const char *const *entry = environment != NULL ? environment : none; *entry != NULL; entry++)
        environ_list[count++] = strdup(*entry);
    outcome.rc = config_parse(&table, text != NULL ? &yaml : NULL, environ_list, &outcome.warnings, &outcome.config,
                              &outcome.err);
    while (count > 0)
        free(environ_list[--count]); /* nothing of the environment is borrowed after */
    return outcome;
}

static void assert_parsed(const char *name, struct outcome *outcome)
{
    if (outcome->rc != 0 || buf_status(&outcome->warnings, NULL) != 0)
        fail_msg("%s: %d, %s", name, outcome->rc, outcome->err.text);
}

static void values_are_the_defaults_without_any_source(void **state)
{
    (void)state;
    CLEANUP(outcome_cleanup) struct outcome outcome = parse(NULL, NULL);
    assert_parsed("defaults", &outcome);
    assert_int_equal(config_int(outcome.config, "interval_ms"), 1000);
    assert_int_equal(config_int(outcome.config, "offset"), -5);
    assert_false(config_bool(outcome.config, "enable"));
    assert_true(config_bool(outcome.config, "secret"));
    assert_int_equal(config_enum(outcome.config, "time"), 2);
    assert_string_equal(config_text(outcome.config, "prefix"), "trace");
    assert_string_equal(config_text(outcome.config, "note"), "");
    for (size_t i = 0; i < ARRAY_LENGTH(options); i++)
        assert_int_equal(config_source_of(outcome.config, options[i].name), CONFIG_SOURCE_DEFAULT);
}

static void file_gives_every_kind(void **state)
{
    (void)state;
    CLEANUP(outcome_cleanup)
    struct outcome outcome = parse("# a comment\n"
                                   "enable: on\n"
                                   "offset: -9223372036854775808\n"
                                   "features:\n"
                                   "  interval: 50\n"
                                   "tracer: {time: ns, file: '/x/a b'}\n"
                                   "a:\n"
                                   "  b: {c: {note: |\n"
                                   "    two\n"
                                   "    lines\n"
                                   "    }}\n",
                                   NULL);
    /* A block text can't stand within braces: this is the syntax error it should be. */
    assert_int_equal(outcome.rc, -EINVAL);

    CLEANUP(outcome_cleanup)
    struct outcome good = parse("# a comment\n"
                                "enable: on\n"
                                "offset: -9223372036854775808\n"
                                "features:\n"
                                "  interval: 50\n"
                                "tracer: {time: ns, file: '/x/a b'}\n"
                                "a:\n"
                                "  b:\n"
                                "    c: {note: \"one\\ttwo\"}\n",
                                NULL);
    assert_parsed("good", &good);
    assert_string_equal(buf_string(&good.warnings), "");
    assert_true(config_bool(good.config, "enable"));
    assert_true(config_int(good.config, "offset") == INT64_MIN);
    assert_int_equal(config_int(good.config, "interval_ms"), 50);
    assert_int_equal(config_enum(good.config, "time"), 1);
    assert_string_equal(config_text(good.config, "prefix"), "/x/a b");
    assert_string_equal(config_text(good.config, "note"), "one\ttwo");
    assert_int_equal(config_source_of(good.config, "note"), CONFIG_SOURCE_FILE);
    assert_int_equal(config_source_of(good.config, "secret"), CONFIG_SOURCE_DEFAULT);
}

/* The value of one option, whatever the kind, as JSON shows it. */
static void assert_value(const char *name, const struct outcome *outcome, const char *option, const char *expected)
{
    CLEANUP(buf_cleanup) struct buf json;
    char member[128];
    buf_init(&json, WARNINGS_MAX_BYTES);
    config_json(outcome->config, &json);
    (void)snprintf(member, sizeof member, "\"%s\":%s", option, expected);
    const char *found = strstr(buf_string(&json), member);
    if (found == NULL || (found[strlen(member)] != ',' && found[strlen(member)] != '}'))
        fail_msg("%s: %s is not in %s", name, member, buf_string(&json));
}

static void values_are_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text, *option, *expected;
    } cases[] = {
        {"enable: 1", "enable", "true"},
        {"enable: true", "enable", "true"},
        {"enable: Yes", "enable", "true"},
        {"enable: ON", "enable", "true"},
        {"enable: \"1\"", "enable", "true"},
        {"enable: 'True'", "enable", "true"},
        {"{\"enable\": true}", "enable", "true"}, /* JSON is YAML */
        {"enable: !!bool yes", "enable", "true"},
        {"tracer: {interval: \"250\"}", "interval_ms", "250"},
        {"tracer: {interval: ' 250 '}", "interval_ms", "250"},
        {"tracer: {interval: +250}", "interval_ms", "250"},
        {"tracer: {interval: 0250}", "interval_ms", "250"},
        {"tracer: {interval: 1}", "interval_ms", "1"},
        {"tracer: {interval: 3600000}", "interval_ms", "3600000"},
        {"offset: 9223372036854775807", "offset", "9223372036854775807"},
        {"tracer: {time: sec}", "time", "\"SEC\""},
        {"tracer: {time: Us}", "time", "\"US\""},
        {"tracer: {file: 2024}", "prefix", "\"2024\""},
        {"tracer: {file: ' x '}", "prefix", "\" x \""},
        {"tracer: {file: 'null'}", "prefix", "\"null\""},
        {"tracer: {file: ''}", "prefix", "\"\""},
        {"tracer: {file: >-\n folded\n text}", "prefix", NULL},
        {"tracer:\n  file: >-\n    folded\n    text\n", "prefix", "\"folded text\""},
        {"tracer.interval: 70", "interval_ms", "70"}, /* the dotted key as one */
        {"\xef\xbb\xbf"
         "enable: 1",
         "enable", "true"},
        {"%YAML 1.1\n---\nenable: 1\n...\n", "enable", "true"},
        {"enable: 1\r\noffset: 7\r\n", "offset", "7"},
        /* nothing is not a value: the default stays */
        {"enable:", "enable", "false"},
        {"tracer: {interval: ~}", "interval_ms", "1000"},
        {"tracer: {file: null}", "prefix", "\"trace\""},
        {"tracer:", "interval_ms", "1000"},
        {"tracer: ~", "interval_ms", "1000"},
        {"", "interval_ms", "1000"},
        {"# nothing\n", "interval_ms", "1000"},
        {"---\n", "interval_ms", "1000"},
        {"~", "interval_ms", "1000"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(outcome_cleanup) struct outcome outcome = parse(cases[i].text, NULL);
        if (cases[i].expected == NULL) {
            assert_int_equal(outcome.rc, -EINVAL);
            continue;
        }
        assert_parsed(cases[i].text, &outcome);
        assert_value(cases[i].text, &outcome, cases[i].option, cases[i].expected);
        if (buf_string(&outcome.warnings)[0] != '\0')
            fail_msg("'%s': %s", cases[i].text, buf_string(&outcome.warnings));
    }
}

static void lists_are_texts_with_commas_or_lists_of_the_file(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected, *message;
    } cases[] = {
        {"names: a", "a", NULL},
        {"names: a, b", "a, b", NULL},
        {"names: [a, 'b c', 7]", "a,b c,7", NULL},
        {"names:\n  - a\n  - b\n", "a,b", NULL},
        {"names: []", "", NULL},
        {"names: ~", "x,y", NULL},
        {"names: {a: 1}", NULL,
         "x.yaml:1: names: must be texts separated by commas, of at most 4096 bytes together, not a mapping of keys"},
        {"names: [[a]]", NULL,
         "x.yaml:1: names: must be texts separated by commas, of at most 4096 bytes together, not a list"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(outcome_cleanup) struct outcome outcome = parse(cases[i].text, NULL);
        if (cases[i].expected == NULL) {
            assert_int_equal(outcome.rc, -EINVAL);
            assert_string_equal(outcome.err.text, cases[i].message);
            continue;
        }
        assert_parsed(cases[i].text, &outcome);
        assert_string_equal(config_text(outcome.config, "names"), cases[i].expected);
    }
    static const char *const environment[] = {"T_NAMES=p,q", NULL};
    CLEANUP(outcome_cleanup) struct outcome outcome = parse("names: [a, b]", environment);
    assert_parsed("both", &outcome);
    assert_string_equal(config_text(outcome.config, "names"), "p,q");
}

static void mistakes_in_the_file_are_named_with_line_and_key(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"enable: maybe", "x.yaml:1: enable: 'maybe': must be 0 or 1 (or false, true, no, yes, off, on)"},
        {"enable: 2", "x.yaml:1: enable: '2': must be 0 or 1 (or false, true, no, yes, off, on)"},
        {"enable: ''", "x.yaml:1: enable: '': must be 0 or 1 (or false, true, no, yes, off, on)"},
        {"\n\nenable: [1]", "x.yaml:3: enable: must be 0 or 1 (or false, true, no, yes, off, on), not a list"},
        {"enable:\n  a: 1",
         "x.yaml:1: enable: must be 0 or 1 (or false, true, no, yes, off, on), not a mapping of keys"},
        {"tracer:\n  interval: 0", "x.yaml:2: tracer.interval: '0': must be a whole number from 1 to 3600000"},
        {"tracer:\n  interval: 3600001",
         "x.yaml:2: tracer.interval: '3600001': must be a whole number from 1 to 3600000"},
        {"tracer:\n  interval: -1", "x.yaml:2: tracer.interval: '-1': must be a whole number from 1 to 3600000"},
        {"tracer:\n  interval: abc", "x.yaml:2: tracer.interval: 'abc': must be a whole number from 1 to 3600000"},
        {"tracer:\n  interval: 1e3", "x.yaml:2: tracer.interval: '1e3': must be a whole number from 1 to 3600000"},
        {"tracer:\n  interval: 10.0", "x.yaml:2: tracer.interval: '10.0': must be a whole number from 1 to 3600000"},
        {"tracer:\n  interval: 0x10", "x.yaml:2: tracer.interval: '0x10': must be a whole number from 1 to 3600000"},
        {"tracer:\n  interval: 1 0", "x.yaml:2: tracer.interval: '1 0': must be a whole number from 1 to 3600000"},
        {"tracer:\n  interval: \"10\\n\"",
         "x.yaml:2: tracer.interval: '10 ': must be a whole number from 1 to 3600000"},
        {"offset: 9223372036854775808", "x.yaml:1: offset: '9223372036854775808': must be a whole number from "
                                        "-9223372036854775808 to 9223372036854775807"},
        {"tracer: {time: hours}", "x.yaml:1: tracer.time: 'hours': must be one of US, NS, MS, SEC"},
        {"tracer: {time: U}", "x.yaml:1: tracer.time: 'U': must be one of US, NS, MS, SEC"},
        {"tracer: {file: \"a\\0b\"}", "x.yaml:1: tracer.file: 'a': must be a text of at most 4096 bytes without NUL"},
        {"tracer: {file: {}}",
         "x.yaml:1: tracer.file: must be a text of at most 4096 bytes without NUL, not a mapping of keys"},
        {"a:\n  b:\n    c:\n      - note", "x.yaml:3: a.b.c: must be a mapping of keys, not a list"},
        {"features: 5", "x.yaml:1: features: must be a mapping of keys, not a single value"},
        {"- enable", "x.yaml:1: the file must be a mapping of keys, not a list"},
        {"\njust text", "x.yaml:2: the file must be a mapping of keys, not a single value"},
        {"a: [1,\nb: 2\n", "x.yaml:2: not YAML: did not find expected ',' or ']', while parsing a flow sequence from "
                           "line 1 on"},
        {"enable: 1\n\tx: 2", "x.yaml:2: not YAML: found a tab character that violates indentation, while scanning a "
                              "plain scalar from line 1 on"},
        {"enable: 1\n x: 2\n", "x.yaml:2: not YAML: mapping values are not allowed in this context"},
        {"a: 1\nb: \"open", "x.yaml:2: not YAML: found unexpected end of stream, while scanning a quoted scalar from "
                            "line 2 on"},
        {"a: *nowhere", "x.yaml:1: not YAML: found undefined alias"},
        {"a: 1\nb: \xff\n", "x.yaml:2: not YAML: invalid leading UTF-8 octet"},
        {"a: 1\nb: 2\nc: \x01\n", "x.yaml:3: not YAML: control characters are not allowed"},
        {"a: 1\n---\n- [\n", "x.yaml:3: not YAML: did not find expected node content, while parsing a flow node from "
                             "line 4 on"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(outcome_cleanup) struct outcome outcome = parse(cases[i].text, NULL);
        if (outcome.rc != -EINVAL || strcmp(outcome.err.text, cases[i].message) != 0)
            fail_msg("'%s': %d, %s", cases[i].text, outcome.rc, outcome.err.text);
        assert_null(outcome.config); /* outputs are untouched on failure */
    }
}

static void mistakes_in_the_environment_name_variable_and_value(void **state)
{
    (void)state;
    static const struct {
        const char *entry, *message;
    } cases[] = {
        {"T_INTERVAL=abc", "T_INTERVAL='abc': must be a whole number from 1 to 3600000"},
        {"T_INTERVAL=0", "T_INTERVAL='0': must be a whole number from 1 to 3600000"},
        {"T_INTERVAL=1e9", "T_INTERVAL='1e9': must be a whole number from 1 to 3600000"},
        {"T_ENABLE=ja", "T_ENABLE='ja': must be 0 or 1 (or false, true, no, yes, off, on)"},
        {"T_ENABLE= ", "T_ENABLE=' ': must be 0 or 1 (or false, true, no, yes, off, on)"},
        {"T_TIME=\x1b[2J", "T_TIME=' [2J': must be one of US, NS, MS, SEC"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        const char *const environment[] = {cases[i].entry, NULL};
        CLEANUP(outcome_cleanup) struct outcome outcome = parse(NULL, environment);
        if (outcome.rc != -EINVAL || strcmp(outcome.err.text, cases[i].message) != 0)
            fail_msg("'%s': %d, %s", cases[i].entry, outcome.rc, outcome.err.text);
    }
}

static void long_values_are_refused_and_not_shown_whole(void **state)
{
    (void)state;
    char text[CONFIG_TEXT_MAX_BYTES + 64];
    for (int excess = 0; excess < 2; excess++) {
        int length = snprintf(text, sizeof text, "T_PREFIX=%0*d", CONFIG_TEXT_MAX_BYTES + excess, 0);
        assert_in_range(length, CONFIG_TEXT_MAX_BYTES, sizeof text - 1);
        const char *const environment[] = {text, NULL};
        CLEANUP(outcome_cleanup) struct outcome outcome = parse(NULL, environment);
        assert_int_equal(outcome.rc, excess == 0 ? 0 : -EINVAL);
        if (excess == 0)
            assert_int_equal(strlen(config_text(outcome.config, "prefix")), CONFIG_TEXT_MAX_BYTES);
        else
            assert_in_range(strlen(outcome.err.text), 1, 200);
    }
}

static void unknown_and_doubled_keys_are_warnings_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *warnings;
    } cases[] = {
        {"enabel: 1", "x.yaml:1: enabel: unknown key, ignored\n"},
        {"Enable: 1", "x.yaml:1: Enable: unknown key, ignored\n"},
        {"tracer:\n  intervall: 1\nother:\n  x: {y: 1}\n",
         "x.yaml:2: tracer.intervall: unknown key, ignored\nx.yaml:3: other: unknown key, ignored\n"},
        {"featuresque: 1", "x.yaml:1: featuresque: unknown key, ignored\n"},
        {"profiler: {hook: 1}", "x.yaml:1: profiler.hook: unknown key, ignored\n"},
        {"enable.x: 1", "x.yaml:1: enable.x: unknown key, ignored\n"},
        {"'': 1", "x.yaml:1: : unknown key, ignored\n"},
        {"\"a\\tb\\e[2J\": 1", "x.yaml:1: a b [2J: unknown key, ignored\n"},
        {"[a, b]: 1", "x.yaml:1: : a key that is no text, or too long, is ignored\n"},
        {"tracer: {? {a: b} : 1}", "x.yaml:1: tracer: a key that is no text, or too long, is ignored\n"},
        {"\"a\\0b\": 1", "x.yaml:1: : a key that is no text, or too long, is ignored\n"},
        {"enable: 1\n---\nenable: 0\n", "x.yaml:2: ---: only the first document is read\n"},
        {"enable: 1\nenable: 0\nenable: 1\n",
         "x.yaml:2: enable: given a second time (first in line 1), this one counts\n"
         "x.yaml:3: enable: given a second time (first in line 2), this one counts\n"},
        {"tracer: {interval: 5}\ntracer:\n  interval: 6\n",
         "x.yaml:3: tracer.interval: given a second time (first in line 1), this one counts\n"},
        {"<<: {enable: 1}", "x.yaml:1: <<: unknown key, ignored\n"},
        /* what others read */
        {"features: {omnistat: [1, {a: b}], interval: 5}\nmpi: true\nprofiler:\n  hooks: {x: 1}\n", ""},
        {"features.x.y: 1", ""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(outcome_cleanup) struct outcome outcome = parse(cases[i].text, NULL);
        assert_parsed(cases[i].text, &outcome);
        if (strcmp(buf_string(&outcome.warnings), cases[i].warnings) != 0)
            fail_msg("'%s': %s", cases[i].text, buf_string(&outcome.warnings));
    }
}

static void overlong_key_is_a_warning(void **state)
{
    (void)state;
    for (int length = CONFIG_KEY_MAX_BYTES - 2; length < CONFIG_KEY_MAX_BYTES + 2; length++) {
        char text[2 * CONFIG_KEY_MAX_BYTES];
        (void)snprintf(text, sizeof text, "k%0*d: 1", length - 1, 0);
        CLEANUP(outcome_cleanup) struct outcome outcome = parse(text, NULL);
        assert_parsed(text, &outcome);
        bool is_known_by_name = strstr(buf_string(&outcome.warnings), "unknown key") != NULL;
        assert_int_equal(is_known_by_name, length < CONFIG_KEY_MAX_BYTES);
    }
}

static void sources_win_in_their_order(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *entry;
        const char *expected; /* of interval_ms */
        enum config_source source;
    } cases[] = {
        {"environment over file", "tracer: {interval: 5}", "T_INTERVAL=6", "6", CONFIG_SOURCE_ENVIRONMENT},
        {"empty environment", "tracer: {interval: 5}", "T_INTERVAL=", "5", CONFIG_SOURCE_FILE},
        {"empty environment, no file", NULL, "T_INTERVAL=", "1000", CONFIG_SOURCE_DEFAULT},
        {"a longer name", NULL, "T_INTERVAL_X=6", "1000", CONFIG_SOURCE_DEFAULT},
        {"a shorter name", NULL, "T_INTERVA=6", "1000", CONFIG_SOURCE_DEFAULT},
        {"no equals sign", NULL, "T_INTERVAL", "1000", CONFIG_SOURCE_DEFAULT},
        {"last key of the table", "tracer: {interval: 5}\nfeatures: {interval: 6}", NULL, "6", CONFIG_SOURCE_FILE},
        {"last key, given first", "features: {interval: 6}\ntracer: {interval: 5}", NULL, "6", CONFIG_SOURCE_FILE},
        {"last key without a value", "features: {interval: }\ntracer: {interval: 5}", NULL, "5", CONFIG_SOURCE_FILE},
        {"doubled key", "tracer: {interval: 5, interval: 7}", NULL, "7", CONFIG_SOURCE_FILE},
        {"the default's own value", "tracer: {interval: 1000}", NULL, "1000", CONFIG_SOURCE_FILE},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        const char *const environment[] = {"OTHER=1", cases[i].entry, NULL};
        CLEANUP(outcome_cleanup) struct outcome outcome = parse(cases[i].text, environment);
        assert_parsed(cases[i].name, &outcome);
        assert_value(cases[i].name, &outcome, "interval_ms", cases[i].expected);
        if (config_source_of(outcome.config, "interval_ms") != cases[i].source)
            fail_msg("%s: source %d", cases[i].name, (int)config_source_of(outcome.config, "interval_ms"));
    }
}

static void texts_follow_the_same_order(void **state)
{
    (void)state;
    static const char *const environment[] = {"T_PREFIX=c", NULL};
    CLEANUP(outcome_cleanup) struct outcome file = parse("profiler: {file: b}\ntracer: {file: a}", NULL);
    CLEANUP(outcome_cleanup) struct outcome both = parse("profiler: {file: b}\ntracer: {file: a}", environment);
    assert_parsed("file", &file);
    assert_parsed("both", &both);
    assert_string_equal(config_text(file.config, "prefix"), "b");
    assert_string_equal(config_text(both.config, "prefix"), "c");
}

static void overruled_mistakes_are_mistakes(void **state)
{
    (void)state;
    static const char *const environment[] = {"T_INTERVAL=6", NULL};
    CLEANUP(outcome_cleanup) struct outcome by_key = parse("features: {interval: 6}\ntracer: {interval: x}", NULL);
    CLEANUP(outcome_cleanup) struct outcome by_environment = parse("tracer: {interval: x}", environment);
    assert_int_equal(by_key.rc, -EINVAL);
    assert_int_equal(by_environment.rc, -EINVAL);
}

static void aliases_stand_for_what_they_name(void **state)
{
    (void)state;
    CLEANUP(outcome_cleanup)
    struct outcome outcome = parse("features: &f\n"
                                   "  interval: &i 50\n"
                                   "tracer:\n"
                                   "  time: &t ns\n"
                                   "offset: *i\n",
                                   NULL);
    assert_parsed("aliases", &outcome);
    assert_int_equal(config_int(outcome.config, "offset"), 50);

    CLEANUP(outcome_cleanup) struct outcome shared = parse("tracer: &t {interval: 7}\nprofiler: *t\n", NULL);
    assert_parsed("shared", &shared);
    assert_string_equal(buf_string(&shared.warnings), "x.yaml:1: profiler.interval: unknown key, ignored\n");

    /* A mistake is told where the alias is used, not where it points. */
    CLEANUP(outcome_cleanup) struct outcome wrong = parse("mpi: &m [1]\n\nenable: *m\n", NULL);
    assert_non_null(strstr(wrong.err.text, "x.yaml:3: enable: must be"));
}

static void endless_and_multiplying_aliases_end(void **state)
{
    (void)state;
    CLEANUP(outcome_cleanup)
    struct outcome endless = parse("tracer: &t {tracer: *t, interval: 5}\na: &a {b: *a}\n", NULL);
    assert_parsed("endless", &endless);
    assert_int_equal(config_int(endless.config, "interval_ms"), 5);

    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, CONFIG_YAML_MAX_BYTES);
    buf_text(&text, "mpi:\n  - &x0 [lol]\n");
    for (int i = 1; i < 30; i++) /* 9^29 if it were multiplied out */
        buf_printf(&text, "  - &x%d [*x%d,*x%d,*x%d,*x%d,*x%d,*x%d,*x%d,*x%d,*x%d]\n", i, i - 1, i - 1, i - 1, i - 1,
                   i - 1, i - 1, i - 1, i - 1, i - 1);
    buf_text(&text, "enable: 1\n");
    CLEANUP(outcome_cleanup) struct outcome multiplying = parse(buf_string(&text), NULL);
    assert_parsed("multiplying", &multiplying);
    assert_true(config_bool(multiplying.config, "enable"));
}

static void deep_nesting_is_an_error_with_its_line(void **state)
{
    (void)state;
    static const size_t depths[] = {10, 99, 100, 1000, CONFIG_YAML_MAX_BYTES / 2 - 100};
    for (size_t i = 0; i < ARRAY_LENGTH(depths); i++) {
        CLEANUP(buf_cleanup) struct buf text;
        buf_init(&text, CONFIG_YAML_MAX_BYTES);
        buf_text(&text, "enable: 1\nmpi: ");
        for (size_t n = 0; n < depths[i]; n++)
            buf_char(&text, '[');
        for (size_t n = 0; n < depths[i]; n++)
            buf_char(&text, ']');
        CLEANUP(outcome_cleanup) struct outcome outcome = parse(buf_string(&text), NULL);
        if (depths[i] < 100) /* the mapping around is one more */
            assert_parsed("deep", &outcome);
        else
            assert_string_equal(outcome.err.text, "x.yaml:2: nested more than 100 levels deep");
    }
}

static int load(const struct scratch *scratch, const char *name, struct error *err)
{
    char path[PATH_MAX];
    char *const environment[] = {NULL};
    CLEANUP(config_cleanup) struct config *config = NULL;
    return config_load(&table, scratch_path(scratch, name, path), environment, NULL, &config, err);
}

static void file_is_read_up_to_a_limit(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    static char text[CONFIG_YAML_MAX_BYTES + 1];
    memset(text, '#', sizeof text);
    memcpy(text, "enable: x\n", 10);
    struct error err = {0};
    scratch_write(&scratch, "full", text, sizeof text - 1);
    assert_int_equal(load(&scratch, "full", &err), -EINVAL);
    assert_non_null(strstr(err.text, "/full:1: enable: 'x'"));
    scratch_write(&scratch, "more", text, sizeof text);
    assert_int_equal(load(&scratch, "more", &err), -E2BIG);
    assert_non_null(strstr(err.text, "/more'"));
    scratch_write(&scratch, "empty", "", 0);
    assert_int_equal(load(&scratch, "empty", &err), 0);
    assert_int_equal(load(&scratch, "missing", &err), -ENOENT);
    assert_non_null(strstr(err.text, "/missing'"));
    assert_int_equal(load(&scratch, ".", &err), -EISDIR);
}

static void load_without_a_file_reads_the_environment(void **state)
{
    (void)state;
    char entry[] = "T_INTERVAL=20";
    char *const environment[] = {entry, NULL};
    CLEANUP(config_cleanup) struct config *config = NULL;
    assert_int_equal(config_load(&table, NULL, environment, NULL, &config, NULL), 0);
    assert_int_equal(config_int(config, "interval_ms"), 20);
}

static void warnings_that_nobody_wants_are_fine(void **state)
{
    (void)state;
    char *const environment[] = {NULL};
    static const char text[] = "x: 1\nenable: 1\nenable: 0\n";
    const struct config_yaml yaml = {.name = "x.yaml", .text = text, .length = sizeof text - 1};
    CLEANUP(config_cleanup) struct config *config = NULL;
    assert_int_equal(config_parse(&table, &yaml, environment, NULL, &config, NULL), 0);
}

static void every_failed_allocation_is_an_error(void **state)
{
    (void)state;
    char entry[] = "T_PREFIX=c";
    char *const environment[] = {entry, NULL};
    static const char text[] = "tracer: {file: a, interval: 5}\nprofiler: {file: b}\na: {b: {c: {note: x}}}\n";
    const struct config_yaml yaml = {.name = "x.yaml", .text = text, .length = sizeof text - 1};
    for (size_t n = 0;; n++) {
        CLEANUP(config_cleanup) struct config *config = NULL;
        struct error err = {0};
        allocation_fail_at(n);
        int rc = config_parse(&table, &yaml, environment, NULL, &config, &err);
        if (!allocation_stop()) {
            assert_int_equal(rc, 0);
            assert_true(n >= 4); /* the config, and its texts */
            break;
        }
        assert_int_equal(rc, -ENOMEM);
        assert_null(config);
        assert_true(strlen(err.text) > 0);
    }
}

static void help_tells_all_there_is_to_know(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf help;
    buf_init(&help, WARNINGS_MAX_BYTES);
    config_help(&table, &help);
    assert_string_equal(buf_string(&help),
                        "  T_INTERVAL\n"
                        "      time between samples\n"
                        "      a whole number from 1 to 3600000; default 1000\n"
                        "      YAML: tracer.interval, features.interval\n"
                        "  T_OFFSET\n"
                        "      any number\n"
                        "      a whole number from -9223372036854775808 to 9223372036854775807; default -5\n"
                        "      YAML: offset\n"
                        "  T_ENABLE\n"
                        "      run at all\n"
                        "      0 or 1 (or false, true, no, yes, off, on); default 0\n"
                        "      YAML: enable\n"
                        "  T_TIME\n"
                        "      unit of time\n"
                        "      one of US, NS, MS, SEC; default MS\n"
                        "      YAML: tracer.time\n"
                        "  T_PREFIX\n"
                        "      where\n"
                        "      a text of at most 4096 bytes without NUL; default 'trace'\n"
                        "      YAML: tracer.file, profiler.file\n"
                        "  note\n"
                        "      file only\n"
                        "      a text of at most 4096 bytes without NUL\n"
                        "      YAML: a.b.c.note\n"
                        "  T_NAMES\n"
                        "      many\n"
                        "      texts separated by commas, of at most 4096 bytes together; default 'x,y'\n"
                        "      YAML: names\n"
                        "  T_SECRET\n"
                        "      environment only\n"
                        "      0 or 1 (or false, true, no, yes, off, on); default 1\n");
}

static void json_has_all_values_in_order(void **state)
{
    (void)state;
    CLEANUP(outcome_cleanup) struct outcome outcome = parse("tracer: {file: 'a\"b'}\nenable: 1\n", NULL);
    assert_parsed("json", &outcome);
    CLEANUP(buf_cleanup) struct buf json;
    buf_init(&json, WARNINGS_MAX_BYTES);
    config_json(outcome.config, &json);
    assert_string_equal(buf_string(&json), "{\"interval_ms\":1000,\"offset\":-5,\"enable\":true,\"time\":\"MS\","
                                           "\"prefix\":\"a\\\"b\",\"note\":\"\",\"names\":\"x,y\",\"secret\":true}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_the_defaults_without_any_source),
        cmocka_unit_test(file_gives_every_kind),
        cmocka_unit_test(values_are_read_as_people_write_them),
        cmocka_unit_test(lists_are_texts_with_commas_or_lists_of_the_file),
        cmocka_unit_test(mistakes_in_the_file_are_named_with_line_and_key),
        cmocka_unit_test(mistakes_in_the_environment_name_variable_and_value),
        cmocka_unit_test(long_values_are_refused_and_not_shown_whole),
        cmocka_unit_test(unknown_and_doubled_keys_are_warnings_with_their_line),
        cmocka_unit_test(overlong_key_is_a_warning),
        cmocka_unit_test(sources_win_in_their_order),
        cmocka_unit_test(texts_follow_the_same_order),
        cmocka_unit_test(overruled_mistakes_are_mistakes),
        cmocka_unit_test(aliases_stand_for_what_they_name),
        cmocka_unit_test(endless_and_multiplying_aliases_end),
        cmocka_unit_test(deep_nesting_is_an_error_with_its_line),
        cmocka_unit_test(file_is_read_up_to_a_limit),
        cmocka_unit_test(load_without_a_file_reads_the_environment),
        cmocka_unit_test(warnings_that_nobody_wants_are_fine),
        cmocka_unit_test(every_failed_allocation_is_an_error),
        cmocka_unit_test(help_tells_all_there_is_to_know),
        cmocka_unit_test(json_has_all_values_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
