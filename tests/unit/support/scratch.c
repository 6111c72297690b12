/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/scratch.h"

#include <dirent.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { SCRATCH_DESCRIPTORS_MAX = 16 };

struct scratch scratch_new(void)
{
    struct scratch scratch;
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] == '\0')
        parent = "/tmp";
    (void)snprintf(scratch.path, sizeof scratch.path, "%s/cicada-test-XXXXXX", parent);
    assert_non_null(mkdtemp(scratch.path));
    return scratch;
}

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

void scratch_cleanup(struct scratch *scratch)
{
    (void)nftw(scratch->path, scratch_open_up, SCRATCH_DESCRIPTORS_MAX, FTW_PHYS | FTW_MOUNT);
    (void)nftw(scratch->path, scratch_remove, SCRATCH_DESCRIPTORS_MAX, FTW_PHYS | FTW_MOUNT | FTW_DEPTH);
    if (access(scratch->path, F_OK) == 0)
        print_error("'%s' could not be removed\n", scratch->path);
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
