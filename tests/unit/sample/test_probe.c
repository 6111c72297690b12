/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/allocation.h"
#include "util/clock.h"

/* A test waits for an event at most this long; nothing here takes a thousandth of it. */
enum { DEADLINE_MS = 20000 };

static const int64_t stuck_after_ns = CLOCK_NS_PER_SECOND;

/* What the test and its questions share. Never freed: a thread may return to it at any time, so the chain keeps it. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_shut; /* a question that comes here waits until it is opened */
    int asked;    /* questions that came */
    int answered; /* questions that went on */
    int freed;    /* subjects freed */
    struct gate *next;
};
static struct gate *all_gates;

static struct gate *gate_new(bool is_shut)
{
    struct gate *gate = calloc(1, sizeof *gate);
    assert_non_null(gate);
    (void)pthread_mutex_init(&gate->lock, NULL);
    (void)pthread_cond_init(&gate->changed, NULL);
    gate->is_shut = is_shut;
    gate->next = all_gates;
    all_gates = gate;
    return gate;
}

static void gate_set(struct gate *gate, bool is_shut)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->is_shut = is_shut;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->lock);
}

static void gate_wait_for(struct gate *gate, const int *number, int least)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += DEADLINE_MS / 1000;
    (void)pthread_mutex_lock(&gate->lock);
    int rc = 0;
    while (*number < least && rc == 0)
        rc = pthread_cond_timedwait(&gate->changed, &gate->lock, &until);
    (void)pthread_mutex_unlock(&gate->lock);
    assert_int_equal(rc, 0);
}

static int gate_ask(const void *subject, void *answer)
{
    struct gate *gate = *(struct gate *const *)subject;
    (void)pthread_mutex_lock(&gate->lock);
    gate->asked++;
    (void)pthread_cond_broadcast(&gate->changed);
    while (gate->is_shut)
        (void)pthread_cond_wait(&gate->changed, &gate->lock);
    gate->answered++;
    *(int *)answer = gate->answered;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->lock);
    return 0;
}

static void gate_free_subject(void *subject)
{
    struct gate *gate = *(struct gate **)subject;
    (void)pthread_mutex_lock(&gate->lock);
    gate->freed++;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->lock);
    free(subject);
}

static const struct probe_kind gate_kind = {.ask = gate_ask, .free_subject = gate_free_subject};

static struct probe_key *add_gate(struct probe *probe, struct gate *gate)
{
    struct gate **subject = malloc(sizeof(struct gate *));
    struct probe_key *key = NULL;
    assert_non_null(subject);
    *subject = gate;
    assert_int_equal(probe_add(probe, subject, sizeof(int), &key, NULL), 0);
    return key;
}

static struct probe *new_probe(void)
{
    struct probe *probe = NULL;
    assert_int_equal(probe_new(&gate_kind, stuck_after_ns, &probe, NULL), 0);
    return probe;
}

static void tick(struct probe *probe)
{
    struct error err = {0};
    if (probe_tick(probe, clock_boot_ns(), &err) < 0)
        fail_msg("%s", err.text);
}

/* A tick at a time at which whatever is running has been so for too long. */
static void tick_late(struct probe *probe)
{
    assert_int_equal(probe_tick(probe, clock_boot_ns() + 2 * stuck_after_ns, NULL), 0);
}

/* Waits until `probe` has as many threads. A thread's last act can't be waited for otherwise. */
static void wait_for_threads(struct probe *probe, size_t all, size_t stuck)
{
    int64_t until_ns = clock_mono_ns() + DEADLINE_MS * CLOCK_NS_PER_MS;
    struct probe_threads now;
    do {
        now = probe_threads(probe);
        if (now.all == all && now.stuck == stuck)
            return;
        (void)poll(NULL, 0, 1);
    } while (clock_mono_ns() < until_ns);
    fail_msg("%zu threads, %zu of them stuck; expected %zu and %zu", now.all, now.stuck, all, stuck);
}

static int latest_number(const struct probe_key *key)
{
    int number = 0;
    struct probe_result result = probe_latest(key, &number);
    return result.state == PROBE_ANSWERED && result.status == 0 ? number : 0;
}

/* The question counts itself before its answer has arrived at the key; only then is the key asked again. */
static void wait_for_answer(const struct probe_key *key, int least)
{
    int64_t until_ns = clock_mono_ns() + DEADLINE_MS * CLOCK_NS_PER_MS;
    while (latest_number(key) < least) {
        assert_true(clock_mono_ns() < until_ns);
        (void)poll(NULL, 0, 1);
    }
}

