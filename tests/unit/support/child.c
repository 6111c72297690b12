/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/child.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { CHILD_NOBODY = 65534 };

void child_run(int (*body)(void *context), void *context)
{
    (void)fflush(NULL); /* else the child writes what the parent has in its buffers once more */
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int status = body(context);
        (void)fflush(NULL);
        _exit(status); /* not exit(): the runner's own clean-up is the parent's */
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        fail_msg("the child died of signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == CHILD_SKIP)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static bool child_write(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t wrote = write(fd, text, strlen(text));
    close(fd);
    return wrote == (ssize_t)strlen(text);
}

/* A user name space in which our user is the same number, and may mount. */
static bool child_enter_user(void)
{
    char map[64];
    unsigned uid = (unsigned)geteuid();
    unsigned gid = (unsigned)getegid();
    if (unshare(CLONE_NEWUSER) != 0)
        return false;
    (void)snprintf(map, sizeof map, "%u %u 1\n", uid, uid);
    if (!child_write("/proc/self/setgroups", "deny") || !child_write("/proc/self/uid_map", map))
        return false;
    (void)snprintf(map, sizeof map, "%u %u 1\n", gid, gid);
    return child_write("/proc/self/gid_map", map);
}

bool child_enter_mounts(void)
{
    if (geteuid() != 0 && !child_enter_user())
        return false;
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

bool child_mount_tmpfs(const char *path, const char *size)
{
    char options[64];
    (void)snprintf(options, sizeof options, "mode=1777,size=%s", size);
    return mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0;
}

bool child_leave_root(void)
{
    if (geteuid() != 0)
        return true;
    return setgroups(0, NULL) == 0 && setresgid(CHILD_NOBODY, CHILD_NOBODY, CHILD_NOBODY) == 0 &&
           setresuid(CHILD_NOBODY, CHILD_NOBODY, CHILD_NOBODY) == 0;
}
