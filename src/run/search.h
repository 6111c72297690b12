/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * search: which file a command is, as execvp() would find it.
 */
#ifndef RUN_SEARCH_H
#define RUN_SEARCH_H

#include "util/buf.h"
#include "util/error.h"

/*
 * Appends the path of `command`, which PATH is searched for when it has no '/'. -ENOENT: there is none; -EACCES: there
 * is a file, which is no program that may be run.
 */
MUST_CHECK int search_program(const char *command, struct buf *out_path, struct error *err);

#endif
