/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/auth.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TOKEN "0123456789abcdef"

enum { OWNER = 1000, OTHER = 1001, NOW_MS = 1000000 };

#define UNIX_PEER(user) .is_unix = true, .unix_uid = (user)
#define TCP_PEER(user)  .has_peer_uid = true, .peer_uid = (user)

static struct auth *auth_of(uid_t own_uid)
{
    const struct auth_token token = {.text = TOKEN, .length = sizeof TOKEN - 1};
    struct auth *auth = NULL;
    assert_int_equal(auth_new(&token, own_uid, &auth, NULL), 0);
    assert_int_equal(auth_add_host(auth, "Node7.Cluster", NULL), 0);
    return auth;
}

struct decision {
    const char *name;
    struct auth_facts facts;
    const char *reason; /* NULL: allowed */
};

static const struct decision decisions[] = {
    {"owner over the UNIX socket", {UNIX_PEER(OWNER), .host = "localhost"}, NULL},
    {"owner over the UNIX socket without Host", {UNIX_PEER(OWNER)}, NULL},
    {"root over the UNIX socket", {UNIX_PEER(0), .host = "localhost"}, NULL},
    {"another user over the UNIX socket", {UNIX_PEER(OTHER), .host = "localhost"}, "user 1001"},
    {"unknown user over the UNIX socket", {UNIX_PEER((uid_t)-1), .host = "localhost"}, "user"},
    {"page of others over the UNIX socket", {UNIX_PEER(OWNER), .host = "localhost", .origin = "http://evil"}, "Origin"},
    {"owner from the loopback", {TCP_PEER(OWNER), .host = "localhost:1337"}, NULL},
    {"owner at 127.0.0.1", {TCP_PEER(OWNER), .host = "127.0.0.1:1337"}, NULL},
    {"owner at ::1", {TCP_PEER(OWNER), .host = "[::1]:1337"}, NULL},
    {"root from the loopback", {TCP_PEER(0), .host = "localhost"}, "not of user 0"},
    {"another user from the loopback", {TCP_PEER(OTHER), .host = "localhost"}, "token"},
    {"unknown peer", {.host = "localhost"}, "token"},
    {"owner under the host's name", {TCP_PEER(OWNER), .host = "node7.cluster:1337"}, "localhost"},
    {"owner under the host's number", {TCP_PEER(OWNER), .host = "10.0.0.7"}, "localhost"},
    {"owner without Host", {TCP_PEER(OWNER)}, "localhost"},
    {"rebound name", {TCP_PEER(OWNER), .host = "evil.example"}, "Host"},
    {"rebound name with the token", {.host = "evil.example", .authorization = "Bearer " TOKEN}, "Host"},
    {"Host that is none", {TCP_PEER(OWNER), .host = "a@b"}, "Host"},
    {"own page", {TCP_PEER(OWNER), .host = "localhost:80", .origin = "http://LOCALHOST"}, NULL},
    {"own page, all that browsers say",
     {TCP_PEER(OWNER), .host = "localhost:1337", .origin = "http://localhost:1337",
      .referer = "http://localhost:1337/a?b#c", .sec_fetch_site = "same-origin"},
     NULL},
    {"typed into the browser", {TCP_PEER(OWNER), .host = "localhost", .sec_fetch_site = "none"}, NULL},
    {"page of another port", {TCP_PEER(OWNER), .host = "localhost:1337", .origin = "http://localhost:1338"}, "Origin"},
    {"page of a longer name", {TCP_PEER(OWNER), .host = "localhost", .origin = "http://localhost.evil"}, "Origin"},
    {"page with our name as user", {TCP_PEER(OWNER), .host = "localhost", .origin = "http://localhost@evil"}, "Origin"},
    {"sandboxed page", {TCP_PEER(OWNER), .host = "localhost", .origin = "null"}, "Origin"},
    {"link of others", {TCP_PEER(OWNER), .host = "localhost", .referer = "https://evil/"}, "Referer"},
    {"fetch of others", {TCP_PEER(OWNER), .host = "localhost", .sec_fetch_site = "cross-site"}, "Sec-Fetch-Site"},
    {"page without Host", {UNIX_PEER(OWNER), .origin = "http://localhost"}, "Origin"},
    {"token", {.host = "node7.cluster:1337", .authorization = "Bearer " TOKEN}, NULL},
    {"token, scheme in lower case", {.host = "10.0.0.7", .authorization = "bearer  " TOKEN}, NULL},
    {"token of a page of others",
     {.host = "node7.cluster", .origin = "http://evil", .authorization = "Bearer " TOKEN},
     "Origin"},
    {"wrong token", {.host = "localhost", .authorization = "Bearer 0123456789abcdeF"}, "wrong"},
    {"half a token", {.host = "localhost", .authorization = "Bearer 0123456789abcde"}, "wrong"},
    {"more than the token", {.host = "localhost", .authorization = "Bearer " TOKEN "0"}, "wrong"},
    {"wrong token of the owner", {TCP_PEER(OWNER), .host = "localhost", .authorization = "Bearer x"}, "wrong"},
    {"password", {.host = "localhost", .authorization = "Basic eDp5"}, "Bearer"},
    {"malformed MAC", {TCP_PEER(OWNER), .host = "localhost", .mac = "v1"}, "v1 <time>"},
};

