/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/ports.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/cleanup.h"

static const char tcp[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:0539 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 0 100 0 0 10 "
    "0\n"
    "   1: 0100007F:0016 0100007F:0539 01 00000000:00000000 00:00000000 00000000  1001        0 12346 1 0 100 0 0 10 "
    "0\n"
    "   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12347 1 0 100 0 0 10 "
    "0\n";

static const char tcp6[] = "  sl  local_address                         remote_address                        st "
                           "tx_queue rx_queue tr tm->when\n"
                           "   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A "
                           "00000000:00000000 00:00000000 "
                           "00000000  2000        0 1 1 0 100 0 0 10 0\n";

static void user_of_a_listening_socket_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint16_t port;
        int rc;
        uid_t uid;
    } cases[] = {
        {tcp, 1337, 0, 1000},
        {tcp, 22, 0, 0},
        {tcp, 80, -ENOENT, 0},
        {tcp6, 8080, 0, 2000},
        {tcp6, 0, -ENOENT, 0},
        {"", 1337, -ENOENT, 0},
        {"\n\n", 1, -ENOENT, 0},
        {"a b c d e f g h\n", 1, -ENOENT, 0},
        {"0: 0:0539 0:0 0A x x x nobody\n", 1337, -ENOENT, 0},
        {"0: 0:0539 0:0 0A x x x 4294967295\n", 1337, -ENOENT, 0},
        {"0: 0:0539 0:0 0A x x x 99999999999999999999\n", 1337, -ENOENT, 0},
        {"0: 0:0539 0:0 0A x x x 7", 1337, 0, 7},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        uid_t uid = 0;
        int rc = ports_find(cursor_of(cases[i].text, strlen(cases[i].text)), cases[i].port, &uid);
        if (rc != cases[i].rc || uid != cases[i].uid)
            fail_msg("case %zu: %d, user %u", i, rc, uid);
    }
}

static void socket_that_is_connected_is_not_one_that_listens(void **state)
{
    (void)state;
    static const char connected[] = "0: 0100007F:0539 0100007F:0016 01 x x x 1000\n";
    uid_t uid = 5;
    assert_int_equal(ports_find(cursor_of(connected, strlen(connected)), 1337, &uid), -ENOENT);
    assert_int_equal(uid, 5);
}

static void own_port_is_ours(void **state)
{
    (void)state;
    CLEANUP(fd_cleanup) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    uid_t uid = (uid_t)-1;
    assert_int_equal(ports_owner(ntohs(address.sin_port), &uid, NULL), 0);
    assert_int_equal(uid, getuid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_of_a_listening_socket_is_found),
        cmocka_unit_test(socket_that_is_connected_is_not_one_that_listens),
        cmocka_unit_test(own_port_is_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
