/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/allocation.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* How many allocations still succeed before one fails. Never reaches -1 while no test wants a failure. */
static atomic_llong allocation_left = INT64_MAX;

/* The linker gives calls of malloc() to __wrap_malloc(), and makes __real_malloc() the real one. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t length_max);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length_max);

static bool allocation_must_fail(void)
{
    if (atomic_fetch_sub(&allocation_left, 1) != 0)
        return false;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return allocation_must_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return allocation_must_fail() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return allocation_must_fail() ? NULL : __real_realloc(memory, size);
}

char *__wrap_strdup(const char *text)
{
    return allocation_must_fail() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t length_max)
{
    return allocation_must_fail() ? NULL : __real_strndup(text, length_max);
}

void allocation_fail_at(size_t n)
{
    atomic_store(&allocation_left, (long long)n);
}

bool allocation_stop(void)
{
    return atomic_exchange(&allocation_left, INT64_MAX) < 0;
}
