/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporters/mpi/caller.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

enum {
    CALLER_SITES = 1024, /* places that are remembered; two that share a slot cost a look-up each time, no more */
    CALLER_SITE_BITS = 10,
};

/* The highest bit of an address is never set in user space: it says that the answer is yes. */
#define CALLER_YES ((uintptr_t)1 << (sizeof(uintptr_t) * 8 - 1))

struct symbols_range caller_library;

/*
 * Atomic; the address of a place and the answer for it, in one word. A place calls one function, under one of its two
 * names, so there is one question about it.
 */
static uintptr_t caller_sites[CALLER_SITES];

static const char *const caller_prefixes[] = {"ompi_", "pmpir_", "mpir_", "pmpi_", "mpi_"};

/* What compilers and libraries put behind the names of Fortran's functions; "_large": of counts as in C's …_c. */
static const struct {
    const char *text;
    bool is_large;
} caller_suffixes[] = {
    {"", false},        {"_", false},    {"__", false},     {"_f", false},         {"_f08_", false},
    {"_f08ts_", false}, {"_f08", false}, {"_f08ts", false}, {"_f08_large_", true}, {"_f08ts_large_", true},
};

static bool caller_is_suffix(const char *text, bool is_large)
{
    for (size_t i = 0; i < sizeof caller_suffixes / sizeof caller_suffixes[0]; i++) {
        if (caller_suffixes[i].is_large == is_large && strcmp(text, caller_suffixes[i].text) == 0)
            return true;
    }
    return false;
}

bool caller_is_name(const char *symbol, const char *key)
{
    const char *own = key + strlen("mpi_");
    size_t own_bytes = strlen(own);
    bool has_large = own_bytes > 2 && strcmp(own + own_bytes - 2, "_c") == 0;
    for (size_t i = 0; i < sizeof caller_prefixes / sizeof caller_prefixes[0]; i++) {
        size_t prefix_bytes = strlen(caller_prefixes[i]);
        if (strncasecmp(symbol, caller_prefixes[i], prefix_bytes) != 0)
            continue;
        const char *rest = symbol + prefix_bytes;
        if (strncasecmp(rest, own, own_bytes) == 0 && caller_is_suffix(rest + own_bytes, false))
            return true;
        if (has_large && strncasecmp(rest, own, own_bytes - 2) == 0 && caller_is_suffix(rest + own_bytes - 2, true))
            return true;
    }
    return false;
}

static bool caller_find(const void *site, Dl_info *out_info)
{
    int kept_errno = errno;
    /* One byte back: a call that never returns may be the last instruction of its function. */
    bool is_found = dladdr((const char *)site - 1, out_info) != 0;
    errno = kept_errno;
    return is_found;
}

/* Open MPI's components are plug-ins mca_<framework>_<component>.so. */
static bool caller_look_for_component(const void *site, const char *key)
{
    (void)key;
    Dl_info info = {0};
    if (!caller_find(site, &info) || info.dli_fname == NULL)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash != NULL ? slash + 1 : info.dli_fname;
    return strncmp(file, "mca_", strlen("mca_")) == 0 || strncmp(file, "libmca_", strlen("libmca_")) == 0;
}

static bool caller_look_for_binding(const void *site, const char *key)
{
    Dl_info info = {0};
    return caller_find(site, &info) && info.dli_sname != NULL && caller_is_name(info.dli_sname, key);
}

/* The answer that is remembered for this place, or `look`'s. */
static bool caller_ask(const void *site, const char *key, bool (*look)(const void *, const char *))
{
    uintptr_t address = (uintptr_t)site;
    /* Fibonacci hashing: 2^64 divided by the golden ratio. */
    uintptr_t *slot = &caller_sites[(uint64_t)address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - CALLER_SITE_BITS)];
    uintptr_t known = __atomic_load_n(slot, __ATOMIC_RELAXED);
    if (__builtin_expect((known & ~CALLER_YES) != address, 0)) {
        known = look(site, key) ? address | CALLER_YES : address;
        __atomic_store_n(slot, known, __ATOMIC_RELAXED);
    }
    return (known & CALLER_YES) != 0;
}

bool caller_is_component(const void *site)
{
    return caller_ask(site, NULL, caller_look_for_component);
}

bool caller_is_binding(const void *site, const char *key)
{
    return caller_ask(site, key, caller_look_for_binding);
}
