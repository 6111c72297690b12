/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/socket_address.h"
#include "support/child.h"

enum { PEER_PORT = 40000, LOCAL_PORT = 1337, PEER_USER = 1000 };

struct message {
    struct nlmsghdr head;
    struct inet_diag_msg body;
};

static struct message message_of(void)
{
    struct message message = {
        .head = {.nlmsg_len = sizeof message, .nlmsg_type = SOCK_DIAG_BY_FAMILY},
        .body = {.idiag_family = AF_INET, .idiag_state = TCP_ESTABLISHED, .idiag_uid = PEER_USER, .idiag_inode = 7},
    };
    message.body.id.idiag_sport = htons(PEER_PORT);
    message.body.id.idiag_dport = htons(LOCAL_PORT);
    message.body.id.idiag_src[0] = message.body.id.idiag_dst[0] = htonl(INADDR_LOOPBACK);
    return message;
}

static int judge(const struct message *message, size_t length, const char *text, uid_t *out_uid)
{
    struct sockaddr_storage local, peer;
    assert_true(socket_address_parse(text, LOCAL_PORT, &local) && socket_address_parse(text, PEER_PORT, &peer));
    return peer_judge(message, length, &local, &peer, out_uid, NULL);
}

static void certain_answer_is_believed(void **state)
{
    (void)state;
    struct message message = message_of();
    uid_t uid = 0;
    assert_int_equal(judge(&message, sizeof message, "127.0.0.1", &uid), 0);
    assert_int_equal(uid, PEER_USER);
    assert_int_equal(judge(&message, sizeof message, "::ffff:127.0.0.1", &uid),
                     0); /* as a socket of both families has it */
}

static void every_uncertain_answer_is_unknown(void **state)
{
    (void)state;
    enum { CASES = 12 };
    struct message messages[CASES];
    int codes[CASES];
    for (size_t i = 0; i < CASES; i++) {
        messages[i] = message_of();
        codes[i] = -ENOENT;
    }
    messages[0].body.idiag_inode = 0; /* the process has closed it: the kernel then says user 0 */
    messages[1].body.idiag_state = TCP_FIN_WAIT2;
    messages[2].body.idiag_state = TCP_TIME_WAIT;
    messages[3].body.idiag_state = TCP_LISTEN; /* for want of a match */
    messages[4].body.id.idiag_sport = htons(PEER_PORT + 1);
    messages[5].body.id.idiag_dport = 0;
    messages[6].body.id.idiag_src[0] = htonl(INADDR_LOOPBACK + 1);
    messages[7].body.id.idiag_dst[0] = htonl(INADDR_ANY);
    messages[8].body.idiag_family = AF_INET6;
    messages[9].body.idiag_uid = 65534;
    messages[10].head.nlmsg_type = NLMSG_DONE;
    codes[10] = -EBADMSG;
    messages[11].head.nlmsg_len = sizeof messages[11] + 1;
    codes[11] = -EBADMSG;
    for (size_t i = 0; i < CASES; i++) {
        uid_t uid = 4711;
        int rc = judge(&messages[i], sizeof messages[i], "127.0.0.1", &uid);
        if (rc != codes[i] || uid != 4711)
            fail_msg("case %zu: %d, user %u", i, rc, (unsigned)uid);
    }
}

static void cut_answers_and_refusals_are_told(void **state)
{
    (void)state;
    struct message message = message_of();
    uid_t uid;
    for (size_t length = 0; length < sizeof message; length++)
        assert_int_equal(judge(&message, length, "127.0.0.1", &uid), -EBADMSG);
    struct {
        struct nlmsghdr head;
        struct nlmsgerr body;
    } refusal = {.head = {.nlmsg_len = sizeof refusal, .nlmsg_type = NLMSG_ERROR}, .body = {.error = -EPERM}};
    memcpy(&message, &refusal, sizeof refusal);
    assert_int_equal(judge(&message, sizeof refusal, "127.0.0.1", &uid), -EPERM);
    assert_int_equal(judge(&message, sizeof refusal - 1, "127.0.0.1", &uid), -EBADMSG);
}

/* A connection within this machine: [0] asks, [1] is asked. */
struct pair {
    int fds[2];
    int listener;
    struct sockaddr_storage local, peer; /* of [1] */
};