static void decisions_are_those_of_the_table(void **state)
{
    (void)state;
    CLEANUP(auth_cleanup) struct auth *auth = auth_of(OWNER);
    for (size_t i = 0; i < ARRAY_LENGTH(decisions); i++) {
        struct error err = {0};
        int rc = auth_may_change(auth, &decisions[i].facts, NOW_MS, &err);
        bool is_right = decisions[i].reason == NULL ? rc == 0 : rc < 0 && strstr(err.text, decisions[i].reason) != NULL;
        if (!is_right)
            fail_msg("%s: %d, %s", decisions[i].name, rc, err.text);
    }
}

static void root_serves_root_over_the_loopback(void **state)
{
    (void)state;
    CLEANUP(auth_cleanup) struct auth *auth = auth_of(0);
    const struct auth_facts facts = {TCP_PEER(0), .host = "localhost"};
    assert_int_equal(auth_may_change(auth, &facts, NOW_MS, NULL), 0);
}

static void signed_request_is_good_once(void **state)
{
    (void)state;
    CLEANUP(auth_cleanup) struct auth *auth = auth_of(OWNER);
    char value[AUTH_MAC_HEADER_MAX_BYTES];
    struct auth_facts facts = {.host = "node7.cluster", .signed_request = {.method = "GET", .target = "/join?to=x"}};
    assert_int_equal(auth_mac_sign(TOKEN, sizeof TOKEN - 1, &facts.signed_request, NOW_MS, value, NULL), 0);
    facts.mac = value;
    facts.signed_request.target = "/join?to=y";
    assert_int_equal(auth_may_change(auth, &facts, NOW_MS, NULL), -EACCES);
    facts.signed_request.target = "/join?to=x"; /* the forgery has not used the nonce up */
    assert_int_equal(auth_may_change(auth, &facts, NOW_MS, NULL), 0);
    assert_int_equal(auth_may_change(auth, &facts, NOW_MS, NULL), -EACCES);
}

static void proxy_without_token_accepts_none(void **state)
{
    (void)state;
    CLEANUP(auth_cleanup) struct auth *auth = NULL;
    char value[AUTH_MAC_HEADER_MAX_BYTES];
    assert_int_equal(auth_new(NULL, OWNER, &auth, NULL), 0);
    struct auth_facts facts = {.host = "localhost", .authorization = "Bearer "};
    assert_int_equal(auth_may_change(auth, &facts, NOW_MS, NULL), -EACCES);
    facts = (struct auth_facts){.host = "localhost", .mac = value, .signed_request = {.method = "GET", .target = "/"}};
    assert_int_equal(auth_mac_sign("", 0, &facts.signed_request, NOW_MS, value, NULL), 0);
    assert_int_equal(auth_may_change(auth, &facts, NOW_MS, NULL), -EACCES);
}

static void names_of_the_host_are_checked_and_bounded(void **state)
{
    (void)state;
    CLEANUP(auth_cleanup) struct auth *auth = auth_of(OWNER);
    assert_int_equal(auth_add_host(auth, "a b", NULL), -EINVAL);
    assert_int_equal(auth_add_host(auth, "a:1", NULL), -EINVAL);
    for (int i = 1; i < AUTH_HOSTS_MAX; i++)
        assert_int_equal(auth_add_host(auth, "other", NULL), 0);
    assert_int_equal(auth_add_host(auth, "more", NULL), -ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decisions_are_those_of_the_table),
        cmocka_unit_test(root_serves_root_over_the_loopback),
        cmocka_unit_test(signed_request_is_good_once),
        cmocka_unit_test(proxy_without_token_accepts_none),
        cmocka_unit_test(names_of_the_host_are_checked_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
