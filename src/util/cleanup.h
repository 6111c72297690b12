/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cleanup: resources that free themselves when their scope ends, and the attributes that contracts use.
 *
 * CLEANUP(fd_cleanup) int fd = -1;      closes fd at the end of the scope
 * DEFINE_CLEANUP(table, table_free)     makes table_cleanup() for `struct table *` from its destructor
 * return TAKE(p);                       hands p on: the variable is NULL from then on
 */
#ifndef UTIL_CLEANUP_H
#define UTIL_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(function)       __attribute__((cleanup(function)))
#define MUST_CHECK              __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, args) __attribute__((format(printf, text, args)))
#define ARRAY_LENGTH(array)     (sizeof(array) / sizeof((array)[0]))

#define DEFINE_CLEANUP(name, destructor)                                                                               \
    static inline void name##_cleanup(struct name **object)                                                            \
    {                                                                                                                  \
        destructor(*object);                                                                                           \
    }                                                                                                                  \
    struct name

#define TAKE(pointer)                                                                                                  \
    __extension__({                                                                                                    \
        __typeof__(pointer) taken_pointer = (pointer);                                                                 \
        (pointer) = NULL;                                                                                              \
        taken_pointer;                                                                                                 \
    })

#define TAKE_FD(fd)                                                                                                    \
    __extension__({                                                                                                    \
        int taken_fd = (fd);                                                                                           \
        (fd) = -1;                                                                                                     \
        taken_fd;                                                                                                      \
    })

static inline void fd_cleanup(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void dir_cleanup(DIR **dir)
{
    if (*dir != NULL)
        closedir(*dir);
}

static inline void stdio_cleanup(FILE **file)
{
    if (*file != NULL)
        (void)fclose(*file); /* whoever must know whether all was written closes the file himself */
}

static inline void memory_cleanup(void *memory)
{
    free(*(void **)memory);
}

#endif
