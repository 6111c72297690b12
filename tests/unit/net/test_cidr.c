/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/cidr.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/socket_address.h"

static void addresses_are_in_a_set_or_not(void **state)
{
    (void)state;
    static const struct {
        const char *set, *address;
        bool is_in;
    } cases[] = {
        {"10.0.0.0/8", "10.255.255.255", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/8", "::ffff:10.1.2.3", true},
        {"192.168.0.0/20", "192.168.15.255", true},
        {"192.168.0.0/20", "192.168.16.0", false},
        {"192.168.1.7", "192.168.1.7", true},
        {"192.168.1.7", "192.168.1.6", false},
        {"0.0.0.0/0", "1.2.3.4", true},
        {"0.0.0.0/0", "fd00::1", false},
        {"::/0", "1.2.3.4", true},
        {"fd00::/8,127.0.0.0/8", "fd12::1", true},
        {"fd00::/8,127.0.0.0/8", "127.0.0.9", true},
        {"fd00::/8,127.0.0.0/8", "fe80::1", false},
        {"::1", "::1", true},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct cidr cidr;
        struct sockaddr_storage address;
        struct error err = {0};
        assert_true(socket_address_parse(cases[i].address, 1, &address));
        if (cidr_parse(cases[i].set, &cidr, &err) < 0)
            fail_msg("'%s': %s", cases[i].set, err.text);
        if (cidr_has(&cidr, &address) != cases[i].is_in)
            fail_msg("'%s' in '%s'", cases[i].address, cases[i].set);
    }
}

static void what_makes_no_sense_is_named(void **state)
{
    (void)state;
    static const char *const bad[] = {"",         "node7",  "10.0.0.0/33", "10.0.0.0/",     "10.0.0.0/8x", "10.0.0.1/8",
                                      "1.2.3.4,", "::/129", "1.2.3.4/-1",  "10.0.0.0/8 ,x", "fd00::1/64",  "/8"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        struct cidr cidr = {.count = 7};
        struct error err = {0};
        if (cidr_parse(bad[i], &cidr, &err) != -EINVAL || cidr.count != 7 || err.text[0] == '\0')
            fail_msg("'%s': '%s'", bad[i], err.text);
    }
}

static void there_is_an_end_to_their_number(void **state)
{
    (void)state;
    char text[2 * (CIDR_RANGES_MAX + 1) * 4];
    char *at = text;
    struct cidr cidr;
    for (size_t i = 0; i <= CIDR_RANGES_MAX; i++) {
        memcpy(at, i == 0 ? "::1" : ",::1", i == 0 ? 3 : 4);
        at += i == 0 ? 3 : 4;
        *at = '\0';
        assert_int_equal(cidr_parse(text, &cidr, NULL), i < CIDR_RANGES_MAX ? 0 : -E2BIG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_in_a_set_or_not),
        cmocka_unit_test(what_makes_no_sense_is_named),
        cmocka_unit_test(there_is_an_end_to_their_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
