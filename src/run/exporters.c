/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/exporters.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/cursor.h"

static const char exporters_prefix[] = "libmetricproxy-exporter-";
static const char exporters_suffix[] = ".so";
static const char exporters_client[] = "libproxyclient.so";
static const char exporters_finstrument[] = "finstrument";
static const char exporters_mpi[] = "mpi";
static const char exporters_strace[] = "strace";
static const char exporters_all[] = "all";

/* Where libraries are, seen from this program's folder: as installed, and as built. */
static const char *const exporters_places[] = {"../" CICADA_LIBDIR, "../lib"};

/* Appends the folder of this program. */
static int exporters_own_folder(char path[PATH_MAX], struct error *err)
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length < 0)
        return error_errno(err, "finding the place of this program (/proc/self/exe)");
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    return 0;
}

static void exporters_add(struct exporters *exporters, const char *name, size_t length)
{
    if (exporters->count == EXPORTERS_MAX || length == 0 || length >= EXPORTERS_NAME_MAX_BYTES)
        return;
    memcpy(exporters->names[exporters->count], name, length);
    exporters->names[exporters->count][length] = '\0';
    exporters->count++;
}

/* The libraries of one folder; -ENOENT when the client's isn't there. */
static int exporters_read(struct exporters *exporters, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf client;
    buf_init(&client, PATH_MAX);
    buf_printf(&client, "%s/%s", exporters->lib, exporters_client);
    if (access(buf_string(&client), R_OK) < 0)
        return error_errno(err, "'%s'", buf_string(&client));
    exporters_add(exporters, exporters_finstrument, strlen(exporters_finstrument));
    CLEANUP(dir_cleanup) DIR *dir = opendir(exporters->lib);
    if (dir == NULL)
        return error_errno(err, "reading '%s'", exporters->lib);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        size_t length = strlen(entry->d_name);
        size_t before = strlen(exporters_prefix);
        size_t after = strlen(exporters_suffix);
        if (length > before + after && strncmp(entry->d_name, exporters_prefix, before) == 0 &&
            strcmp(entry->d_name + length - after, exporters_suffix) == 0)
            exporters_add(exporters, entry->d_name + before, length - before - after);
    }
    return 0;
}

int exporters_find(struct exporters *out_exporters, struct error *err)
{
    *out_exporters = (struct exporters){0};
    char folder[PATH_MAX];
    int rc = exporters_own_folder(folder, err);
    if (rc < 0)
        return rc;
    if (asprintf(&out_exporters->strace, "%s/proxy_exporter_strace", folder) < 0)
        out_exporters->strace = NULL;
    if (out_exporters->strace != NULL && access(out_exporters->strace, X_OK) < 0) {
        free(out_exporters->strace);
        out_exporters->strace = NULL;
    }
    rc = -ENOENT;
    for (size_t i = 0; i < ARRAY_LENGTH(exporters_places) && rc == -ENOENT; i++) {
        char path[2 * PATH_MAX];
        (void)snprintf(path, sizeof path, "%s/%s", folder, exporters_places[i]);
        free(out_exporters->lib);
        out_exporters->lib = realpath(path, NULL);
        rc = out_exporters->lib != NULL ? exporters_read(out_exporters, err) : -ENOENT;
    }
    if (rc == -ENOENT)
        return error_set(err, rc, "there is no %s in '%s/../lib', where exporters are: is this installation complete?",
                         exporters_client, folder);
    return rc;
}

void exporters_fini(struct exporters *exporters)
{
    free(exporters->lib);
    free(exporters->strace);
    exporters->lib = exporters->strace = NULL;
}

bool exporters_has(const struct exporters *exporters, const char *name)
{
    if (strcmp(name, exporters_strace) == 0)
        return exporters->strace != NULL;
    for (size_t i = 0; i < exporters->count; i++) {
        if (strcmp(exporters->names[i], name) == 0)
            return true;
    }
    return false;
}

