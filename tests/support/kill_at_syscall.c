/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kill_at_syscall: runs a program and kills it, by SIGKILL, at an exact place.
 *
 *     kill_at_syscall NAME-NUMBER N PROGRAM ARGUMENTS…
 *
 * The place is the N-th stop at a system call's entry or exit (in its first thread) after the first entry into the
 * system call with that number. So a test can try every place between two effects on the outside world. Exits with 0
 * when the program was killed, with 1 when it ended before.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_program(char **words)
{
    (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    (void)raise(SIGSTOP);
    (void)execv(words[0], words);
    return 127;
}

/* Goes on to the next stop at a system call; false when the program has ended. */
static bool next_stop(pid_t pid)
{
    int signal_number = 0;
    for (;;) {
        int status;
        if (ptrace(PTRACE_SYSCALL, pid, NULL, signal_number) < 0 || waitpid(pid, &status, 0) < 0)
            return false;
        if (!WIFSTOPPED(status))
            return false;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) /* PTRACE_O_TRACESYSGOOD marks system calls so */
            return true;
        signal_number = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status); /* after exec */
    }
}

static bool is_entry_of(pid_t pid, unsigned long number)
{
    struct __ptrace_syscall_info info;
    return ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY &&
           info.entry.nr == number;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    unsigned long number = strtoul(argv[1], NULL, 10);
    unsigned long stops = strtoul(argv[2], NULL, 10);
    pid_t pid = fork();
    if (pid == 0)
        return run_program(argv + 3);
    int status;
    if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
        return 2;
    (void)ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
    while (next_stop(pid)) {
        if (is_entry_of(pid, number))
            break;
    }
    bool is_alive = true;
    for (unsigned long i = 1; i < stops && is_alive; i++)
        is_alive = next_stop(pid);
    if (!is_alive)
        return 1;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : 1;
}
