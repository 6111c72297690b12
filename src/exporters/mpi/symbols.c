/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporters/mpi/symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { SYMBOLS_LIBRARIES_MAX = 16 };

static symbols_finder *symbols_find_next;

struct symbols_libraries {
    const char *paths[SYMBOLS_LIBRARIES_MAX];
    size_t count;
};

/* Any object that may be an MPI's: the loader's list is locked while we look at it, so it is opened afterwards. */
static int symbols_collect(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct symbols_libraries *libraries = context;
    const char *slash = strrchr(info->dlpi_name, '/');
    bool is_candidate = slash != NULL && strncmp(slash + 1, "libmpi", strlen("libmpi")) == 0;
    if (is_candidate && libraries->count < SYMBOLS_LIBRARIES_MAX)
        libraries->paths[libraries->count++] = info->dlpi_name;
    return 0;
}

static void *symbols_in_loaded(const char *name)
{
    struct symbols_libraries libraries = {.count = 0};
    (void)dl_iterate_phdr(symbols_collect, &libraries);
    void *found = NULL;
    for (size_t i = 0; i < libraries.count && found == NULL; i++) {
        void *handle = dlopen(libraries.paths[i], RTLD_LAZY | RTLD_NOLOAD);
        if (handle == NULL)
            continue;
        found = dlsym(handle, name);
        (void)dlclose(handle); /* the program holds it: this only gives back our own count */
    }
    return found;
}

static void *symbols_find(void *from, const char *name)
{
    int kept_errno = errno;
    void *found = dlsym(from, name);
    if (found == NULL)
        found = symbols_in_loaded(name);
    errno = kept_errno;
    return found;
}

void *symbols_next(const char *name)
{
    return symbols_find_next != NULL ? symbols_find_next(name) : symbols_find(RTLD_NEXT, name);
}

void symbols_adopt(symbols_finder *find)
{
    symbols_find_next = find;
}

void *symbols_variable(const char *name)
{
    return symbols_find(RTLD_DEFAULT, name);
}

struct symbols_search {
    uintptr_t address;
    struct symbols_range range;
};

static int symbols_look(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct symbols_search *search = context;
    uintptr_t start = UINTPTR_MAX;
    uintptr_t end = 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t to = from + info->dlpi_phdr[i].p_memsz;
        start = from < start ? from : start;
        end = to > end ? to : end;
    }
    if (search->address < start || search->address >= end)
        return 0;
    search->range = (struct symbols_range){.start = start, .bytes = end - start};
    return 1;
}

struct symbols_range symbols_object(const void *address)
{
    struct symbols_search search = {.address = (uintptr_t)address};
    (void)dl_iterate_phdr(symbols_look, &search);
    return search.range;
}
