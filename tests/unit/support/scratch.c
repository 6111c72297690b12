/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/scratch.h"

#include <dirent.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { SCRATCH_DESCRIPTORS_MAX = 16, SCRATCH_LIVE_MAX = 64 };

/* Directories that failed tests left; cmocka's jump out of a test passes its cleanup. */
static struct scratch scratch_live[SCRATCH_LIVE_MAX];

static int scratch_open_up(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)place;
    if (type == FTW_D || type == FTW_DNR)
        (void)chmod(path, S_IRWXU); /* else what is in it can't be removed */
    return 0;
}

static int scratch_remove(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    (void)remove(path); /* what stays makes its directory stay, too: scratch_cleanup() sees that */
    return 0;
}

static void scratch_remove_all(const char *path)
{
    (void)nftw(path, scratch_open_up, SCRATCH_DESCRIPTORS_MAX, FTW_PHYS | FTW_MOUNT);
    (void)nftw(path, scratch_remove, SCRATCH_DESCRIPTORS_MAX, FTW_PHYS | FTW_MOUNT | FTW_DEPTH);
    if (access(path, F_OK) == 0)
        print_error("'%s' could not be removed\n", path);
}

static void scratch_at_exit(void)
{
    for (size_t i = 0; i < SCRATCH_LIVE_MAX; i++) {
        if (scratch_live[i].path[0] != '\0')
            scratch_remove_all(scratch_live[i].path);
    }
}

struct scratch scratch_new(void)
{
    static bool is_registered;
    struct scratch scratch;
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] == '\0')
        parent = "/tmp";
    (void)snprintf(scratch.path, sizeof scratch.path, "%s/cicada-test-XXXXXX", parent);
    assert_non_null(mkdtemp(scratch.path));
    if (!is_registered)
        assert_int_equal(atexit(scratch_at_exit), 0);
    is_registered = true;
    for (size_t i = 0; i < SCRATCH_LIVE_MAX; i++) {
        if (scratch_live[i].path[0] == '\0') {
            scratch_live[i] = scratch;
            break;
        }
    }
    return scratch;
}

void scratch_cleanup(struct scratch *scratch)
{
    scratch_remove_all(scratch->path);
    for (size_t i = 0; i < SCRATCH_LIVE_MAX; i++) {
        if (strcmp(scratch_live[i].path, scratch->path) == 0)
            scratch_live[i].path[0] = '\0';
    }
}

char *scratch_path(const struct scratch *scratch, const char *name, char out_path[PATH_MAX])
{
    int length = snprintf(out_path, PATH_MAX, "%s/%s", scratch->path, name);
    assert_in_range(length, 1, PATH_MAX - 1);
    return out_path;
}

void scratch_write(const struct scratch *scratch, const char *name, const void *bytes, size_t length)
{
    char path[PATH_MAX];
    FILE *file = fopen(scratch_path(scratch, name, path), "wbe");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

size_t scratch_entries(const struct scratch *scratch)
{
    DIR *dir = opendir(scratch->path);
    assert_non_null(dir);
    size_t count = 0;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            count++;
    }
    closedir(dir);
    return count;
}
