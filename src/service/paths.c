/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/file.h"

enum { PATHS_NAME_MAX_BYTES = 1024, PATHS_DIRECTORY_MODE = 0755 };

void paths_short_host(const char *full, char out_host[PATHS_HOST_MAX_BYTES + 1])
{
    size_t length = strcspn(full, ".");
    if (length > PATHS_HOST_MAX_BYTES)
        length = PATHS_HOST_MAX_BYTES;
    memcpy(out_host, full, length);
    out_host[length] = '\0';
    if (length == 0)
        memcpy(out_host, "localhost", sizeof "localhost");
}

static int paths_host(struct paths *paths, struct error *err)
{
    char full[PATHS_HOST_MAX_BYTES + 1] = "";
    if (gethostname(full, sizeof full) < 0)
        return error_errno(err, "asking for the host's name");
    full[sizeof full - 1] = '\0'; /* a name that fills the buffer may come without its end */
    paths_short_host(full, paths->host);

    CLEANUP(buf_cleanup) struct buf name;
    buf_init(&name, PATHS_NAME_MAX_BYTES);
    file_safe_name(paths->host, &name); /* the kernel takes any bytes as a host's name, '/' too */
    paths->host_file = strdup(buf_string(&name));
    if (paths->host_file == NULL)
        return error_set(err, -ENOMEM, "no memory for a path");
    return buf_status(&name, err);
}

static int paths_name(const struct paths *paths, const char *suffix, char **out_path, struct error *err)
{
    if (asprintf(out_path, "%s/dftracer_server_%s.%s", paths->log_dir, paths->host_file, suffix) >= 0)
        return 0;
    *out_path = NULL;
    return error_set(err, -ENOMEM, "no memory for a path");
}

static int paths_directory(struct paths *paths, const char *log_dir, bool is_created, struct error *err)
{
    if (is_created) {
        int rc = file_make_directories(log_dir, PATHS_DIRECTORY_MODE, err);
        if (rc < 0)
            return error_wrap(err, rc, "log directory '%s'", log_dir);
    }
    paths->log_dir = realpath(log_dir, NULL);
    if (paths->log_dir == NULL && errno == ENOENT && !is_created)
        paths->log_dir = strdup(log_dir); /* the names of files that aren't there, for a message */
    if (paths->log_dir == NULL)
        return error_errno(err, "log directory '%s'", log_dir);
    return 0;
}

int paths_init(struct paths *out_paths, const char *log_dir, bool is_created, struct error *err)
{
    struct paths paths = {0};
    int rc = paths_host(&paths, err);
    if (rc == 0)
        rc = paths_directory(&paths, log_dir, is_created, err);
    if (rc == 0)
        rc = paths_name(&paths, "pid", &paths.pid_file, err);
    if (rc == 0)
        rc = paths_name(&paths, "out", &paths.out_file, err);
    if (rc == 0)
        rc = paths_name(&paths, "err", &paths.err_file, err);
    if (rc < 0) {
        paths_fini(&paths);
        return rc;
    }
    *out_paths = paths;
    return 0;
}

void paths_fini(struct paths *paths)
{
    free(paths->host_file);
    free(paths->log_dir);
    free(paths->pid_file);
    free(paths->out_file);
    free(paths->err_file);
    *paths = (struct paths){0};
}
