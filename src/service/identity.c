/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/cursor.h"
#include "util/file.h"

enum { IDENTITY_TEXT_MAX_BYTES = 4096, IDENTITY_STAT_START_FIELD = 22, IDENTITY_STAT_STATE_FIELD = 3 };

/* The kernel keeps 15 bytes of a program's name. */
static const char identity_program[] = "dftracer_servic";

bool identity_parse_stat(const char *text, size_t length, uint64_t *out_start_ticks, char *out_state)
{
    /* The second field is a name in brackets that may hold blanks and brackets itself: the last one ends it. */
    const char *name_end = memrchr(text, ')', length);
    if (name_end == NULL)
        return false;
    struct cursor cursor = cursor_of(name_end + 1, length - (size_t)(name_end + 1 - text));
    struct cursor word;
    for (int field = IDENTITY_STAT_STATE_FIELD; field < IDENTITY_STAT_START_FIELD; field++) {
        if (!cursor_word(&cursor, &word))
            return false;
        if (field == IDENTITY_STAT_STATE_FIELD)
            *out_state = *word.at;
    }
    return cursor_u64(&cursor, out_start_ticks);
}

/* The birth of process `pid`; false when it has none to be found, or only its remains are left. */
static bool identity_birth(pid_t pid, uint64_t *out_start_ticks)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, IDENTITY_TEXT_MAX_BYTES);
    char state = '?';
    return file_read(AT_FDCWD, path, &text, NULL) == 0 &&
           identity_parse_stat(text.data, text.length, out_start_ticks, &state) && state != 'Z' && state != 'X';
}

static int identity_boot_id(char out_boot_id[IDENTITY_BOOT_ID_BYTES + 1], struct error *err)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, IDENTITY_TEXT_MAX_BYTES);
    int rc = file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &text, err);
    if (rc < 0)
        return rc;
    size_t length = text.length < IDENTITY_BOOT_ID_BYTES ? text.length : IDENTITY_BOOT_ID_BYTES;
    memcpy(out_boot_id, buf_string(&text), length);
    out_boot_id[length] = '\0';
    return 0;
}

int identity_of_self(struct identity *out_identity, struct error *err)
{
    struct identity self = {.pid = getpid()};
    int rc = identity_boot_id(self.boot_id, err);
    if (rc < 0)
        return rc;
    if (!identity_birth(self.pid, &self.start_ticks))
        return error_set(err, -ENOENT, "/proc/%d/stat can't be read: is /proc mounted?", (int)self.pid);
    *out_identity = self;
    return 0;
}

bool identity_is_alive(const struct identity *identity)
{
    char boot_id[IDENTITY_BOOT_ID_BYTES + 1];
    uint64_t start_ticks;
    return identity->pid > 0 && identity->start_ticks != 0 && identity_boot_id(boot_id, NULL) == 0 &&
           strcmp(boot_id, identity->boot_id) == 0 && identity_birth(identity->pid, &start_ticks) &&
           start_ticks == identity->start_ticks;
}

bool identity_looks_alive(const struct identity *identity)
{
    uint64_t start_ticks;
    if (identity->pid <= 0 || identity->pid == getpid() || !identity_birth(identity->pid, &start_ticks))
        return false;
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)identity->pid);
    CLEANUP(buf_cleanup) struct buf name;
    buf_init(&name, IDENTITY_TEXT_MAX_BYTES);
    if (file_read(AT_FDCWD, path, &name, NULL) < 0)
        return false;
    struct cursor text = cursor_of(name.data, name.length);
    return cursor_accept_text(&text, identity_program);
}

int identity_signal(const struct identity *identity, int signal_number, struct error *err)
{
    /* The descriptor is opened first: what is found about the number afterwards is about this process. */
    CLEANUP(fd_cleanup) int fd = (int)syscall(SYS_pidfd_open, identity->pid, 0);
    bool has_pidfd = fd >= 0 || errno != ENOSYS;
    if (has_pidfd && fd < 0)
        return error_errno(err, "process %d", (int)identity->pid);
    if (!identity_is_alive(identity))
        return error_set(err, -ESRCH, "process %d is not the one that was meant", (int)identity->pid);
    long rc =
        has_pidfd ? syscall(SYS_pidfd_send_signal, fd, signal_number, NULL, 0) : kill(identity->pid, signal_number);
    if (rc < 0)
        return error_errno(err, "sending signal %d to process %d", signal_number, (int)identity->pid);
    return 0;
}

void identity_print(const struct identity *identity, struct buf *out)
{
    buf_printf(out, "%d\nstart_ticks=", (int)identity->pid);
    buf_u64(out, identity->start_ticks);
    buf_printf(out, "\nboot_id=%s\n", identity->boot_id);
}

int identity_parse(const char *text, size_t length, struct identity *out_identity, struct error *err)
{
    struct identity identity = {0};
    struct cursor all = cursor_of(text, length);
    struct cursor line = {0};
    uint64_t pid = 0;
    bool has_pid = cursor_line(&all, &line) && cursor_u64(&line, &pid) && pid > 0 && pid <= INT_MAX;
    cursor_skip_blanks(&line);
    if (!has_pid || !cursor_is_empty(&line))
        return error_set(err, -EINVAL, "its first line is not a process number");
    identity.pid = (pid_t)pid;
    while (cursor_line(&all, &line)) {
        if (cursor_accept_text(&line, "start_ticks=")) {
            (void)cursor_u64(&line, &identity.start_ticks); /* stays 0, unknown */
        } else if (cursor_accept_text(&line, "boot_id=") && cursor_left(&line) <= IDENTITY_BOOT_ID_BYTES) {
            memcpy(identity.boot_id, line.at, cursor_left(&line));
            identity.boot_id[cursor_left(&line)] = '\0';
        }
    }
    *out_identity = identity;
    return 0;
}
