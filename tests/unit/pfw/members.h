/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * members: a gzip file taken apart with zlib, which had no part in making it.
 *
 * In tests.cmake: target_sources(unit_pfw_… PRIVATE pfw/members.c). A failure of memory ends the test. One thread.
 */
#ifndef PFW_MEMBERS_H
#define PFW_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>

#include "util/buf.h"

struct member {
    size_t start; /* in the file */
    size_t end;
    size_t text_start; /* in the text */
    size_t text_end;
};

struct members {
    struct member *list;
    size_t count;
    size_t capacity;
    struct buf text; /* of all members */
};

/* Takes `bytes` apart; false when they are not whole members from the first to the last byte. */
bool members_read(struct members *members, const char *bytes, size_t length);
void members_fini(struct members *members);

/* The bytes of the file at `path`. */
void members_read_file(const char *path, struct buf *out);

#endif