void exporters_path(const struct exporters *exporters, const char *name, enum binary_mpi mpi, struct buf *out)
{
    static const char *const folders[] = {
        [BINARY_MPI_NONE] = "", [BINARY_MPI_OPENMPI] = "cicada/openmpi/", [BINARY_MPI_MPICH] = "cicada/mpich/"};
    bool is_mpi = strcmp(name, exporters_mpi) == 0;
    if (strcmp(name, exporters_strace) == 0)
        buf_text(out, exporters->strace);
    else if (strcmp(name, exporters_finstrument) == 0)
        buf_printf(out, "%s/%s", exporters->lib, exporters_client);
    else
        buf_printf(out, "%s/%s%s%s%s", exporters->lib, is_mpi ? folders[mpi] : "", exporters_prefix, name,
                   exporters_suffix);
}

static int exporters_refuse(const struct exporters *exporters, const char *name, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf list;
    buf_init(&list, ERROR_TEXT_MAX_BYTES);
    for (size_t i = 0; i < exporters->count; i++)
        buf_printf(&list, "%s%s", i > 0 ? ", " : "", exporters->names[i]);
    if (exporters->strace != NULL)
        buf_printf(&list, ", %s", exporters_strace);
    return error_set(err, -ENOENT, "there is no exporter '%s'; installed are: %s", name, buf_string(&list));
}

static void exporters_preload(const struct exporters *exporters, const char *name, enum binary_mpi mpi,
                              struct exporters_choice *choice)
{
    if (choice->preload.length > 0)
        buf_char(&choice->preload, ':');
    exporters_path(exporters, name, mpi, &choice->preload);
}

/*
 * Those that cost nothing: of MPI if it is an MPI program, or may start one, which inherits it; of functions if it was
 * built for it. The default exporter of MPI finds out itself whose MPI it meets, and loads nothing before.
 */
static void exporters_choose_free(const struct exporters *exporters, const struct exporters_program *program,
                                  enum binary_mpi mpi, struct exporters_choice *choice)
{
    bool may_be_mpi = mpi != BINARY_MPI_NONE || !program->binary->is_elf || binary_is_starter(program->path);
    if (may_be_mpi && exporters_has(exporters, exporters_mpi))
        exporters_preload(exporters, exporters_mpi, mpi, choice);
    if (program->binary->has_instrument_hooks)
        exporters_preload(exporters, exporters_finstrument, mpi, choice);
}

static void exporters_choose_all(const struct exporters *exporters, enum binary_mpi mpi,
                                 struct exporters_choice *choice)
{
    for (size_t i = 0; i < exporters->count; i++)
        exporters_preload(exporters, exporters->names[i], mpi, choice);
    choice->has_strace = exporters->strace != NULL;
}

int exporters_choose(const struct exporters *exporters, const char *wanted, const struct exporters_program *program,
                     struct exporters_choice *out_choice, struct error *err)
{
    enum binary_mpi mpi = program->binary->mpi != BINARY_MPI_NONE ? program->binary->mpi : program->launcher;
    if (wanted == NULL) {
        exporters_choose_free(exporters, program, mpi, out_choice);
        return buf_status(&out_choice->preload, err);
    }
    struct cursor rest = cursor_of(wanted, strlen(wanted));
    while (!cursor_is_empty(&rest)) {
        const char *comma = memchr(rest.at, ',', cursor_left(&rest));
        struct cursor item = {.at = rest.at, .end = comma != NULL ? comma : rest.end};
        rest.at = comma != NULL ? comma + 1 : rest.end;
        char name[EXPORTERS_NAME_MAX_BYTES];
        (void)snprintf(name, sizeof name, "%.*s", (int)cursor_left(&item), item.at); /* too long: not found */
        if (strcmp(name, exporters_all) == 0)
            exporters_choose_all(exporters, mpi, out_choice);
        else if (!exporters_has(exporters, name))
            return exporters_refuse(exporters, name, err);
        else if (strcmp(name, exporters_strace) == 0)
            out_choice->has_strace = true;
        else
            exporters_preload(exporters, name, mpi, out_choice);
    }
    return buf_status(&out_choice->preload, err);
}