static void one_thread_asks_every_key_once_a_tick(void **state)
{
    (void)state;
    CLEANUP(probe_cleanup) struct probe *probe = new_probe();
    struct gate *gate = gate_new(false);
    struct probe_key *keys[5];
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++)
        keys[i] = add_gate(probe, gate);
    assert_int_equal(probe_threads(probe).all, 0);
    assert_int_equal(probe_latest(keys[0], NULL).state, PROBE_NEW);

    for (int ticks = 1; ticks <= 3; ticks++) {
        tick(probe);
        gate_wait_for(gate, &gate->answered, 5 * ticks);
        wait_for_threads(probe, 1, 0);
        for (size_t i = 0; i < ARRAY_LENGTH(keys); i++)
            wait_for_answer(keys[i], 5 * (ticks - 1) + 1);
    }
    assert_int_equal(gate->asked, 15);
}

static void stuck_key_keeps_its_thread_and_another_serves_the_rest(void **state)
{
    (void)state;
    CLEANUP(probe_cleanup) struct probe *probe = new_probe();
    struct gate *dead = gate_new(true);
    struct gate *good = gate_new(false);
    struct probe_key *dead_key = add_gate(probe, dead);
    tick(probe);
    gate_wait_for(dead, &dead->asked, 1);
    struct probe_key *good_key = add_gate(probe, good);

    tick(probe); /* within its time: nothing is stuck, the good key waits for its turn */
    assert_int_equal(probe_threads(probe).all, 1);
    assert_int_equal(probe_latest(dead_key, NULL).state, PROBE_NEW);
    assert_int_equal(good->asked, 0);

    for (int ticks = 1; ticks <= 20; ticks++) {
        tick_late(probe);
        wait_for_answer(good_key, ticks);
        wait_for_threads(probe, 2, 1);
        assert_int_equal(probe_latest(dead_key, NULL).state, PROBE_STUCK);
    }
    assert_int_equal(dead->asked, 1);
    bool is_stuck = false;
    assert_true(probe_has_turned(dead_key, &is_stuck));
    assert_true(is_stuck);
    assert_false(probe_has_turned(dead_key, &is_stuck));

    gate_set(dead, false);
    wait_for_threads(probe, 1, 0);
    assert_true(probe_has_turned(dead_key, &is_stuck));
    assert_false(is_stuck);
    assert_int_equal(latest_number(dead_key), 1);
    tick(probe);
    gate_wait_for(dead, &dead->answered, 2);
    gate_wait_for(good, &good->answered, 21);
    wait_for_threads(probe, 1, 0);
}

static void many_keys_that_die_at_once_are_found_in_few_ticks(void **state)
{
    (void)state;
    CLEANUP(probe_cleanup) struct probe *probe = new_probe();
    struct gate *good = gate_new(false);
    (void)add_gate(probe, good); /* keys are asked newest first at the first tick: this one is last */
    struct gate *dead = gate_new(true);
    for (int i = 0; i < 30; i++)
        (void)add_gate(probe, dead);

    int ticks = 0;
    for (int asked = 1; asked <= 30; asked *= 2, ticks++) {
        tick_late(probe);
        gate_wait_for(dead, &dead->asked, asked);
    }
    tick_late(probe);
    gate_wait_for(good, &good->answered, 1);
    gate_wait_for(dead, &dead->asked, 30);
    assert_true(ticks <= 6);
    tick_late(probe);
    wait_for_threads(probe, 31, 30);

    gate_set(dead, false);
    wait_for_threads(probe, 1, 0);
}

static void threads_have_a_limit_and_what_waits_is_told(void **state)
{
    (void)state;
    CLEANUP(probe_cleanup) struct probe *probe = new_probe();
    struct gate *dead = gate_new(true);
    for (int i = 0; i < PROBE_THREADS_MAX + 10; i++)
        (void)add_gate(probe, dead);
    for (int asked = 1; asked <= PROBE_THREADS_MAX; asked *= 2) {
        tick_late(probe);
        gate_wait_for(dead, &dead->asked, asked);
    }
    struct error err = {0};
    assert_int_equal(probe_tick(probe, clock_boot_ns() + 2 * stuck_after_ns, &err), -EAGAIN);
    assert_non_null(strstr(err.text, "starting a probing thread beside 256 others"));
    assert_int_equal(probe_threads(probe).stuck, PROBE_THREADS_MAX);

    gate_set(dead, false);
    gate_wait_for(dead, &dead->answered, PROBE_THREADS_MAX + 10);
    wait_for_threads(probe, 1, 0);
}

