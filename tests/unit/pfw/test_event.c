/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pfw/line.h"
#include "support/random.h"

enum { EVENT_MAX_BYTES = 65536, RANDOM_EVENTS = 20000, RANDOM_NAME_MAX_BYTES = 40 };

static const struct pfw_source source = {.host_hash = "a1b2c3d4e5f60718", .pid = 17, .tid = 19};

static void assert_text(struct buf *out, const char *expected)
{
    assert_string_equal(buf_string(out), expected);
}

static void host_hash_is_the_one_that_dftracer_writes(void **state)
{
    (void)state;
    /* "vm" is from a trace that DFTracer 2.2.0 wrote; of the others every second byte of md5sum */
    static const struct {
        const char *name, *hash;
    } cases[] = {{"vm", "6882804a826580cd"}, {"node17", "701baacdcb2616aa"}, {"", "d48c8fb2e909ec42"}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char hash[PFW_HOST_HASH_BYTES + 1];
        pfw_host_hash(cases[i].name, hash);
        assert_string_equal(hash, cases[i].hash);
    }
}

static void counter_has_the_fields_that_readers_know(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, EVENT_MAX_BYTES);
    pfw_event_begin(&out, &source, PFW_COUNTER, "cpu-0", 5, "sys", PFW_TYPE_PSUTIL, 1796098782398492);
    pfw_event_fixed(&out, "user_pct", 12.5, 4);
    pfw_event_u64(&out, "bytes_read", UINT64_MAX);
    pfw_event_i64(&out, "offset", INT64_MIN);
    pfw_event_text(&out, "label", "vg \"0\"");
    pfw_event_json(&out, "cfg", "{\"a\":[1,2]}", strlen("{\"a\":[1,2]}"));
    pfw_event_end(&out);
    assert_text(&out,
                "{\"name\":\"cpu-0\",\"cat\":\"sys\",\"type\":7,\"ts\":1796098782398492,\"ph\":2,\"pid\":17,\"tid\":0,"
                "\"args\":{\"hhash\":\"a1b2c3d4e5f60718\",\"user_pct\":12.5,\"bytes_read\":18446744073709551615,"
                "\"offset\":-9223372036854775808,\"label\":\"vg \\\"0\\\"\",\"cfg\":{\"a\":[1,2]}}}\n");
}

static void first_and_last_event_have_an_id_and_a_duration(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, EVENT_MAX_BYTES);
    pfw_event_begin_complete(&out, &source, 7, "end", 123);
    pfw_event_u64(&out, "num_events", 7);
    pfw_event_end(&out);
    assert_text(&out,
                "{\"id\":7,\"name\":\"end\",\"cat\":\"dftracer\",\"type\":1,\"pid\":17,\"tid\":19,\"ts\":123,\"dur\":0,"
                "\"ph\":1,\"args\":{\"hhash\":\"a1b2c3d4e5f60718\",\"num_events\":7}}\n");
}

static void host_event_names_what_the_hash_stands_for(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, EVENT_MAX_BYTES);
    pfw_event_host(&out, &source, "node17");
    assert_text(&out,
                "{\"name\":\"HH\",\"cat\":\"dftracer\",\"type\":1,\"pid\":17,\"tid\":19,\"ph\":4,\"args\":{\"hhash\":"
                "\"a1b2c3d4e5f60718\",\"name\":\"node17\",\"value\":\"a1b2c3d4e5f60718\"}}\n");
}

static void metadata_event_has_an_instant(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, EVENT_MAX_BYTES);
    pfw_event_begin_metadata(&out, &source, "dropped", 123);
    pfw_event_u64(&out, "events", 5);
    pfw_event_end(&out);
    assert_text(&out, "{\"name\":\"dropped\",\"cat\":\"dftracer\",\"type\":1,\"ts\":123,\"ph\":4,\"pid\":17,\"tid\":19,"
                      "\"args\":{\"hhash\":\"a1b2c3d4e5f60718\",\"events\":5}}\n");
}

/* Bytes that are likely to break something, among any others but NUL. */
static size_t random_name(struct random *random, char name[RANDOM_NAME_MAX_BYTES + 1])
{
    static const char nasty[] =
        "\"\\\n\r\t\x01\x1f\x7f\x80\xbf\xc0\xc3\xe2\x82\xac\xed\xa0\xf0\x9f\xf4\x90\xfe\xff/{}[]:, ";
    size_t length = random_below(random, RANDOM_NAME_MAX_BYTES + 1);
    for (size_t i = 0; i < length; i++)
        name[i] = random_below(random, 2) != 0 ? nasty[random_below(random, sizeof nasty - 1)]
                                               : (char)(1 + random_below(random, 255));
    name[length] = '\0';
    return length;
}

static bool is_ascii(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] >= 0x80)
            return false;
    }
    return true;
}

static void any_bytes_in_names_and_keys_give_one_line_of_strict_json(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, EVENT_MAX_BYTES);
    for (int i = 0; i < RANDOM_EVENTS; i++) {
        char name[RANDOM_NAME_MAX_BYTES + 1], key[RANDOM_NAME_MAX_BYTES + 1], text[RANDOM_NAME_MAX_BYTES + 1];
        size_t name_length = random_name(&random, name);
        (void)random_name(&random, key);
        (void)random_name(&random, text);
        buf_reset(&out);
        pfw_event_begin(&out, &source, PFW_COUNTER, name, name_length, "io", PFW_TYPE_PSUTIL, (int64_t)i);
        pfw_event_text(&out, key, text);
        pfw_event_end(&out);
        assert_int_equal(buf_status(&out, NULL), 0);
        assert_ptr_equal(memchr(out.data, '\n', out.length), out.data + out.length - 1);

        struct pfw_line line;
        struct error err = {0};
        if (pfw_line_parse(out.data, out.length - 1, &line, &err) < 0)
            fail_msg("event %d: %s: %.*s", i, err.text, (int)out.length, out.data);
        if (is_ascii(name, name_length))
            assert_true(pfw_json_equals(&line.name, name));
    }
}

static void name_may_hold_a_nul(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, EVENT_MAX_BYTES);
    pfw_event_begin(&out, &source, PFW_COUNTER, "a\0b", 3, "io", PFW_TYPE_PSUTIL, 1);
    assert_non_null(strstr(buf_string(&out), "\"a\\u0000b\""));
}

static void key_that_needs_escapes_gets_them(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, EVENT_MAX_BYTES);
    pfw_event_u64(&out, "a\"\\\x01\xff", 1);
    assert_text(&out, ",\"a\\\"\\\\\\u0001\xef\xbf\xbd\":1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_hash_is_the_one_that_dftracer_writes),
        cmocka_unit_test(counter_has_the_fields_that_readers_know),
        cmocka_unit_test(first_and_last_event_have_an_id_and_a_duration),
        cmocka_unit_test(host_event_names_what_the_hash_stands_for),
        cmocka_unit_test(metadata_event_has_an_instant),
        cmocka_unit_test(any_bytes_in_names_and_keys_give_one_line_of_strict_json),
        cmocka_unit_test(name_may_hold_a_nul),
        cmocka_unit_test(key_that_needs_escapes_gets_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
