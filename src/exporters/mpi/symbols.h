/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * symbols: finds what to call behind a wrapper.
 *
 * The exporter is not linked with an MPI: it is preloaded into shells and tools, too, which must not load one for it.
 * So everything of the MPI is looked up by name when it is first needed. Any thread; not for signal handlers.
 */
#ifndef MPI_SYMBOLS_H
#define MPI_SYMBOLS_H

#include <stdint.h>

/*
 * The next definition of `name` after this library's own: of another preloaded tool, else of the MPI, also when the MPI
 * came by dlopen() and its symbols are hidden from us. NULL when there is none.
 */
void *symbols_next(const char *name);

/* For a library that wasn't preloaded itself, but by one that was: what `find` finds is next. Before any look-up. */
typedef void *symbols_finder(const char *name);
void symbols_adopt(symbols_finder *find);

/*
 * The variable `name` as all of the process see it, which may be a copy in the program itself (the linker makes one
 * when the program was not compiled as position independent). NULL when there is none.
 */
void *symbols_variable(const char *name);

/* Where the object that contains `address` is mapped. */
struct symbols_range {
    uintptr_t start;
    uintptr_t bytes; /* 0: there is no such object */
};
struct symbols_range symbols_object(const void *address);

#endif
