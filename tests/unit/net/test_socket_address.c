/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/socket_address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "util/cleanup.h"

static struct sockaddr_storage address_of(const char *text, uint16_t port)
{
    struct sockaddr_storage address;
    if (!socket_address_parse(text, port, &address))
        fail_msg("'%s'", text);
    return address;
}

static void numbers_are_addresses_and_names_are_not(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *shown; /* NULL: none */
    } cases[] = {
        {"127.0.0.1", "127.0.0.1"},
        {"::1", "::1"},
        {"[::1]", "::1"},
        {"[127.0.0.1]", "127.0.0.1"},
        {"fe80::1%1", "fe80::1"},
        {"localhost", NULL},
        {"", NULL},
        {"[]", NULL},
        {"1", NULL},
        {"127.1", NULL},
        {"0x7f.0.0.1", NULL},
        {"127.0.0.1 ", NULL},
        {"[::1", NULL},
        {"::1%nonsuch0", NULL},
        {"::1%0", NULL},
        {"1.2.3.4:5", NULL},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct sockaddr_storage address;
        char shown[SOCKET_ADDRESS_TEXT_MAX_BYTES] = "";
        bool is_address = socket_address_parse(cases[i].text, 80, &address);
        if (is_address)
            socket_address_text(&address, shown);
        if (is_address != (cases[i].shown != NULL) || (is_address && strcmp(shown, cases[i].shown) != 0))
            fail_msg("'%s': '%s'", cases[i].text, shown);
        if (is_address)
            assert_int_equal(socket_address_port(&address), 80);
    }
}

static void loopback_is_told_in_both_families(void **state)
{
    (void)state;
    static const char *const loopback[] = {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"};
    static const char *const others[] = {"0.0.0.0", "128.0.0.1", "::", "::2", "::ffff:10.0.0.1", "::127.0.0.1"};
    for (size_t i = 0; i < ARRAY_LENGTH(loopback); i++) {
        struct sockaddr_storage address = address_of(loopback[i], 1);
        assert_true(socket_address_is_loopback(&address));
    }
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
        struct sockaddr_storage address = address_of(others[i], 1);
        assert_false(socket_address_is_loopback(&address));
    }
}

static void other_families_are_nothing(void **state)
{
    (void)state;
    struct sockaddr_storage address = {.ss_family = AF_UNIX};
    char text[SOCKET_ADDRESS_TEXT_MAX_BYTES] = "x";
    socket_address_text(&address, text);
    assert_string_equal(text, "");
    assert_false(socket_address_is_loopback(&address));
    assert_false(socket_address_equals(&address, &address));
    assert_int_equal(socket_address_port(&address), 0);
}

static void equal_means_address_and_port_whatever_the_family(void **state)
{
    (void)state;
    struct sockaddr_storage v4 = address_of("10.0.0.1", 5), mapped = address_of("::ffff:10.0.0.1", 5);
    struct sockaddr_storage port = address_of("10.0.0.1", 6), other = address_of("10.0.0.2", 5);
    assert_true(socket_address_equals(&v4, &mapped));
    assert_false(socket_address_equals(&v4, &port));
    assert_false(socket_address_equals(&v4, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_addresses_and_names_are_not),
        cmocka_unit_test(loopback_is_told_in_both_families),
        cmocka_unit_test(other_families_are_nothing),
        cmocka_unit_test(equal_means_address_and_port_whatever_the_family),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
