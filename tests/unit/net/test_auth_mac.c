/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/auth_mac.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Computed by Python's hmac from the text in the header's comment. */
#define KNOWN                                                                                                          \
    "v1 1764572700000 00112233445566778899aabbccddeeff "                                                               \
    "1f19a3eadddb19aaab57ddd6b19bcd2d1755f24e80f462afa110d8b4d623c905"

static const struct auth_mac_request join = {.method = "POST", .target = "/join?to=n7:1337"};

static void format_is_the_documented_one(void **state)
{
    (void)state;
    struct auth_mac mac;
    assert_int_equal(auth_mac_parse(KNOWN, &mac, NULL), 0);
    assert_int_equal(mac.time_wall_ms, 1764572700000);
    assert_int_equal(auth_mac_verify(&mac, "key", 3, &join, NULL), 0);
}

static void what_was_signed_verifies_and_has_a_new_nonce(void **state)
{
    (void)state;
    char value[AUTH_MAC_HEADER_MAX_BYTES], again[AUTH_MAC_HEADER_MAX_BYTES];
    const struct auth_mac_request request = {.method = "PUT", .target = "/x", .body = "a\0b", .body_length = 3};
    struct auth_mac mac;
    assert_int_equal(auth_mac_sign("secret", 6, &request, 5, value, NULL), 0);
    assert_int_equal(auth_mac_sign("secret", 6, &request, 5, again, NULL), 0);
    assert_string_not_equal(value, again);
    assert_int_equal(auth_mac_parse(value, &mac, NULL), 0);
    assert_int_equal(auth_mac_verify(&mac, "secret", 6, &request, NULL), 0);
}

static void any_change_is_noticed(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        struct auth_mac_request request;
    } cases[] = {
        {"kez", {.method = "POST", .target = "/join?to=n7:1337"}},
        {"", {.method = "POST", .target = "/join?to=n7:1337"}},
        {"key", {.method = "GET", .target = "/join?to=n7:1337"}},
        {"key", {.method = "POST", .target = "/join?to=n7:1338"}},
        {"key", {.method = "POST", .target = "/join?to=n7:1337", .body = "", .body_length = 1}},
        {"key", {.method = "POST\n/join?to=n7:1337", .target = ""}},
    };
    struct auth_mac mac;
    assert_int_equal(auth_mac_parse(KNOWN, &mac, NULL), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        assert_int_equal(auth_mac_verify(&mac, cases[i].key, strlen(cases[i].key), &cases[i].request, NULL), -EACCES);
    mac.time_wall_ms++;
    assert_int_equal(auth_mac_verify(&mac, "key", 3, &join, NULL), -EACCES);
    mac.time_wall_ms--;
    mac.nonce[15] ^= 1;
    assert_int_equal(auth_mac_verify(&mac, "key", 3, &join, NULL), -EACCES);
}

static void other_forms_are_refused(void **state)
{
    (void)state;
    char text[sizeof KNOWN + 2];
    struct auth_mac mac = {.time_wall_ms = -7};
    for (size_t length = 0; length < sizeof KNOWN - 1; length++) {
        (void)snprintf(text, sizeof text, "%.*s", (int)length, KNOWN);
        if (auth_mac_parse(text, &mac, NULL) != -EBADMSG)
            fail_msg("'%s'", text);
    }
    static const char *const bad[] = {KNOWN "0", KNOWN " x", "v2" KNOWN, "v1 -1 00112233445566778899aabbccddeeff 00",
                                      "v1 99999999999999999999 00112233445566778899aabbccddeeff 00"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        assert_int_equal(auth_mac_parse(bad[i], &mac, NULL), -EBADMSG);
    assert_int_equal(mac.time_wall_ms, -7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(format_is_the_documented_one),
        cmocka_unit_test(what_was_signed_verifies_and_has_a_new_nonce),
        cmocka_unit_test(any_change_is_noticed),
        cmocka_unit_test(other_forms_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
