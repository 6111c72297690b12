/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay: the main program of a fuzz target in builds without libFuzzer. Gives every file named by the arguments, and
 * every file in the directories named by them, to the target once. Fails when there was none: a corpus that isn't found
 * is not a corpus that passes.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

/* Runs the target on `path`, in memory of the file's very size so that a sanitizer sees each byte read beyond it. */
static int replay_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        (void)fprintf(stderr, "replay: opening '%s': %s\n", path, strerror(errno));
        return -1;
    }
    uint8_t *data = malloc(size);
    size_t got = data != NULL ? fread(data, 1, size, file) : 0;
    (void)fclose(file);
    if (got != size) {
        (void)fprintf(stderr, "replay: '%s': read %zu bytes of %zu\n", path, got, size);
        free(data);
        return -1;
    }
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

static int replay_path(const char *path, size_t *count);

static int replay_directory(const char *path, size_t *count)
{
    struct dirent **entries;
    int found = scandir(path, &entries, NULL, alphasort);
    if (found < 0) {
        (void)fprintf(stderr, "replay: reading '%s': %s\n", path, strerror(errno));
        return -1;
    }
    int rc = 0;
    for (int i = 0; i < found; i++) {
        char *child = NULL;
        if (entries[i]->d_name[0] != '.' && rc == 0)
            rc = asprintf(&child, "%s/%s", path, entries[i]->d_name) < 0 ? -1 : replay_path(child, count);
        free(child);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

static int replay_path(const char *path, size_t *count)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        (void)fprintf(stderr, "replay: '%s': %s\n", path, strerror(errno));
        return -1;
    }
    if (S_ISDIR(status.st_mode))
        return replay_directory(path, count);
    (*count)++;
    return replay_file(path, (size_t)status.st_size);
}

int main(int argc, char **argv)
{
    size_t count = 0;
    for (int i = 1; i < argc; i++) {
        if (replay_path(argv[i], &count) != 0)
            return EXIT_FAILURE;
    }
    (void)printf("%zu inputs replayed\n", count);
    return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
