/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/hosts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct pfw_line parsed(const char *text)
{
    struct pfw_line line;
    struct error err = {0};
    if (pfw_line_parse(text, strlen(text), &line, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return line;
}

static uint32_t host_of(struct pfw_hosts *hosts, const char *event)
{
    struct pfw_line line = parsed(event);
    uint32_t host;
    assert_int_equal(pfw_hosts_of(hosts, &line, &host, NULL), 0);
    return host;
}

static void hosts_are_told_apart_by_hash_and_named_by_hh(void **state)
{
    (void)state;
    struct pfw_hosts hosts;
    pfw_hosts_init(&hosts);
    assert_int_equal(host_of(&hosts, "{\"name\":\"start\",\"ph\":1,\"args\":{\"hhash\":\"aa\"}}"), 0);
    assert_null(pfw_hosts_name(&hosts, 0));
    assert_string_equal(pfw_hosts_label(&hosts, 0), "aa");
    assert_int_equal(
        host_of(&hosts,
                "{\"name\":\"HH\",\"ph\":4,\"args\":{\"hhash\":\"aa\",\"name\":\"n\\u00e41\",\"value\":\"aa\"}}"),
        0);
    assert_string_equal(pfw_hosts_name(&hosts, 0), "n\xc3\xa4"
                                                   "1");
    assert_int_equal(host_of(&hosts, "{\"name\":\"cpu\",\"ph\":2,\"args\":{\"hhash\":\"bb\"}}"), 1);
    assert_int_equal(host_of(&hosts, "{\"name\":\"cpu\",\"ph\":2,\"args\":{}}"), 2);
    assert_string_equal(pfw_hosts_hash(&hosts, 2), "");
    assert_string_equal(pfw_hosts_label(&hosts, 2), "unknown");
    assert_int_equal(hosts.hashes.count, 3);
    pfw_hosts_fini(&hosts);
}

static void one_host_may_name_another(void **state)
{
    (void)state;
    struct pfw_hosts hosts;
    pfw_hosts_init(&hosts);
    assert_int_equal(
        host_of(&hosts, "{\"name\":\"HH\",\"ph\":\"M\",\"args\":{\"hhash\":\"aa\",\"name\":\"b\",\"value\":\"bb\"}}"),
        0);
    assert_null(pfw_hosts_name(&hosts, 0));
    assert_string_equal(pfw_hosts_name(&hosts, 1), "b");
    pfw_hosts_fini(&hosts);
}

static void what_only_looks_like_hh_names_nobody(void **state)
{
    (void)state;
    static const char *const events[] = {
        "{\"name\":\"HH\",\"ph\":2,\"args\":{\"hhash\":\"aa\",\"name\":\"x\",\"value\":\"aa\"}}",
        "{\"name\":\"HH\",\"ph\":4,\"args\":{\"hhash\":\"aa\",\"name\":7,\"value\":\"aa\"}}",
        "{\"name\":\"FH\",\"ph\":4,\"args\":{\"hhash\":\"aa\",\"name\":\"x\",\"value\":\"aa\"}}",
    };
    struct pfw_hosts hosts;
    pfw_hosts_init(&hosts);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(host_of(&hosts, events[i]), 0);
    assert_null(pfw_hosts_name(&hosts, 0));
    pfw_hosts_fini(&hosts);
}

static void many_hosts_keep_their_names(void **state)
{
    (void)state;
    struct pfw_hosts hosts;
    pfw_hosts_init(&hosts);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 1000; i++) {
            char event[128];
            (void)snprintf(event, sizeof event,
                           "{\"name\":\"HH\",\"ph\":4,\"args\":{\"hhash\":\"%u\",\"name\":\"n%u\"}}", i, i);
            assert_int_equal(host_of(&hosts, event), i);
            assert_string_equal(pfw_hosts_name(&hosts, i) + 1, pfw_hosts_hash(&hosts, i));
        }
    }
    pfw_hosts_fini(&hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_told_apart_by_hash_and_named_by_hh),
        cmocka_unit_test(one_host_may_name_another),
        cmocka_unit_test(what_only_looks_like_hh_names_nobody),
        cmocka_unit_test(many_hosts_keep_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
