/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths: what the service's files are called: the host's short name, and the files in the log directory.
 *
 * Names only; leaves opening, locking and reading them to others. Command line's thread, before the daemon is born.
 */
#ifndef SERVICE_PATHS_H
#define SERVICE_PATHS_H

#include <stdbool.h>

#include "util/error.h"

/* HOST_NAME_MAX of Linux; a name may fill it to the last byte. */
#define PATHS_HOST_MAX_BYTES  64

#define PATHS_LOG_DIR_INITIAL "/tmp"

struct paths {
    char host[PATHS_HOST_MAX_BYTES + 1]; /* short: what traces call this host */
    char *host_file;                     /* the same as part of a file name; owned, like all below */
    char *log_dir;                       /* absolute, without links */
    char *pid_file;
    char *out_file;
    char *err_file;
};

/* The part of `full` before its first dot; "localhost" when nothing is left. Pure. */
void paths_short_host(const char *full, char out_host[PATHS_HOST_MAX_BYTES + 1]);

/*
 * Names everything for `log_dir`. With `is_created` the directory is made if it is missing; else the names are those of
 * files that aren't there. Freed by paths_fini().
 */
MUST_CHECK int paths_init(struct paths *out_paths, const char *log_dir, bool is_created, struct error *err);
void paths_fini(struct paths *paths);

#endif