static struct pair pair_of(const char *listen_at, const char *connect_to)
{
    struct pair pair;
    struct sockaddr_storage at, to;
    const int off = 0;
    socklen_t length = sizeof at;
    assert_true(socket_address_parse(listen_at, 0, &at));
    pair.listener = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (at.ss_family == AF_INET6)
        (void)setsockopt(pair.listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    assert_int_equal(bind(pair.listener, (struct sockaddr *)&at, socket_address_length(&at)), 0);
    assert_int_equal(listen(pair.listener, 1), 0);
    assert_int_equal(getsockname(pair.listener, (struct sockaddr *)&at, &length), 0);
    assert_true(socket_address_parse(connect_to, socket_address_port(&at), &to));
    pair.fds[0] = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(pair.fds[0], (struct sockaddr *)&to, socket_address_length(&to)), 0);
    pair.fds[1] = accept(pair.listener, NULL, NULL);
    assert_true(pair.fds[1] >= 0);
    length = sizeof pair.local;
    assert_int_equal(getsockname(pair.fds[1], (struct sockaddr *)&pair.local, &length), 0);
    length = sizeof pair.peer;
    assert_int_equal(getpeername(pair.fds[1], (struct sockaddr *)&pair.peer, &length), 0);
    return pair;
}

static void pair_close(struct pair *pair)
{
    close(pair->fds[0]);
    close(pair->fds[1]);
    close(pair->listener);
}

static void kernel_knows_the_user_in_every_combination_of_families(void **state)
{
    (void)state;
    static const char *const ways[][2] = {
        {"127.0.0.1", "127.0.0.1"}, {"0.0.0.0", "127.0.0.1"}, {"::1", "::1"}, {"::", "127.0.0.1"}, {"::", "::1"},
        {"::", "::ffff:127.0.0.1"}};
    for (size_t i = 0; i < ARRAY_LENGTH(ways); i++) {
        struct pair pair = pair_of(ways[i][0], ways[i][1]);
        struct error err = {0};
        uid_t uid = 4711;
        if (peer_uid(&pair.local, &pair.peer, &uid, &err) != 0 || uid != geteuid())
            fail_msg("%s from %s: %s", ways[i][0], ways[i][1], err.text);
        pair_close(&pair);
    }
}

static void closed_peer_is_unknown_and_not_root(void **state)
{
    (void)state;
    struct pair pair = pair_of("127.0.0.1", "127.0.0.1");
    uid_t uid = 4711;
    close(pair.fds[0]);
    assert_int_equal(peer_uid(&pair.local, &pair.peer, &uid, NULL), -ENOENT);
    close(pair.fds[1]);
    assert_int_equal(peer_uid(&pair.local, &pair.peer, &uid, NULL), -ENOENT); /* TIME_WAIT, or nothing */
    close(pair.listener);
    assert_int_equal(uid, 4711);
}

static void listener_is_not_taken_for_a_peer(void **state)
{
    (void)state;
    struct pair pair = pair_of("127.0.0.1", "127.0.0.1");
    struct sockaddr_storage nobody = pair.peer;
    uid_t uid = 4711;
    socket_address_set_port(&nobody, 1);
    assert_int_not_equal(peer_uid(&nobody, &pair.local, &uid, NULL), 0); /* the local port has a listener */
    assert_int_equal(uid, 4711);
    pair_close(&pair);
}

static void addresses_of_other_machines_are_not_asked_about(void **state)
{
    (void)state;
    struct sockaddr_storage here, there;
    uid_t uid;
    assert_true(socket_address_parse("127.0.0.1", 1, &here) && socket_address_parse("10.0.0.1", 1, &there));
    assert_int_equal(peer_uid(&here, &there, &uid, NULL), -EADDRNOTAVAIL);
    assert_int_equal(peer_uid(&there, &here, &uid, NULL), -EADDRNOTAVAIL);
}

static int other_user(void *context)
{
    struct pair *pair = context;
    uid_t uid = 4711;
    CHILD_CHECK(setgid(PEER_USER) == 0 && setuid(PEER_USER) == 0);
    struct pair theirs = pair_of("127.0.0.1", "127.0.0.1");
    CHILD_CHECK(peer_uid(&theirs.local, &theirs.peer, &uid, NULL) == 0 && uid == PEER_USER);
    CHILD_CHECK(peer_uid(&pair->local, &pair->peer, &uid, NULL) == 0 && uid == 0); /* asked by anybody */
    return 0;
}

static void user_of_a_socket_is_who_made_it(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* needs root: becomes another user */
    struct pair pair = pair_of("127.0.0.1", "127.0.0.1");
    child_run(other_user, &pair);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(certain_answer_is_believed),
        cmocka_unit_test(every_uncertain_answer_is_unknown),
        cmocka_unit_test(cut_answers_and_refusals_are_told),
        cmocka_unit_test(kernel_knows_the_user_in_every_combination_of_families),
        cmocka_unit_test(closed_peer_is_unknown_and_not_root),
        cmocka_unit_test(listener_is_not_taken_for_a_peer),
        cmocka_unit_test(addresses_of_other_machines_are_not_asked_about),
        cmocka_unit_test(user_of_a_socket_is_who_made_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
