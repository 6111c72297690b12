/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/identity.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A process that waits to be killed. */
static struct identity child_new(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    struct identity self;
    assert_int_equal(identity_of_self(&self, NULL), 0);
    struct identity child = self;
    child.pid = pid;
    child.start_ticks = 1;
    return child;
}

/* Its birth, which it has about the same as this process, but for the last ticks. */
static void child_find_birth(struct identity *child)
{
    while (!identity_is_alive(child)) {
        child->start_ticks++;
        assert_true(child->start_ticks < UINT64_C(1) << 40);
    }
}

static void self_is_alive_and_others_like_it_are_not(void **state)
{
    (void)state;
    struct identity self;
    assert_int_equal(identity_of_self(&self, NULL), 0);
    assert_int_equal(self.pid, getpid());
    assert_true(identity_is_alive(&self));

    struct identity other = self;
    other.start_ticks++;
    assert_false(identity_is_alive(&other));
    other = self;
    other.boot_id[0] = other.boot_id[0] == '0' ? '1' : '0';
    assert_false(identity_is_alive(&other));
    other = self;
    other.start_ticks = 0;
    assert_false(identity_is_alive(&other));
    assert_false(identity_is_alive(&(struct identity){0}));
}

static void signal_reaches_only_who_is_meant(void **state)
{
    (void)state;
    struct identity self;
    assert_int_equal(identity_of_self(&self, NULL), 0);
    struct identity child = child_new();
    child.start_ticks = self.start_ticks;
    child_find_birth(&child);

    struct identity stranger = child;
    stranger.start_ticks += 1000;
    assert_int_equal(identity_signal(&stranger, SIGKILL, NULL), -ESRCH);
    assert_int_equal(waitpid(child.pid, NULL, WNOHANG), 0);

    assert_int_equal(identity_signal(&child, SIGKILL, NULL), 0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
    assert_false(identity_is_alive(&child)); /* a zombie */
    assert_int_equal(identity_signal(&child, SIGTERM, NULL), -ESRCH);
    assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
    assert_int_equal(identity_signal(&child, SIGTERM, NULL), -ESRCH);
}

static void text_reads_back_as_the_same(void **state)
{
    (void)state;
    struct identity self, read;
    assert_int_equal(identity_of_self(&self, NULL), 0);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, 4096);
    identity_print(&self, &text);
    assert_int_equal(identity_parse(text.data, text.length, &read, NULL), 0);
    assert_int_equal(read.pid, self.pid);
    assert_int_equal(read.start_ticks, self.start_ticks);
    assert_string_equal(read.boot_id, self.boot_id);
}

static void texts_of_all_kinds_are_read_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int rc;
        pid_t pid;
        uint64_t start_ticks;
    } cases[] = {
        {"17", 0, 17, 0},
        {"17\n", 0, 17, 0},
        {" 17 \n", 0, 17, 0},
        {"17\nstart_ticks=5\nboot_id=x\n", 0, 17, 5},
        {"17\nstart_ticks=rubbish\n", 0, 17, 0},
        {"17\nother=1\n\nstart_ticks=9", 0, 17, 9},
        {"", -EINVAL, 0, 0},
        {"\n17\n", -EINVAL, 0, 0},
        {"0\n", -EINVAL, 0, 0},
        {"-1\n", -EINVAL, 0, 0},
        {"12 13\n", -EINVAL, 0, 0},
        {"2147483648\n", -EINVAL, 0, 0},
        {"99999999999999999999999\n", -EINVAL, 0, 0},
        {"seventeen\n", -EINVAL, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct identity read = {0};
        assert_int_equal(identity_parse(cases[i].text, strlen(cases[i].text), &read, NULL), cases[i].rc);
        assert_int_equal(read.pid, cases[i].pid);
        assert_int_equal(read.start_ticks, cases[i].start_ticks);
    }
}

static void stat_of_a_program_with_an_odd_name_is_read(void **state)
{
    (void)state;
    static const char tail[] = ") S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 9\n";
    static const char *const names[] = {"sleep", "a b", ") R 1 1", "((", ""};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        char text[256];
        int length = snprintf(text, sizeof text, "17 (%s%s", names[i], tail);
        uint64_t start_ticks = 0;
        char letter = '?';
        assert_true(identity_parse_stat(text, (size_t)length, &start_ticks, &letter));
        assert_int_equal(start_ticks, 4242);
        assert_int_equal(letter, 'S');
    }
    uint64_t start_ticks;
    char letter;
    assert_false(identity_parse_stat("17 (x) S 1 2", 12, &start_ticks, &letter));
    assert_false(identity_parse_stat("17 x S", 6, &start_ticks, &letter));
    assert_false(identity_parse_stat("", 0, &start_ticks, &letter));
}

static void a_process_of_another_name_does_not_look_like_a_service(void **state)
{
    (void)state;
    struct identity child = child_new();
    assert_false(identity_looks_alive(&child)); /* this test's program has another name */
    assert_false(identity_looks_alive(&(struct identity){.pid = 0}));
    (void)kill(child.pid, SIGKILL);
    assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_is_alive_and_others_like_it_are_not),
        cmocka_unit_test(signal_reaches_only_who_is_meant),
        cmocka_unit_test(text_reads_back_as_the_same),
        cmocka_unit_test(texts_of_all_kinds_are_read_or_refused),
        cmocka_unit_test(stat_of_a_program_with_an_odd_name_is_read),
        cmocka_unit_test(a_process_of_another_name_does_not_look_like_a_service),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