static void freed_probe_leaves_stuck_threads_valid_memory(void **state)
{
    (void)state;
    struct probe *probe = new_probe();
    struct gate *dead = gate_new(true);
    struct gate *good = gate_new(false);
    (void)add_gate(probe, dead);
    (void)add_gate(probe, good);
    tick(probe);
    gate_wait_for(dead, &dead->asked, 1);

    probe_free(probe); /* must not wait: the gate is shut */
    gate_wait_for(good, &good->freed, 1);
    assert_int_equal(dead->freed, 0);
    gate_set(dead, false);
    gate_wait_for(dead, &dead->freed, 1);
}

static void removed_key_that_is_stuck_still_gives_way_to_the_others(void **state)
{
    (void)state;
    CLEANUP(probe_cleanup) struct probe *probe = new_probe();
    struct gate *dead = gate_new(true);
    struct gate *good = gate_new(false);
    struct probe_key *dead_key = add_gate(probe, dead);
    tick(probe);
    gate_wait_for(dead, &dead->asked, 1);
    probe_remove(dead_key);
    (void)add_gate(probe, good);
    tick_late(probe);
    gate_wait_for(good, &good->answered, 1);
    wait_for_threads(probe, 2, 1);

    gate_set(dead, false);
    gate_wait_for(dead, &dead->freed, 1);
    wait_for_threads(probe, 1, 0);
}

static void removed_key_that_waits_is_not_asked(void **state)
{
    (void)state;
    CLEANUP(probe_cleanup) struct probe *probe = new_probe();
    struct gate *first = gate_new(true);
    struct gate *second = gate_new(false);
    struct gate *third = gate_new(false);
    (void)add_gate(probe, first);
    tick(probe);
    gate_wait_for(first, &first->asked, 1);
    (void)add_gate(probe, third);
    struct probe_key *second_key = add_gate(probe, second);
    (void)add_gate(probe, third);
    tick(probe);
    probe_remove(second_key);
    assert_int_equal(second->freed, 1);
    gate_set(first, false);
    gate_wait_for(third, &third->answered, 2);
    assert_int_equal(second->asked, 0);
}

static void key_is_left_alone_during_its_rest(void **state)
{
    (void)state;
    static const struct probe_kind kind = {
        .ask = gate_ask, .free_subject = gate_free_subject, .rest_ns = 100 * CLOCK_NS_PER_SECOND};
    CLEANUP(probe_cleanup) struct probe *probe = NULL;
    assert_int_equal(probe_new(&kind, 1000 * CLOCK_NS_PER_SECOND, &probe, NULL), 0);
    struct gate *gate = gate_new(false);
    struct probe_key *key = add_gate(probe, gate);
    tick(probe);
    wait_for_answer(key, 1);
    struct gate *others = gate_new(false);
    for (int ticks = 1; ticks <= 3; ticks++) {
        (void)add_gate(probe,
                       others); /* a new key has had all the rest there is, and shows that the queue was served */
        tick(probe);
        gate_wait_for(others, &others->answered, ticks);
    }
    assert_int_equal(gate->asked, 1);
    assert_int_equal(probe_tick(probe, clock_boot_ns() + 101 * CLOCK_NS_PER_SECOND, NULL), 0);
    wait_for_answer(key, 2);
}

static int fail_ask(const void *subject, void *answer)
{
    *(int *)answer = 7;
    return *(const int *)subject;
}

static void failed_question_tells_its_errno_and_no_answer(void **state)
{
    (void)state;
    static const struct probe_kind kind = {.ask = fail_ask, .free_subject = free};
    CLEANUP(probe_cleanup) struct probe *probe = NULL;
    assert_int_equal(probe_new(&kind, stuck_after_ns, &probe, NULL), 0);
    int *subject = malloc(sizeof *subject);
    assert_non_null(subject);
    *subject = -ESTALE;
    struct probe_key *key = NULL;
    assert_int_equal(probe_add(probe, subject, sizeof(int), &key, NULL), 0);

    int answer = 1;
    struct probe_result result;
    int64_t before_ns = clock_boot_ns();
    int64_t until_ns = clock_mono_ns() + DEADLINE_MS * CLOCK_NS_PER_MS;
    tick(probe);
    do {
        assert_true(clock_mono_ns() < until_ns);
        result = probe_latest(key, &answer);
    } while (result.state == PROBE_NEW);
    assert_int_equal(result.state, PROBE_ANSWERED);
    assert_int_equal(result.status, -ESTALE);
    assert_true(result.answered_boot_ns >= before_ns);
    assert_int_equal(answer, 1);
}

