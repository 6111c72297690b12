/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * symbol: what a function is called, by its address. Any thread; not in a signal handler.
 */
#ifndef CLIENT_SYMBOL_H
#define CLIENT_SYMBOL_H

#include "client/text.h"

/*
 * Appends "<symbol>_<object>": the object is the file name of the program or the shared library, the symbol what its
 * symbol table says, else its dynamic one, else 0x and its place in the object, which is the same in each run.
 */
void symbol_name(const void *function, struct text *out);

#endif
