/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control: the commands: start, stop, status, restart, run. What they say to a person, and their exit statuses.
 *
 * The first thread of a process that has no other yet.
 */
#ifndef SERVICE_CONTROL_H
#define SERVICE_CONTROL_H

/* Exit statuses; those of `status` are the ones of LSB's init scripts. */
enum control_exit {
    CONTROL_OK = 0,
    CONTROL_FAILED = 1, /* of `status`: not running, but it was not stopped either (a stale PID file) */
    CONTROL_USAGE = 2,
    CONTROL_NOT_RUNNING = 3, /* of `status` only */
    CONTROL_UNKNOWN = 4,     /* of `status` only */
};

/* Each returns the exit status, in the process of the daemon, too. */
enum control_exit control_start(const char *log_dir);
enum control_exit control_run(const char *log_dir);
enum control_exit control_stop(const char *log_dir);
enum control_exit control_restart(const char *log_dir);
enum control_exit control_status(const char *log_dir);

#endif