/* How a probing thread sees itself: [0] descriptors from 3 on, [1] signals that are not blocked. */
static int look_ask(const void *subject, void *answer)
{
    (void)subject;
    int *seen = answer;
    for (int fd = 3; fd < 1000; fd++)
        seen[0] += syscall(SYS_fcntl, fd, F_GETFD) >= 0;
    sigset_t blocked;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    for (int number = 1; number < 32; number++)
        seen[1] += number != SIGKILL && number != SIGSTOP && sigismember(&blocked, number) == 0;
    return 0;
}

static void look_free(void *subject)
{
    free(subject);
}

/* Exit status 0 when a probing thread sees no descriptor of ours, and we still have them all. */
static int look_from_a_thread(void)
{
    static const struct probe_kind kind = {.ask = look_ask, .free_subject = look_free};
    struct probe *probe = NULL;
    struct probe_key *key = NULL;
    int fds[2];
    int seen[2] = {0, 0};
    if (pipe2(fds, O_CLOEXEC) != 0 || probe_new(&kind, stuck_after_ns, &probe, NULL) < 0 ||
        probe_add(probe, malloc(1), sizeof seen, &key, NULL) < 0 || probe_tick(probe, clock_boot_ns(), NULL) < 0)
        return 10;
    int64_t until_ns = clock_mono_ns() + DEADLINE_MS * CLOCK_NS_PER_MS;
    while (probe_latest(key, seen).state == PROBE_NEW)
        if (clock_mono_ns() > until_ns)
            return 11;
    probe_free(probe);
    bool is_open = fcntl(fds[0], F_GETFD) >= 0 && fcntl(fds[1], F_GETFD) >= 0;
    return !is_open ? 12 : seen[0] != 0 ? 13 : seen[1] != 0 ? 14 : 0;
}

static int child_status(void (*before)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (before != NULL)
            before();
        _exit(look_from_a_thread());
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void probing_threads_have_no_descriptors_and_take_no_signals(void **state)
{
    (void)state;
    assert_int_equal(child_status(NULL), 0);
}

/* Kernels before 5.9 answer ENOSYS to close_range(). */
static void refuse_close_range(void)
{
#ifdef SYS_close_range
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_LENGTH(filter), .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(20);
#endif
}

static void without_close_range_descriptors_are_left_one_by_one(void **state)
{
    (void)state;
    assert_int_equal(child_status(refuse_close_range), 0);
}

static void small_files_are_read_by_path(void **state)
{
    (void)state;
    char bytes[16];
    assert_int_equal(probe_read_file("/proc/self/comm", bytes, 4), 4);
    assert_memory_equal(bytes, "unit", 4);
    assert_int_equal(probe_read_file("/proc/nowhere", bytes, sizeof bytes), -ENOENT);
    assert_int_equal(probe_read_file("/proc", bytes, sizeof bytes), -EISDIR);
}

static void memory_that_runs_out_is_told(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        CLEANUP(probe_cleanup) struct probe *probe = NULL;
        struct probe_key *key = NULL;
        struct gate *gate = gate_new(false);
        struct gate **subject = malloc(sizeof(struct gate *));
        assert_non_null(subject);
        *subject = gate;
        allocation_fail_at(n);
        int rc = probe_new(&gate_kind, stuck_after_ns, &probe, NULL);
        if (rc == 0)
            rc = probe_add(probe, subject, sizeof(int), &key, NULL);
        else
            gate_free_subject(subject);
        if (!allocation_stop()) {
            assert_int_equal(rc, 0);
            break;
        }
        assert_int_equal(rc, -ENOMEM);
        assert_null(key);
        assert_int_equal(gate->freed, 1); /* the subject is taken also by what fails */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* These fork, which thread sanitizer allows only before there are threads. */
        cmocka_unit_test(probing_threads_have_no_descriptors_and_take_no_signals),
        cmocka_unit_test(without_close_range_descriptors_are_left_one_by_one),
        cmocka_unit_test(one_thread_asks_every_key_once_a_tick),
        cmocka_unit_test(stuck_key_keeps_its_thread_and_another_serves_the_rest),
        cmocka_unit_test(many_keys_that_die_at_once_are_found_in_few_ticks),
        cmocka_unit_test(threads_have_a_limit_and_what_waits_is_told),
        cmocka_unit_test(freed_probe_leaves_stuck_threads_valid_memory),
        cmocka_unit_test(removed_key_that_is_stuck_still_gives_way_to_the_others),
        cmocka_unit_test(removed_key_that_waits_is_not_asked),
        cmocka_unit_test(key_is_left_alone_during_its_rest),
        cmocka_unit_test(failed_question_tells_its_errno_and_no_answer),
        cmocka_unit_test(small_files_are_read_by_path),
        cmocka_unit_test(memory_that_runs_out_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
